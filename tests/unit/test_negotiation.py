"""Negotiation of the media type by Accept (RFC 9110 §12.5.1)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.datastructures import Headers

from localidades_api.errors import NotAcceptableError
from localidades_api.http.negotiation import accept_header, choose_coding, choose_media_type

JSON, HTML, CSV = "application/json", "text/html", "text/csv"
OFFERED = [JSON, HTML]


@pytest.mark.parametrize(
    ("accept", "chosen"),
    [
        (None, JSON),
        ("*/*", JSON),
        ("*", JSON),
        (JSON, JSON),
        (HTML, HTML),
        ("text/*", HTML),
        ("application/*", JSON),
        ("Application/JSON", JSON),
        ("TEXT/html", HTML),
        # qualities
        ("text/html;q=0.5, application/json;q=0.4", HTML),
        ("text/html;q=0.4, application/json;q=0.5", JSON),
        ("text/html;q=0.999, application/json;q=1", JSON),
        ("text/html;q=1.000, application/json;q=0.999", HTML),
        ("text/html; q=0.5 , application/json ;q=0.4", HTML),
        ("text/html\t;\tq=0.5,\tapplication/json;q=0.4", HTML),
        ("text/html;Q=0.5, application/json;Q=0.4", HTML),
        ("text/html;q=1., application/json;q=0.", HTML),
        ("text/html;q=0.5, application/json;q=0.5", JSON),
        ("application/json;q=0.001", JSON),
        # the most specific range gives the quality, not the highest
        ("*/*;q=1, application/json;q=0.1", HTML),
        ("text/*;q=0.9, text/html;q=0.1, application/json;q=0.5", JSON),
        ("application/*;q=0.1, */*;q=0.9", HTML),
        ("*/*;q=0.9, text/*;q=0.1", JSON),
        # a quality of 0 forbids
        ("application/json;q=0, */*", HTML),
        ("text/html;q=0, */*;q=0.1", JSON),
        ("text/*;q=0, */*", JSON),
        ("*/*;q=0, text/html", HTML),
        # other parameters are ignored
        ("application/json; charset=utf-8", JSON),
        ("text/html;level=1;q=0.3, application/json;q=0.2", HTML),
        ("text/html;q=0.3;level=1, application/json;q=0.2", HTML),
        ('text/html;title="a, b"', HTML),
        ('text/html;title="; q=0"', HTML),
        ('text/html;title="\\"; q=0"', HTML),
        ('text/html;title="\\\\";q=0.1, application/json;q=0.2', JSON),
        ('text/html;title=""', HTML),
        # empty elements are ignored
        (",text/html,,", HTML),
        (" , text/html , ", HTML),
        # types that aren't offered don't matter
        ("image/png, text/html;q=0.1", HTML),
        ("image/*, application/json;q=0.001", JSON),
        # real programs
        (
            "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,image/apng,*/*;q=0.8,"
            "application/signed-exchange;v=b3;q=0.7",
            HTML,
        ),
        ("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", HTML),
        ("text/html, image/gif, image/jpeg, *; q=.2, */*; q=.2", HTML),
        ("application/json, text/plain, */*", JSON),
        ("application/json, text/javascript, */*; q=0.01", JSON),
        ("text/x-json, application/json;q=0.9, text/*;q=0.1", JSON),
        ("application/json, application/*+json", JSON),
    ],
)
def test_preferred_media_type_is_chosen(accept: str | None, chosen: str) -> None:
    assert choose_media_type(accept, OFFERED) == chosen


@pytest.mark.parametrize(
    "accept",
    [
        "image/png",
        "*/*;q=0",
        "*;q=0",
        "application/json;q=0, text/html;q=0.0",
        "application/*;q=0, text/*;q=0, */*;q=1, image/png",
        "text/plain",
        "application/jsonx",
        "application",
        "json",
        "html",
        "/",
        "text/",
        "/html",
        "*/html",
        "text/html/json",
        "text /html",
        "text/ html",
        "text/html application/json",
        "text/html; application/json",
        "text/html;q",
        "text/html;q=",
        "text/html;q=x",
        "text/html;q=-1",
        "text/html;q=1.1",
        "text/html;q=2",
        "text/html;q=0.1234",
        "text/html;q=1e-1",
        "text/html;q=0,5",
        "text/html;q = 0.5",
        "text/html;q=\N{ARABIC-INDIC DIGIT ZERO}",
        'text/html;q="1"',
        'text/html;title="',
        'text/html;title="a',
        'text/html;title="a\\',
        'text/html;title="a"b',
        '"text/html"',
        "\N{LATIN SMALL LETTER LONG S}/html",
        "text/html;q=inf",
        "text/html;q=nan",
        "()",
        "text/html;",
        "\x00",
        "text/html\N{NO-BREAK SPACE}",
        "a/b," * 2000 + "text/html",
        "text/html" + " " * 5000,
        ",",
        " ",
    ],
)
def test_header_that_allows_nothing_or_is_garbage_is_refused(accept: str) -> None:
    with pytest.raises(NotAcceptableError) as caught:
        choose_media_type(accept, OFFERED)
    assert caught.value.members == {"available": OFFERED}
    assert str(caught.value) == "The Accept header allows none of: application/json, text/html."


@pytest.mark.parametrize(
    ("lines", "joined"),
    [
        ([], None),
        ([""], None),
        (["  ", ""], None),
        ([JSON], JSON),
        ([JSON, HTML], f"{JSON}, {HTML}"),
        (["", HTML], HTML),
    ],
)
def test_accept_may_span_several_lines(lines: list[str], joined: str | None) -> None:
    headers = Headers(raw=[(b"accept", line.encode()) for line in lines])
    assert accept_header(headers) == joined


# -- Properties

_QUALITIES = st.integers(0, 1000)
_RANGES = st.sampled_from([JSON, HTML, CSV, "text/*", "application/*", "*/*", "image/png", "image/*"])
_PIECES = st.sampled_from([*'*/;,=.01 \t"\\ñ', "text", "html", "json", "application", "q=", "Q=", "0.5", ".2"])
_HOSTILE = st.one_of(st.text(), st.text('*/;,q=.01 \t"\\'), st.lists(_PIECES).map("".join))


def written(ranges: list[tuple[str, int]]) -> str:
    return ", ".join(f"{name};q={quality / 1000:.3f}" for name, quality in ranges)


def outcome(accept: str, offered: list[str] = OFFERED) -> str | None:
    try:
        return choose_media_type(accept, offered)
    except NotAcceptableError:
        return None


@given(_HOSTILE)
def test_arbitrary_header_gives_an_offered_type_or_is_refused(accept: str) -> None:
    assert outcome(accept) in {*OFFERED, None}


@given(st.lists(st.tuples(_RANGES, _QUALITIES), min_size=1))
def test_order_of_ranges_does_not_matter(ranges: list[tuple[str, int]]) -> None:
    assert outcome(written(ranges)) == outcome(written(ranges[::-1]))


_LISTS = st.lists(st.tuples(_RANGES, _QUALITIES), min_size=1, max_size=12)


def expected(ranges: list[tuple[str, int]]) -> str | None:
    """Find the choice in another way: from the most specific range to the least."""
    qualities = []
    for media_type in OFFERED:
        names = (media_type, media_type.partition("/")[0] + "/*", "*/*")
        given_by = [[quality for name, quality in ranges if name == wanted] for wanted in names]
        qualities.append(next((max(found) for found in given_by if found), 0))
    return OFFERED[qualities.index(max(qualities))] if max(qualities) else None


@given(_LISTS)
def test_most_specific_range_decides(ranges: list[tuple[str, int]]) -> None:
    assert outcome(written(ranges)) == expected(ranges)


@given(_LISTS)
def test_case_spaces_and_empty_elements_do_not_matter(ranges: list[tuple[str, int]]) -> None:
    header = written(ranges)
    assert outcome(header) == outcome(header.upper())
    assert outcome(header) == outcome("," + header.replace(",", " ,,\t").replace(";", " ; "))


@given(_LISTS)
def test_adding_a_weak_wildcard_never_causes_a_refusal(ranges: list[tuple[str, int]]) -> None:
    if outcome(written(ranges)) is not None:
        assert outcome(f"{written(ranges)}, */*;q=0.001") is not None


@given(_LISTS)
def test_excluding_all_others_keeps_the_choice(ranges: list[tuple[str, int]]) -> None:
    narrow = [(name, quality) for name, quality in ranges if name != "*/*"]
    assert outcome(written([*narrow, ("*/*", 0)])) == (outcome(written(narrow)) if narrow else None)


@given(_LISTS)
def test_chosen_media_type_is_acceptable_alone(ranges: list[tuple[str, int]]) -> None:
    chosen = outcome(written(ranges), [JSON, HTML, CSV])
    alone = [outcome(written(ranges), [one]) for one in (JSON, HTML, CSV)]
    assert (chosen in alone) if chosen else not any(alone)


@given(_LISTS, st.integers(0, 12), st.sampled_from(["@", "text", "text/", "text/html;q=7", '"', "a b"]))
def test_list_with_a_bad_element_is_refused(ranges: list[tuple[str, int]], place: int, bad: str) -> None:
    elements = written(ranges).split(", ")
    elements.insert(place, bad)
    assert outcome(", ".join(elements)) is None


@given(st.text(st.characters(min_codepoint=0x20, max_codepoint=0x7E), max_size=500))
def test_quoted_parameters_are_ignored(text: str) -> None:
    quoted = text.replace("\\", "\\\\").replace('"', '\\"')
    assert outcome(f'text/html;note="{quoted}"') == HTML


@pytest.mark.parametrize(
    ("header", "coding"),
    [
        ("br, gzip", "br"),
        ("gzip", "gzip"),
        ("x-gzip", "gzip"),
        ("br;q=0.5, gzip", "gzip"),
        ("br;q=x, gzip", "gzip"),
        ("*;q=0.5", "br"),
        ("identity, br;q=0.5", None),
        ("identity, gzip", "gzip"),
        ("identity;q=0.5, gzip;q=0.4", None),
        ("gzip;q=0", None),
        ("br;q=0.0, gzip;q=0.000", None),
        ("GZIP ; Q=0.9 , br;q=0.800", "gzip"),
        ("*;q=0.5, br;q=0", "gzip"),
        ("gzip;q=2, br;q=x", None),
        ("deflate, compress", None),
        ("", None),
    ],
)
def test_best_acceptable_coding_is_chosen(header: str, coding: str | None) -> None:
    assert choose_coding([header], ["br", "gzip"]) == coding
