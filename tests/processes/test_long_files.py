"""Files that repeat something in any of their parts: none holds the server, and none takes its memory."""

import io
import json
import zipfile
from collections.abc import Callable, Iterator, Mapping
from datetime import date
from itertools import product
from typing import NamedTuple

import pytest
import xlsxwriter

from localidades_api.bulk.formats import XLSX
from localidades_api.http.paths import MATCH
from tests.support.machine import MAX_HELD, ask_watched, forget_peak_memory, memory_of
from tests.support.postgres import new_database
from tests.support.wire import Live, await_names, serving
from tests.support.workbooks import SHEET, edited

_MAX_TAKEN = 64 * 1024**2  # bytes
_LITTLE, _MUCH = 900_000, 30_000_000  # bytes that a part grows by: within any limit, and beyond
_TARGETS = (f"{MATCH}?format=xlsx&summary=true", f"{MATCH}preview/")


@pytest.fixture(scope="module")
def live(server: str, seeded: str) -> Iterator[Live]:
    with new_database(server, seeded) as url, serving(url) as live:
        await_names(live.base)
        yield live


def sound() -> bytes:
    """Return a workbook with a filter, a table, a link, a date and another sheet."""
    file = io.BytesIO()
    with xlsxwriter.Workbook(file) as book:
        sheet = book.add_worksheet()
        sheet.write_row("A1", ("Localidad", "Fecha"))
        sheet.write_url("A2", "https://example.com/", string="Asientos")
        sheet.write_datetime("B2", date(2026, 3, 1), book.add_format({"num_format": "dd/mm/yyyy"}))
        sheet.autofilter("A1:B2")
        sheet.add_table("A10:B11")
        book.add_worksheet()
    return file.getvalue()


_SOUND = sound()
_PLACES = [(part, b"</") for part in zipfile.ZipFile(io.BytesIO(_SOUND)).namelist()]
_PLACES += [(SHEET, before) for before in (b"<sheetData", b"<row", b"</row", b"</sheetData")]


def comments(part: bytes, size: int, start: bytes = b"") -> bytes:
    return (b"<!--" + start + part * (100_000 // len(part)) + b"<-->") * (size // 100_000)


def repeating(part: bytes) -> Callable[[int], bytes]:
    return lambda size: part * (size // len(part))


_REPEATED: Mapping[str, Callable[[int], bytes]] = {
    "comment": lambda size: b"<!--" + b"</a:" * (size // 4) + b"-->",
    "end tags": lambda size: comments(b"</a:", size),
    "filters": lambda size: comments(b' name="_xlnm._FilterDatabase"', size, b"<definedName"),
    "blanks": repeating(b" "),
    "elements": repeating(b"<a/>"),
    "cells": repeating(b'<c s="1"/>'),
    "columns": repeating(b'<col min="1" max="2"/>'),
    "relations": repeating(b'<Relationship Id="x" Type="/table" Target="/xl/tables/table1.xml"/>'),
    "formats": repeating(b'<numFmt numFmtId="1" formatCode="d"/><xf/>'),
    "escapes": lambda size: b"<si><t>" + b"_x0041_" * (size // 7) + b"</t></si>",
    "nested": lambda size: b"<a>" * (size // 7) + b"</a>" * (size // 7),
}


class Sent(NamedTuple):
    """A workbook of which a part has something before the last place of some XML, and where it is sent."""

    target: str
    part: str
    before: bytes
    what: str
    size: int

    @property
    def body(self) -> bytes:
        def put(xml: bytes) -> bytes:
            at = xml.rindex(self.before)
            return xml[:at] + _REPEATED[self.what](self.size) + xml[at:]

        return edited(_SOUND, {self.part: put})


# Each has held a server for seconds, or taken hundreds of megabytes.
_KNOWN = [
    Sent(_TARGETS[0], part, b"</", what, size)
    for part, what, size in (
        ("[Content_Types].xml", "comment", _MUCH),
        ("[Content_Types].xml", "blanks", _MUCH),
        ("xl/workbook.xml", "filters", _LITTLE),
        ("xl/worksheets/_rels/sheet1.xml.rels", "elements", _LITTLE),
        ("xl/sharedStrings.xml", "escapes", 15_000_000),
    )
]
_ALL = [Sent(target, *place, what, size) for target, place, what, size in
        product(_TARGETS, _PLACES, _REPEATED, (_LITTLE, _MUCH))]  # fmt: skip


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("sent", [[*_KNOWN, *_ALL[::251]], pytest.param(_ALL[::3], marks=pytest.mark.tail)])
def test_part_of_a_workbook_that_repeats_something_holds_no_server(live: Live, sent: list[Sent]) -> None:
    held = list[tuple[float, Sent]]()
    for request in sent:
        body, before = request.body, memory_of(live, "VmRSS")
        forget_peak_memory(live)
        held.append((ask_watched(live, request.target, ("Content-Type", XLSX), body), request))
        assert memory_of(live, "VmHWM") < before + _MAX_TAKEN, request
    worst = sorted(held)[-5:]
    assert worst[-1][0] <= MAX_HELD, worst


_LETTERS = b"A" * 120_000


@pytest.mark.parametrize(
    ("media_type", "body"),
    [
        (XLSX, edited(_SOUND, {SHEET: lambda xml: xml.replace(b'r="A2"', b'r="' + _LETTERS + b'2"')})),
        (
            "application/json",
            json.dumps({"rows": [{"nombre": "x", **dict.fromkeys(map(str, range(16_000)))}]}).encode(),
        ),
        ("text/csv", b"nombre" + b",x" * 31 + b"\n" + b",".join([b"\x01" * 32_000] * 32)),
    ],
    ids=["reference", "members", "control characters"],
)
def test_cells_hold_no_server(live: Live, media_type: str, body: bytes) -> None:
    assert ask_watched(live, _TARGETS[0], ("Content-Type", media_type), body) <= MAX_HELD
