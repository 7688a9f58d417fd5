"""Negotiation of the media type by Accept (RFC 9110 §12.5.1)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.datastructures import Headers

from localidades_api.errors import NotAcceptableError
from localidades_api.http.negotiation import accept_header, choose_coding, choose_media_type

JSON, HTML = "application/json", "text/html"
OFFERED = [JSON, HTML]


CHOSEN = """
json | *
# qualities; those of ranges are in the property below
html | text/html;q=1., application/json;q=0.
# other parameters are ignored
json | application/json; charset=utf-8
html | text/html;level=1;q=0.3, application/json;q=0.2
html | text/html;q=0.3;level=1, application/json;q=0.2
html | text/html;title="a, b"
html | text/html;title="; q=0"
html | text/html;title="\\"; q=0"
json | text/html;title="\\\\";q=0.1, application/json;q=0.2
# empty elements, and types that aren't offered
html |  , text/html ,,
json | image/*, application/json;q=0.001
# real programs
html | text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8
html | text/html, image/gif, image/jpeg, *; q=.2, */*; q=.2
json | application/json, text/plain, */*
json | application/json, text/javascript, */*; q=0.01
"""
REFUSED = (
    "image/png", "*/*;q=0", "*;q=0", "application/json;q=0, text/html;q=0.0", "application/*;q=0, text/*;q=0, */*;q=1",
    "application/jsonx", "application", "html", "/", "text/", "/html", "*/html", "text/html/json", "text /html",
    "text/html application/json", "text/html; application/json", "text/html;q", "text/html;q=", "text/html;q=x",
    "text/html;q=-1", "text/html;q=1.1", "text/html;q=2", "text/html;q=0.1234", "text/html;q=1e-1", "text/html;q=0,5",
    "text/html;q = 0.5", "text/html;q=\N{ARABIC-INDIC DIGIT ZERO}", 'text/html;q="1"', 'text/html;title="',
    'text/html;title="a', 'text/html;title="a\\', 'text/html;title="a"b', '"text/html"',
    "\N{LATIN SMALL LETTER LONG S}/html", "text/html;q=nan", "text/html;", "\x00", "text/html\N{NO-BREAK SPACE}",
    "a/b," * 2000 + "text/html", "text/html" + " " * 5000, ",", " ",
)  # fmt: skip


@pytest.mark.parametrize("line", [line for line in CHOSEN.strip().splitlines() if line[0] != "#"])
def test_preferred_media_type_is_chosen(line: str) -> None:
    chosen, _, accept = line.partition(" | ")
    assert choose_media_type(accept, OFFERED) == {"json": JSON, "html": HTML}[chosen]


@pytest.mark.parametrize("accept", REFUSED)
def test_header_that_allows_nothing_or_is_garbage_is_refused(accept: str) -> None:
    with pytest.raises(NotAcceptableError) as caught:
        choose_media_type(accept, OFFERED)
    assert caught.value.members == {"available": OFFERED}
    assert str(caught.value) == "The Accept header allows none of: application/json, text/html."


def test_accept_may_be_missing_or_span_several_lines() -> None:
    for lines, joined in (([], None), ([""], None), ([JSON, HTML], f"{JSON}, {HTML}"), (["", HTML], HTML)):
        assert accept_header(Headers(raw=[(b"accept", line.encode()) for line in lines])) == joined
    assert choose_media_type(None, OFFERED) == JSON


_RANGES = st.sampled_from([JSON, HTML, "text/csv", "text/*", "application/*", "*/*", "image/png", "image/*"])
_PIECES = st.sampled_from([*'*/;,=.01 \t"\\ñ', "text", "html", "json", "application", "q=", "Q=", "0.5", ".2"])
_HOSTILE = st.one_of(st.text(), st.text('*/;,q=.01 \t"\\'), st.lists(_PIECES).map("".join))


def outcome(accept: str) -> str | None:
    try:
        return choose_media_type(accept, OFFERED)
    except NotAcceptableError:
        return None


@given(_HOSTILE)
def test_arbitrary_header_gives_an_offered_type_or_is_refused(accept: str) -> None:
    assert outcome(accept) in {*OFFERED, None}


@given(st.lists(st.tuples(_RANGES, st.integers(0, 1000)), min_size=1, max_size=12))
def test_most_specific_range_decides_in_any_order_and_spelling(ranges: list[tuple[str, int]]) -> None:
    qualities = []
    for media_type in OFFERED:
        names = (media_type, media_type.partition("/")[0] + "/*", "*/*")
        given_by = [[quality for name, quality in ranges if name == wanted] for wanted in names]
        qualities.append(next((max(found) for found in given_by if found), 0))
    expected = OFFERED[qualities.index(max(qualities))] if max(qualities) else None
    elements = [f"{name};q={quality / 1000:.3f}" for name, quality in ranges]
    header = ", ".join(elements)
    loose = "," + header.replace(",", " ,,\t").replace(";", " ; ")
    assert {outcome(one) for one in (header, header.upper(), ", ".join(elements[::-1]), loose)} == {expected}


@pytest.mark.parametrize(
    ("header", "coding"),
    [
        ("br, gzip", "br"), ("gzip", "gzip"), ("x-gzip", "gzip"), ("br;q=0.5, gzip", "gzip"), ("br;q=x, gzip", "gzip"),
        ("*;q=0.5", "br"), ("identity, br;q=0.5", None), ("identity, gzip", "gzip"),
        ("identity;q=0.5, gzip;q=0.4", None), ("gzip;q=0", None), ("br;q=0.0, gzip;q=0.000", None),
        ("GZIP ; Q=0.9 , br;q=0.800", "gzip"), ("*;q=0.5, br;q=0", "gzip"), ("gzip;q=2, br;q=x", None),
        ("deflate, compress", None), ("", None),
    ],
)  # fmt: skip
def test_best_acceptable_coding_is_chosen(header: str, coding: str | None) -> None:
    assert choose_coding([header], ["br", "gzip"]) == coding
