"""Excel workbooks: read as rows, written with answer columns, and refused with an explanation."""

import csv
import io
import os
import re
import tracemalloc
import zipfile
from typing import Any, cast

import openpyxl
import pytest
import xlsxwriter
from hypothesis import given
from hypothesis import strategies as st
from openpyxl.styles import Font, PatternFill

from localidades_api.bulk import workbook_writers
from localidades_api.bulk.answer_columns import MATCH_COLUMNS, in_language
from localidades_api.bulk.answers import describe_problem
from localidades_api.bulk.formats import XLSX
from localidades_api.bulk.input_rows import Answer
from localidades_api.bulk.readers import RowReader
from localidades_api.bulk.roles import POINTS
from localidades_api.bulk.writers import writer
from localidades_api.errors import UnreadableBodyError
from localidades_api.html.languages.translators import LANGUAGES, Language
from tests.support.bulk import answer_all, open_rows, rows_in
from tests.support.workbooks import SHEET, add_nameless, edited, shared_texts, workbook_of

ANSWER = {**describe_problem("A <sentence> & more."), "outcome": "exact", "cvegeo": "010010001", "score": 99.5}
ANSWERED = ["match_outcome", "match_cvegeo", "match_label", "match_score", "match_margin", "match_faults",
            "match_candidates", "match_withdrawn", "match_problem"]  # fmt: skip


def opened(data: bytes, **options: Any) -> RowReader:  # noqa: ANN401  # passed on
    return open_rows(data, XLSX, **options)


def answered(source: RowReader, answer: Answer = ANSWER, *, read_only: bool = False) -> openpyxl.Workbook:
    """Return the workbook that answers every row alike; with `read_only`, as far as it says that it has cells."""
    return openpyxl.load_workbook(io.BytesIO(answer_all(source, answer, XLSX)), read_only=read_only)


def values(workbook: openpyxl.Workbook) -> list[list[object]]:
    try:
        return [list(row) for row in workbook.worksheets[0].iter_rows(values_only=True)]
    finally:
        workbook.close()


def test_texts_numbers_and_empty_cells_are_read() -> None:
    data = workbook_of(("Localidad", "lat", "lon", "x"), ("Peñón  <&>\n2", 21.880833000000001, -102), (), (None, 1))
    assert [row.sent for row in rows_in(data, XLSX)] == [["Peñón  <&> 2", "21.880833", "-102", ""], ["", "1", "", ""]]
    assert [row.number for row in rows_in(data, XLSX)] == [2, 4]
    [row] = rows_in(workbook_of(("Latitud", "Longitud"), (21.5, -102)), XLSX, roles=POINTS)
    assert row.cells == {"latitud": 21.5, "longitud": -102.0}


def test_answer_keeps_columns_formats_and_sheets_and_stores_keys_as_text() -> None:
    def decorate(book: openpyxl.Workbook) -> None:
        sheet = book.worksheets[0]
        sheet["A1"].font = sheet["B1"].font = Font(bold=True)
        sheet["B2"].number_format = "dd/mm/yyyy"
        sheet["D2"].fill = PatternFill("solid", fgColor="FFFF0000")  # has no value, where the answer's columns begin
        sheet.column_dimensions["A"].width = 44
        sheet.freeze_panes = "A2"
        book.create_sheet("Notas").append(["mine"])

    book = answered(opened(workbook_of(("Localidad", "n"), ("A", 45000), ("B", 2, "x"), change=decorate)))
    sheet = book.worksheets[0]
    assert values(book)[0] == ["Localidad", "n", None, *ANSWERED]
    assert values(book)[2] == ["B", 2, "x", "exact", "010010001", None, 99.5, *[None] * 4, ANSWER["problem"]]
    assert (sheet["E2"].data_type, sheet["G2"].data_type) == ("s", "n")
    assert sheet["B2"].number_format == "dd/mm/yyyy"
    assert sheet["B2"].is_date
    assert sheet["D1"].font.bold
    assert (sheet.column_dimensions["A"].width, sheet.freeze_panes) == (44, "A2")
    assert book["Notas"]["A1"].value == "mine"


@pytest.mark.parametrize("is_new", [False, True])
def test_answer_is_within_the_range_of_cells_and_its_long_text_is_cut(*, is_new: bool) -> None:
    """It is cut at a character that may be escaped."""
    text = "x" * 32_765 + "&<&<"
    source = open_rows(f"nombre\n{text}\n".encode()) if is_new else opened(workbook_of(("nombre",), ("A",)))
    header, row = values(answered(source, {**ANSWER, "label": text}, read_only=True))
    assert header == ["nombre", *ANSWERED]
    cut = text[:32_767]
    assert row == [cut if is_new else "A", "exact", "010010001", cut, 99.5, *[None] * 4, ANSWER["problem"]]


def test_workbook_written_by_another_library_is_answered() -> None:
    file = io.BytesIO()
    with xlsxwriter.Workbook(file) as workbook:
        sheet = workbook.add_worksheet()
        sheet.write_row(0, 0, ["nombre", "doble"])
        sheet.write_formula(1, 0, '="La "&"Paz"', value="La Paz")
        sheet.write_rich_string(2, 0, "El ", workbook.add_format({"bold": True}), "Zapote")
    source = opened(file.getvalue())
    assert [row.cells["nombre"] for row in source] == ["La Paz", "El Zapote"]
    assert values(answered(source))[1][0] == '="La "&"Paz"'


@pytest.mark.parametrize("header_row", [1, 0])
def test_xml_names_may_have_a_prefix_and_cells_beyond_no_value(header_row: int) -> None:
    def prefixed(xml: bytes) -> bytes:
        xml = xml.replace(b"</row>", b'<c r="C9" s="0" /></row>')
        return re.sub(rb"<(/?)(\w)", rb"<\1x:\2", xml).replace(b"xmlns=", b"xmlns:x=")

    data = edited(workbook_of(("nombre",), ("A",)), {SHEET: prefixed})
    assert [row.sent for row in rows_in(data, XLSX, header_row=header_row)] == [["nombre"], ["A"]][header_row:]
    with zipfile.ZipFile(io.BytesIO(answer_all(opened(data, header_row=header_row), ANSWER, XLSX))) as archive:
        xml = archive.read(SHEET)
    assert b'<x:c r="C2" t="inlineStr"><x:is><x:t>010010001</x:t></x:is></x:c>' in xml
    assert b"C9" not in xml


@given(st.lists(st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=8), min_size=4, max_size=4)))
def test_csv_rows_are_copied_unchanged_into_a_new_workbook(rows: list[list[str]]) -> None:
    body = io.StringIO(newline="")
    csv.writer(body).writerows([["nombre", "b", "c", "d"], *rows])
    source = open_rows(body.getvalue().encode())
    sent = [cast("list[str]", row.sent) for row in source]
    read = [cast("list[str]", row.sent)[:4] for row in rows_in(answer_all(source, ANSWER, XLSX), XLSX)]
    assert read == [[re.sub("[\r\n]", " ", cell) for cell in row] for row in sent]


# Workbooks that are refused

CANT = "^The workbook can't be read: save it as .xlsx, without a password"
SOUND = workbook_of(("nombre",), ("A",))


def unpacked_to(megabytes: int) -> bytes:
    """Return a workbook whose directory says that its first member unpacks to so much."""
    at = SOUND.index(b"PK\x01\x02") + 24
    return SOUND[:at] + (megabytes * 1024**2).to_bytes(4, "little") + SOUND[at + 4 :]


def with_directory_at(offset: int) -> bytes:
    """Return a workbook whose directory is said to be elsewhere, and the members before the file."""
    at = SOUND.rindex(b"PK\x05\x06") + 16
    return SOUND[:at] + offset.to_bytes(4, "little") + SOUND[at + 4 :]


_FILE = io.BytesIO(SOUND)
with zipfile.ZipFile(_FILE, "a") as _archive:
    _archive.writestr("x", b"x", zipfile.ZIP_BZIP2)
SHARED = shared_texts("nombre", "A")
DOCTYPE = b'<?xml version="1.0"?><!DOCTYPE a [<!ENTITY b SYSTEM "http://127.0.0.1:9/">]><worksheet>&b;</worksheet>'
LAUGHS = b'<!DOCTYPE a [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;">]><worksheet>&b;</worksheet>'


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        pytest.param(data, sentence, id=name)
        for name, data, sentence in [
            ("cut short", SOUND[:-30], CANT),
            ("no zip", b"PK\x03\x04 nothing", CANT),
            ("members before the file", with_directory_at(1_000_000), CANT),
            ("no sheet", edited(SOUND, {SHEET: lambda _: None}), CANT),
            ("broken XML", edited(SOUND, {SHEET: lambda xml: xml[:-30]}), CANT),
            ("no relations", edited(SOUND, {"xl/_rels/workbook.xml.rels": lambda _: None}), CANT),
            ("other XML", edited(SOUND, {"xl/workbook.xml": lambda _: b"<a/>"}), CANT),
            ("external entity", edited(SOUND, {SHEET: lambda _: DOCTYPE}), CANT),
            ("expanding entities", edited(SOUND, {SHEET: lambda _: LAUGHS}), CANT),
            ("entities in texts", edited(SHARED, {"xl/sharedStrings.xml": lambda _: LAUGHS}), CANT),
            ("missing text", edited(SHARED, {"xl/sharedStrings.xml": lambda _: b"<sst/>"}), CANT),
            ("no number", edited(SHARED, {SHEET: lambda xml: xml.replace(b"<v>1</v>", b"<v>x</v>")}), CANT),
            ("zip", edited(SOUND, {"xl/workbook.xml": lambda _: None}), "^The file is a zip, and no Excel workbook"),
            ("renamed macros", edited(SOUND, {"XL\\VBAproject.bin": lambda _: b"x"}), "^The workbook has macros"),
            ("macros", edited(SOUND, {"xl/vbaProject.bin": lambda _: b"x"}), "^The workbook has macros: save it as"),
            ("links", edited(SOUND, {"xl/externalLinks/externalLink1.xml": lambda _: b"<a/>"}), "links to other files"),
            ("bomb", unpacked_to(1025), "than 512 MB"),
            ("small bomb", unpacked_to(65), "to 200 times its size"),
            ("bzip2", _FILE.getvalue(), CANT),
            ("large", SOUND + b" " * (40 * 1024**2), "larger than 20 MB"),
            ("empty", workbook_of(), "^The sheet is empty: begin it with the columns `nombre,municipio,estado`"),
            ("long row", workbook_of(("nombre",), ["x" * 32000] * 40), "Row 2 of the sheet is longer than 1 MB"),
        ]
    ],
)
def test_unreadable_workbook_is_explained(data: bytes, sentence: str) -> None:
    with pytest.raises(UnreadableBodyError, match=sentence):
        opened(data)


@pytest.mark.parametrize("language", LANGUAGES)
def test_workbook_that_comes_back_with_its_answers_has_room_for_them(language: Language) -> None:
    """A sender's workbook of 20 MB is larger with the columns that it got."""

    def with_picture(data: bytes) -> bytes:
        file = io.BytesIO(data)
        with zipfile.ZipFile(file, "a") as archive:
            archive.writestr("xl/media/image1.png", os.urandom(20 * 1024**2))
        return file.getvalue()

    with pytest.raises(UnreadableBodyError, match="larger than 20 MB"):
        opened(with_picture(SOUND))
    columns = in_language(MATCH_COLUMNS, language)
    own = with_picture(answer_all(opened(SOUND), ANSWER, XLSX, columns))
    assert values(answered(opened(own)))[1][:2] == ["A", "exact"]


def test_workbook_may_have_a_thousand_members() -> None:
    def padded(count: int) -> bytes:
        file = io.BytesIO(SOUND)
        with zipfile.ZipFile(file, "a") as archive:
            for number in range(count - len(archive.infolist())):
                archive.writestr(f"docProps/{number}", b"")
        return file.getvalue()

    assert [row.cells for row in opened(padded(1000))] == [{"nombre": "A"}]
    with pytest.raises(UnreadableBodyError, match="or to 1,000 files"):
        opened(padded(1001))


def test_member_without_a_name_is_copied_like_any_other() -> None:
    file = io.BytesIO(SOUND)
    with zipfile.ZipFile(file, "a") as archive:
        add_nameless(archive)
    assert values(answered(opened(file.getvalue())))[0][-len(ANSWERED) :] == ANSWERED


@pytest.mark.tail
def test_workbook_that_would_exhaust_memory_is_refused() -> None:
    many = edited(SHARED, {"xl/sharedStrings.xml": lambda _: b"<sst>" + b"<si/>" * 4_500_000 + b"</sst>"})
    with pytest.raises(UnreadableBodyError, match="too many different texts"):
        opened(many)


def test_sheet_without_room_for_the_answers_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    data = workbook_of(("nombre",), ("A",), change=lambda book: book.worksheets[0].cell(3, 16384, "stray"))
    with pytest.raises(UnreadableBodyError, match="a value in column XFD, which leaves no room"):
        writer(XLSX, opened(data))
    monkeypatch.setattr(workbook_writers, "MAX_SHEET_ROWS", 2)
    writer(XLSX, open_rows(b"nombre\nA\nB\n"))
    with pytest.raises(UnreadableBodyError, match="A workbook has at most 2 rows: ask for CSV"):
        writer(XLSX, open_rows(b"nombre\nA\nB\nC\n"))


@pytest.mark.tail
def test_memory_does_not_grow_with_rows_of_a_workbook() -> None:
    rows = ((f"A {number % 100}", 10010001 + number, number) for number in range(10_000))
    source = opened(workbook_of(("nombre", "cvegeo", "n"), *rows))
    target = writer(XLSX, source)
    target.begin()
    tracemalloc.start()
    try:
        size = sum(len(target.write(row, ANSWER)) for row in source) + len(target.end())
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert size > 50_000
    assert peak < 3 * 1024**2
