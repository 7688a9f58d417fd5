"""The pages are valid HTML, by the Nu HTML Checker of the W3C."""

from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.pages.country import KINDS
from tests.support.browser import errors_in
from tests.support.waiting import PATIENCE

pytestmark = pytest.mark.tail

OTHERS = ("/map?format=api", "/docs", "/redoc")  # which test_browser doesn't open
# The checker finds these roles redundant. Tables that are cards on a telephone would not be tables to Safari without.
ROLES = r"The “role” attribute must not be used on a “(tr|th|td)” element which has a “table” ancestor"


@pytest.mark.parametrize("language", ["en", "es"])
def test_pages_are_valid(two_releases: str, tmp_path: Path, language: str) -> None:
    targets = KINDS | {target.strip("/").partition("?")[0]: target for target in OTHERS}
    options: dict[str, Any] = {"headers": {"Accept": "text/html"}, "follow_redirects": True, "timeout": PATIENCE}
    with httpx.Client(base_url=two_releases, **options) as client:
        for kind, target in targets.items():
            page = client.get(target, params=httpx.QueryParams(httpx.URL(target).query).set("lang", language))
            (tmp_path / f"{kind}.html").write_bytes(page.content)
    assert errors_in(tmp_path, ROLES) == []
