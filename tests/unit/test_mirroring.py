"""What a mirror refuses to write, since nginx would answer otherwise than the service."""

from pathlib import Path
from typing import Any

import pytest
from pydantic_core import to_json

from localidades_api.catalogue.pagination import link_header
from localidades_api.cli.mirroring.nginx import quoted
from localidades_api.cli.mirroring.plan import ListOf, Plan, Unit, _files, earlier_releases
from localidades_api.cli.mirroring.release_folder import ReleaseFolder
from localidades_api.cli.mirroring.summary import MirroredRelease, summarize
from localidades_api.downloads.file_types import FILE_TYPES
from localidades_api.errors import MirrorError
from localidades_api.http.paths import LOCALIDADES

HEADERS = {"etag": '"2020-01.json.0123456789ab"', "catalogue-release": "2020-01"}


def page(number: int, **headers: str) -> dict[str, Any]:
    """Return the entry of a page of a list of three."""
    link = link_header(LOCALIDADES, {"format": "json", "release": "2020-01"}, number, 3)
    return {
        "path": f"localidades/all/{number}.json",
        "target": f"{LOCALIDADES}?page={number}",
        "status": 200,
        "headers": {**HEADERS, "link": link, **headers},
    }


def summary(folder: Path, *entries: dict[str, Any], localities: int = 1) -> MirroredRelease:
    unit = Unit("lists-0")
    plan = Plan("2020-01", HEADERS["etag"], localities, (ListOf("localidades/all", LOCALIDADES, "", 3),), (unit,))
    draft = ReleaseFolder(folder)
    draft.prepare([unit])
    record = {"path": "localidades/1001/10010001.json"}
    (folder / "journal" / "lists-0.ndjson").write_bytes(b"".join(to_json(one) + b"\n" for one in (*entries, record)))
    return summarize(plan, "2020-01-0123456789ab", draft)


def test_headers_that_follow_from_the_rules_are_summed_up(tmp_path: Path) -> None:
    assert summary(tmp_path, page(1), page(2), page(3)).headers == HEADERS


@pytest.mark.parametrize("header", [{"etag": '"other"'}, {"link": "<?page=1>; rel=first"}, {"x": "more"}])
def test_answer_whose_headers_do_not_follow_from_the_rules_is_refused(tmp_path: Path, header: dict[str, str]) -> None:
    with pytest.raises(MirrorError, match=r"\?page=2 differ from those"):
        summary(tmp_path, page(1), page(2) | {"headers": {**page(2)["headers"], **header}})


def test_release_with_fewer_localities_than_it_says_is_refused(tmp_path: Path) -> None:
    with pytest.raises(MirrorError, match="1 localities of release 2020-01, which has 2"):
        summary(tmp_path, page(1), localities=2)


def test_value_is_written_as_nginx_reads_it() -> None:
    assert quoted('W/"a\\b"') == '"W/\\"a\\\\b\\""'
    for value in ("$host", "a\nb"):
        with pytest.raises(MirrorError):
            quoted(value)


def test_invented_demo_shares_no_history_with_a_catalogue() -> None:
    names = ["2012-06", "demo", "2018-09"]
    assert earlier_releases(names, "2018-09") == ["2012-06"]
    assert earlier_releases(names, "demo") == []
    assert earlier_releases(names, "2012-06") == []


def test_download_that_has_no_room_for_all_localities_is_left_out() -> None:
    for localities, missing in ((1_048_575, set[str]()), (1_048_576, {"download-xlsx"})):
        units = {unit.name for unit in _files("2020-01", localities, [])}
        assert {f"download-{format_}" for format_ in FILE_TYPES} - units == missing
