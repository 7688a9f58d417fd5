"""Page numbers, positions and links."""

import re
from urllib.parse import parse_qs, urlsplit

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from localidades_api.catalogue.pagination import PAGE_SIZE, PageNumber, neighbours, positions
from localidades_api.http.headers import link_header

_pages = TypeAdapter(PageNumber)
_LARGEST = 2**53 - 1
_HOSTILE = "0123456789+-_.,eExX \t\n\r\x00\x0b\u00a0\u0661\u0967\uff11\u00b2\u2460\u200b\ufeffaN/%"

totals = st.integers(0, 400_000)


def pages_of(quantity: int) -> int:
    return -(-quantity // PAGE_SIZE)


def links_of(header: str) -> dict[str, str]:
    found = re.findall(r'<([^<>]*)>; rel="(\w+)"', header)
    assert ", ".join(f'<{target}>; rel="{relation}"' for target, relation in found) == header
    assert len({relation for _, relation in found}) == len(found)
    return {relation: target for target, relation in found}


@given(totals)
@example(0)
@example(1)
@example(50)
@example(51)
@example(304_363)
def test_pages_cover_every_position_once_in_order(quantity: int) -> None:
    last = 0
    for page in range(1, pages_of(quantity) + 1):
        begin, end = positions(page)
        assert begin == last + 1
        assert end - begin + 1 == PAGE_SIZE
        last = end
    assert quantity <= last < quantity + PAGE_SIZE


@given(st.integers(1, _LARGEST))
def test_pages_are_contiguous(page: int) -> None:
    assert positions(page + 1)[0] == positions(page)[1] + 1


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


@given(st.integers(1, 300))
def test_following_next_visits_each_page_once(total: int) -> None:
    visited, page = [], 1
    while True:
        visited.append(page)
        links = links_of(link_header("/", {}, page, total))
        if "next" not in links:
            break
        page = int(parse_qs(urlsplit(links["next"]).query)["page"][0])
    assert visited == list(range(1, total + 1))


@given(st.data())
def test_neighbours_of_a_page_exist(data: st.DataObject) -> None:
    total = data.draw(st.integers(0, 10_000))
    page = data.draw(st.integers(1, max(total, 1)))
    around = {one for one in range(page - 2, page + 3) if 1 <= one <= total}
    assert neighbours(page, total) == sorted({1, max(total, 1)} | around)


@given(st.one_of(st.text(_HOSTILE), st.text()))
@example("1" * 4300)
@example("0" * 4299 + "1")
@example("٣")
def test_arbitrary_page_number_is_refused_or_its_digits(text: str) -> None:
    try:
        page = _pages.validate_python(text)
    except ValidationError:
        assert not (re.fullmatch("[0-9]{1,16}", text) and 1 <= int(text) <= _LARGEST)
    else:
        assert re.fullmatch("[0-9]{1,16}", text)
        assert page == int(text)
        assert 1 <= page <= _LARGEST


@given(st.integers(1, _LARGEST))
@example(1)
@example(_LARGEST)
def test_page_number_in_plain_digits_is_accepted(page: int) -> None:
    assert _pages.validate_python(str(page)) == page


@pytest.mark.parametrize("text", ["0", "00", "9007199254740992", "9999999999999999", "00000000000000001"])
def test_page_number_out_of_bounds_is_refused(text: str) -> None:
    with pytest.raises(ValidationError):
        _pages.validate_python(text)
