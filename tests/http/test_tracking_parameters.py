"""Tracking parameters: ignored on HTML pages, unknown to programs."""

import httpx
import pytest

from tests.support.pages import BROWSER, Page
from tests.support.wire import LOCALIDADES

INDEX = "/api/census/"
PAGES = [
    INDEX, LOCALIDADES, f"{LOCALIDADES}?page=2", f"{LOCALIDADES}?estado_id=1&lang=es", f"{LOCALIDADES}10010001/",
    f"{INDEX}municipios/1001/", f"{INDEX}releases/", "/problems", "/match",
]  # fmt: skip
TRACKED = [
    "utm_source=boletin", "utm_source=a&utm_source=b", "utm_medium=x&fbclid=IwAR0&gclid=", "mc_cid=%FF&mc_eid=%00",
    "_gl=1*abc*_ga*MTIz", "fbclid", "msclkid=a%0Ab",
]  # fmt: skip


async def test_tracking_parameters_do_not_change_the_page(client: httpx.AsyncClient) -> None:
    for target in PAGES:
        plain = await client.get(target, headers=BROWSER)
        path, _, own = target.partition("?")
        for query in TRACKED if target == LOCALIDADES else TRACKED[:2]:
            for tracked in (f"{path}?{own}&{query}" if own else f"{path}?{query}", f"{path}?{query}&{own}"):
                page = await client.get(tracked.removesuffix("&"), headers=BROWSER)
                assert (page.status_code, page.text) == (200, plain.text), tracked
                assert page.headers.get("link") == plain.headers.get("link")


async def test_problem_page_omits_tracking_parameters(client: httpx.AsyncClient) -> None:
    missing = Page.of(await client.get(f"{LOCALIDADES}999999999/?utm_source=x", headers=BROWSER))
    assert "utm_source" not in missing.one("html").text
    assert not [link for link in missing.all("a") if "utm" in link.attributes["href"]]


@pytest.mark.parametrize(
    ("target", "status", "location"),
    [
        (f"{LOCALIDADES}010010001/?utm_source=x&lang=es", 308, "../10010001/?lang=es"),
        (f"{LOCALIDADES}010010001/?fbclid=x", 308, "../10010001/"),
        (f"{LOCALIDADES[:-1]}?fbclid=x", 308, "localidades/"),
        (f"{LOCALIDADES}?utm_source=x&page_size=1000", 307, "?page_size=100&page=1"),
        (f"{LOCALIDADES}filter/?utm_source=x&clave=&ambito=U", 303, "../?ambito=U"),
        (f"{INDEX}estados/filter/?fbclid=x&search=", 303, "../"),
    ],
)
async def test_redirect_drops_tracking_parameters(
    client: httpx.AsyncClient, target: str, status: int, location: str
) -> None:
    answer = await client.get(target, headers=BROWSER)
    assert (answer.status_code, answer.headers["location"]) == (status, location)


async def test_tracking_parameters_are_unknown_to_programs(client: httpx.AsyncClient) -> None:
    for target, headers in ((f"{LOCALIDADES}?utm_source=x", {}), (f"{LOCALIDADES}?utm_source=x&format=json", BROWSER)):
        answer = await client.get(target, headers=headers)
        assert answer.status_code == 422
        assert [fault["parameter"] for fault in answer.json()["errors"]] == ["utm_source"]
