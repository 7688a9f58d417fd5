"""Page numbers, positions and links."""

import re
from urllib.parse import parse_qs, urlsplit

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from localidades_api.catalogue.pagination import PageNumber, neighbours
from localidades_api.http.headers import link_header

_pages = TypeAdapter(PageNumber)
_LARGEST = 2**53 - 1
_HOSTILE = "0123456789+-_.,eExX \t\n\r\x00\x0b\u00a0\u0661\u0967\uff11\u00b2\u2460\u200b\ufeffaN/%"


def links_of(header: str) -> dict[str, str]:
    found = re.findall(r'<([^<>]*)>; rel="(\w+)"', header)
    assert ", ".join(f'<{target}>; rel="{relation}"' for target, relation in found) == header
    assert len({relation for _, relation in found}) == len(found)
    return {relation: target for target, relation in found}


@given(st.data())
def test_link_header_has_the_existing_relations(data: st.DataObject) -> None:
    total = data.draw(st.integers(0, 10_000))
    page = data.draw(st.integers(1, max(total, 1)))
    links = links_of(link_header("/list/", {"format": "json", "release": "2018-09"}, page, total))
    expected = {"first": 1, "prev": page - 1, "next": page + 1, "last": max(total, 1)}
    if page == 1:
        del expected["prev"]
    if page >= total:
        del expected["next"]
    assert list(links) == list(expected)
    for relation, target in links.items():
        assert urlsplit(target).path == "/list/"
        query = parse_qs(urlsplit(target).query, strict_parsing=True)
        assert query == {"page": [str(expected[relation])], "format": ["json"], "release": ["2018-09"]}


@given(st.text())
def test_values_cannot_break_out_of_the_link_header(value: str) -> None:
    value = value.encode(errors="ignore").decode()
    links = links_of(link_header("/list/", {"release": value}, 1, 1))
    assert list(links) == ["first", "last"]
    assert parse_qs(urlsplit(links["first"]).query, keep_blank_values=True)["release"] == [value]


@given(st.data())
def test_neighbours_of_a_page_exist(data: st.DataObject) -> None:
    total = data.draw(st.integers(0, 10_000))
    page = data.draw(st.integers(1, max(total, 1)))
    around = {one for one in range(page - 2, page + 3) if 1 <= one <= total}
    assert neighbours(page, total) == sorted({1, max(total, 1)} | around)


@given(st.one_of(st.text(_HOSTILE), st.text(), st.integers(-1, _LARGEST + 1).map(str)))
@example("1" * 4300)
@example("0" * 4299 + "1")
@example("٣")
@example("0")
@example("1")
@example(str(_LARGEST))
@example(str(_LARGEST + 1))
@example("00000000000000001")
def test_page_number_is_its_digits_or_refused(text: str) -> None:
    is_page = re.fullmatch("[0-9]{1,16}", text) is not None and 1 <= int(text) <= _LARGEST
    if is_page:
        assert _pages.validate_python(text) == int(text)
    else:
        with pytest.raises(ValidationError):
            _pages.validate_python(text)
