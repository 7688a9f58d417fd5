"""Sheets as people and programs make them: where the table is, what cells say, and parts in unusual spellings."""

import io
import os
import re
import tracemalloc
import zipfile
from collections.abc import Callable, Iterator
from datetime import date, datetime, time
from itertools import pairwise
from time import process_time
from typing import Any, cast, get_args
from xml.etree import ElementTree
from zoneinfo import ZoneInfo

import openpyxl
import pytest
from openpyxl.formatting.rule import Rule
from openpyxl.workbook.defined_name import DefinedName
from openpyxl.worksheet.datavalidation import DataValidation
from openpyxl.worksheet.table import Table
from openpyxl.worksheet.worksheet import Worksheet
from xlsxwriter.utility import xl_col_to_name

from localidades_api.bulk.answer_columns import MATCH_COLUMNS, AnswerColumns, in_language, match_columns, say_sentences
from localidades_api.bulk.answers import describe_problem
from localidades_api.bulk.formats import XLSX, MediaType
from localidades_api.bulk.input_rows import Answer
from localidades_api.bulk.workbook_reader import XlsxReader
from localidades_api.bulk.workbook_writers import Summary
from localidades_api.bulk.writers import writer
from localidades_api.errors import UnreadableBodyError
from localidades_api.files.workbook import Workbook, escape_controls
from localidades_api.html.languages.translators import LANGUAGES, Language
from tests.support.bulk import answer_all, open_rows
from tests.support.workbooks import SHEET, edited, shared_texts, workbook_of

HEADER = ("Localidad", "Municipio", "Estado")
PLACE = ("Zapopan", "Zapopan", "Jalisco")
CELLS = {"nombre": "Zapopan", "municipio": "Zapopan", "estado": "Jalisco"}
MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
ANSWER: Answer = {**describe_problem(""), "outcome": "exact", "cvegeo": "141200001"}

SUMMARY = Summary("2024-10", "Fuente: INEGI", 0.97)
EMPTY = workbook_of()


def first_sheet(book: openpyxl.Workbook) -> Worksheet:
    return cast("Worksheet", book.worksheets[0])


def sheet_of(*rows: str) -> bytes:
    """Return a workbook whose sheet has these rows of XML."""
    xml = f'<worksheet xmlns="{MAIN}"><sheetData>{"".join(rows)}</sheetData></worksheet>'
    return edited(EMPTY, {SHEET: lambda _: xml.encode()})


def cells(*values: str, row: int = 1) -> str:
    """Return a row of XML with texts."""
    found = (f'<c r="{chr(65 + at)}{row}" t="inlineStr"><is><t>{value}</t></is></c>' for at, value in enumerate(values))
    return f'<row r="{row}">{"".join(found)}</row>'


def opened(data: bytes, media_type: MediaType = XLSX, **options: Any) -> XlsxReader:  # noqa: ANN401  # passed on
    return cast("XlsxReader", open_rows(data, media_type, **options))


def read(data: bytes) -> list[dict[str, object]]:
    """Return the cells of each row that have a value."""
    return [{role: value for role, value in row.cells.items() if value is not None} for row in opened(data)]


def answered(
    data: bytes, columns: AnswerColumns = MATCH_COLUMNS, wanted: MediaType = XLSX, answer: Answer = ANSWER
) -> bytes:
    return answer_all(opened(data), answer, wanted, columns)


def sheet_answered(data: bytes, columns: AnswerColumns = MATCH_COLUMNS, answer: Answer = ANSWER) -> Worksheet:
    """Return the first sheet of the workbook that answers a workbook."""
    return first_sheet(openpyxl.load_workbook(io.BytesIO(answered(data, columns, answer=answer))))


# -- Where the table is


def test_first_visible_sheet_with_a_known_column_is_read() -> None:
    def add_sheets(book: openpyxl.Workbook) -> None:
        first_sheet(book).sheet_state = "hidden"
        book.create_sheet("Portada").append(["Padrón 2026"])
        for row in (HEADER, PLACE):
            book.create_sheet("Datos" if row is HEADER else "Otra").append([*row])
        cast("Worksheet", book["Datos"]).append([*PLACE])

    data = workbook_of(HEADER, ("Tesistán", "Zapopan", "Jalisco"), change=add_sheets)
    assert opened(data).sheet.name == "Datos"
    assert read(data) == [CELLS]
    assert [row.cells["nombre"] for row in opened(data, sheet="Sheet")] == ["Tesistán"]


def test_header_is_the_row_with_the_most_known_columns() -> None:
    two_rows = workbook_of(
        ("Clave", None, None, "Nombre"), ("Ent", "Mun", "Loc", "Localidad", "Municipio", "Entidad"),
        ("14", "120", "0001", "Zapopan", "Zapopan", "Jalisco"),
    )  # fmt: skip
    assert opened(two_rows).header_row == 2
    assert read(two_rows) == [{**CELLS, "clave": "0001"}]
    form = workbook_of(("Localidad:", "Todas"), ("Fecha:", "2026"), (), ("Folio", *HEADER), ("1", *PLACE))
    assert opened(form).header_row == 4
    assert read(form) == [CELLS]
    assert [row.cells["nombre"] for row in opened(form, header_row=1)] == ["Fecha:", "Folio", "1"]
    for number in (3, 99):
        with pytest.raises(UnreadableBodyError, match=f"Row {number} of the sheet is empty"):
            opened(form, header_row=number)
    again = workbook_of(("nombre",), ("Localidad",), ("Pueblo",))
    assert read(again) == [{"nombre": "Localidad"}, {"nombre": "Pueblo"}]


def test_rows_above_a_header_that_is_named_take_no_memory() -> None:
    data = workbook_of(*[("x" * 4000, number) for number in range(1000)], ("nombre", "n"), ("Zapopan", 1))
    tracemalloc.start()
    try:
        assert [row.cells["nombre"] for row in opened(data, header_row=1001)] == ["Zapopan"]
        assert tracemalloc.get_traced_memory()[1] < 3e6
    finally:
        tracemalloc.stop()


def test_header_is_sought_in_the_first_twenty_rows_with_a_value() -> None:
    title = ("Visitas", 2026)
    assert read(workbook_of(*[title] * 19, HEADER, PLACE)) == [CELLS]
    with pytest.raises(UnreadableBodyError, match="names no column"):
        opened(workbook_of(*[title] * 20, HEADER, PLACE))
    assert opened(workbook_of(*[title] * 20, HEADER, PLACE), header_row=21).header_row == 21


def test_value_of_a_merged_range_counts_for_all_its_rows() -> None:
    def merge(book: openpyxl.Workbook) -> None:
        for reference in ("A2:A3", "B2:B3", "C5:C6", "A7:C7"):
            first_sheet(book).merge_cells(reference)

    rows = [("Estado", "Municipio", "Localidad"), ("Jalisco", "Zapopan", "Zapopan"), (None, None, "Tesistán"),
            (None, None, "Nextipac"), ("Jalisco", "Zapopan", "La Venta"), ("Sonora", None, None)]  # fmt: skip
    data = workbook_of(*rows, change=merge)
    assert read(data) == [
        {"estado": "Jalisco", "municipio": "Zapopan", "nombre": "Zapopan"},
        {"estado": "Jalisco", "municipio": "Zapopan", "nombre": "Tesistán"},
        {"nombre": "Nextipac"},
        {"estado": "Jalisco", "municipio": "Zapopan", "nombre": "La Venta"},
        {"estado": "Sonora", "nombre": "La Venta"},
    ]
    assert [row.sent for row in opened(data)][1] == ["", "", "Tesistán"]


# -- What cells say


def test_dates_times_and_truth_values_read_as_people_see_them() -> None:
    values = (date(2026, 3, 1), datetime(2026, 3, 1, 14, 30), time(7, 5), True, False, 46082.5, 1900)  # noqa: DTZ001
    early = (date(1900, 1, 1), date(1900, 2, 28), date(1900, 3, 1))
    data = workbook_of(("nombre", *"abcdefghij"), ("A", *values, *early))
    without_properties = edited(data, {"xl/workbook.xml": lambda xml: re.sub(rb"<workbookPr[^>]*>", b"", xml)})
    for book in (data, without_properties):
        (row,) = opened(book)
        assert row.sent == [
            "A", "2026-03-01", "2026-03-01 14:30", "07:05", "TRUE", "FALSE", "46082.5", "1900", *map(str, early)
        ]  # fmt: skip


def test_half_of_a_character_stays_an_escape_in_every_format() -> None:
    data = sheet_of(cells("nombre", "b"), cells("A", "_xD800_ _xdFfF_ _x0041_", row=2))
    for media_type in get_args(MediaType):
        assert opened(data).count == 1
        assert media_type == XLSX or b"_xD800_ _xdFfF_ A" in answered(data, wanted=media_type)


DAY = "dd/mm/yyyy hh:mm"


@pytest.mark.parametrize(
    ("number", "format_", "first_year", "said"),
    [
        *((46082.5, format_, 1900, said) for format_, said in (
            ("dd/mm/yyyy", "2026-03-01"), ('[$-80A]d "de" mmmm', "2026-03-01"), ("[h]:mm:ss", "12:00"),
            (DAY, "2026-03-01 12:00"), ('0 "dias"', "46082.5"), ('#,##0.00\\ "hab"', "46082.5"),
            ("[Red]0.0", "46082.5"), ("0.0;dd", "46082.5"),
        )),
        (1, DAY, 1904, "1904-01-02 00:00"),
        # The calendar ends with the year 9999.
        (2958465.5, DAY, 1900, "9999-12-31 12:00"), (2958465.9999999, DAY, 1900, "2958465.9999999"),
        (1e300, DAY, 1900, f"{1e300:.0f}"), (2957003, DAY, 1904, "9999-12-31 00:00"),
        (2957003.9999999, DAY, 1904, "2957003.9999999"), (2958000, DAY, 1904, "2958000"),
    ],
)  # fmt: skip
def test_number_is_a_date_if_its_format_and_the_calendar_allow(
    number: float, format_: str, first_year: int, said: str
) -> None:
    def set_format(book: openpyxl.Workbook) -> None:
        book.epoch = datetime(1904, 1, 1) if first_year == 1904 else book.epoch  # noqa: DTZ001
        first_sheet(book).cell(2, 2).number_format = format_

    (row,) = opened(workbook_of(("nombre", "b"), ("A", number), change=set_format))
    assert row.sent == ["A", said]


def test_error_is_an_empty_cell() -> None:
    data = sheet_of(
        cells(*HEADER),
        '<row r="2"><c r="A2" t="inlineStr"><is><t>Zapopan</t></is></c><c r="C2" t="e"><v>#N/A</v></c></row>',
        '<row r="3"><c r="A3" t="e"><v>#REF!</v></c></row>',
    )
    assert read(data) == [{"nombre": "Zapopan"}, {}]


def test_formula_without_a_value_is_refused_only_in_a_column_that_is_used() -> None:
    beside = workbook_of((*HEADER, "Total"), (*PLACE, "=1+1"))
    assert read(beside) == [CELLS]
    with zipfile.ZipFile(io.BytesIO(answered(beside))) as book:
        assert b"<f>1+1</f>" in book.read(SHEET)
    with pytest.raises(UnreadableBodyError, match=r"^Cell C2 has a formula without its value: open the workbook"):
        opened(workbook_of((*HEADER, "Total"), ("Zapopan", "Zapopan", "=1+1", 2)))


def test_cells_out_of_order_are_read_by_their_reference() -> None:
    shuffled = '<row r="2">' + "".join(
        f'<c r="{at}2" t="inlineStr"><is><t>{value}</t></is></c>' for at, value in (("C", "Jalisco"), ("A", "Zapopan"))
    )
    data = sheet_of(cells(*HEADER), f"{shuffled}</row>")
    assert read(data) == [{"nombre": "Zapopan", "estado": "Jalisco"}]
    styled = sheet_of(cells(*HEADER), '<row r="2"><c r="E2" s="0"/><c r="A2" t="inlineStr"><is><t>A</t></is></c></row>')
    with pytest.raises(UnreadableBodyError, match="cells of row 2 are not in order"):
        list(opened(styled))


@pytest.mark.parametrize(
    "rows",
    [
        "<row><c><v>1</v></c><c/><c><v>2</v></c></row><row/><row><c/><c><v>3</v></c></row>",
        '<row r="1"><c><v>1</v></c><c/><c><v>2</v></c></row><row r="3"><c/><c><v>3</v></c></row>',
        '<row><c r="A1"><v>1</v></c><c r="C1"><v>2</v></c></row><row/><row><c r="B3"><v>3</v></c></row>',
        '<row r="1"><c r="A1"><v>1</v></c><c r="C1"><v>2</v></c></row><row r="3"><c r="B3"><v>3</v></c></row>',
    ],
)
def test_rows_and_cells_may_leave_out_what_is_empty_and_where_they_are(rows: str) -> None:
    with zipfile.ZipFile(io.BytesIO(sheet_of(rows))) as archive:
        book = Workbook(archive)
        found = {row.number: row for row in book.rows(book.sheets[0]) if row is not None}
    assert found == {1: ["1", "", "2"], 3: ["", "3"]}


def test_control_character_is_written_as_excel_escapes_it() -> None:
    for code in [*range(9), *range(11, 32)]:
        assert escape_controls(f"a{chr(code)}b".encode()) == b"a_x%04X_b" % code
    assert escape_controls(b"a\t\n\x7fb") == b"a\t\n\x7fb"


def test_pronunciation_is_not_part_of_a_text() -> None:
    spoken = '<is><t>Zapopan</t><rPh sb="0" eb="7"><t>ザポパン</t></rPh></is>'
    inline = sheet_of(cells("nombre"), f'<row r="2"><c r="A2" t="inlineStr">{spoken}</c></row>')
    assert read(inline) == [{"nombre": "Zapopan"}]
    shared = edited(
        shared_texts("nombre", "Zapopan"), {TEXTS: lambda xml: xml.replace(b"<t>Zapopan</t>", spoken[4:-5].encode())}
    )
    assert read(shared) == [{"nombre": "Zapopan"}]


# -- Parts


@pytest.mark.parametrize(
    "rename", [str.upper, lambda name: name.replace("/", "\\").replace("sheet1", "Sheet1").replace("shared", "Shared")]
)
def test_parts_are_found_however_their_names_are_spelled(rename: Callable[[str], str]) -> None:
    data = edited(workbook_of(HEADER, PLACE), {}, rename)
    assert read(data) == [CELLS]
    written = io.BytesIO(answer_all(opened(data), ANSWER, XLSX, summary=SUMMARY))
    book = openpyxl.load_workbook(written)
    with zipfile.ZipFile(written) as archive:
        assert re.findall(rb'sheetId="(\d+)"', archive.read("xl/workbook.xml")) == [b"1", b"2"]
    assert [cell.value for cell in first_sheet(book)[2]][:5] == [*PLACE, "exact", "141200001"]
    assert book.sheetnames == ["Sheet", "Summary"]


@pytest.mark.parametrize("types", [None, b"<Types>", b"<Types/>"])
def test_workbook_whose_list_of_parts_is_damaged_gets_no_summary(types: bytes | None) -> None:
    data = edited(workbook_of(HEADER, PLACE), {"[Content_Types].xml": lambda _: types})
    with zipfile.ZipFile(io.BytesIO(answer_all(opened(data), ANSWER, XLSX, summary=SUMMARY))) as book:
        assert not [name for name in book.namelist() if "summary" in name]


def test_list_of_parts_that_is_too_large_is_refused() -> None:
    """It does not shrink, so that it could be copied."""
    comment = b"<Types><!--" + os.urandom(1024**2).hex().encode() + b"--></Types>"
    source = opened(edited(workbook_of(HEADER, PLACE), {"[Content_Types].xml": lambda _: comment}))
    with pytest.raises(UnreadableBodyError, match="larger than 1 MB"):
        writer(XLSX, source, summary=SUMMARY).begin()


def test_picture_is_copied_and_long_name_of_a_sheet_is_cut() -> None:
    picture = os.urandom(3 * 1024**2)
    data = edited(
        workbook_of(HEADER, PLACE),
        {
            "xl/media/logo.png": lambda _: picture,
            "xl/workbook.xml": lambda xml: xml.replace(b'name="Sheet"', b'name="%b"' % (b"x" * 10_000)),
        },
    )
    with zipfile.ZipFile(io.BytesIO(answered(data))) as book:
        assert book.read("xl/media/logo.png") == picture
    assert opened(data).sheets == ["x" * 255]


def test_sheet_whose_rows_begin_late_is_answered() -> None:
    def delay(xml: bytes) -> bytes:
        prefixed = re.sub(rb"<(/?)(\w)", rb"<\1x:\2", xml).replace(b"xmlns=", b"xmlns:x=")
        return prefixed.replace(b"<x:sheetData>", COMMENT[:100_000] + b"--><x:sheetData>")

    written = answered(edited(workbook_of(HEADER, PLACE), {SHEET: delay}))
    sheet = first_sheet(openpyxl.load_workbook(io.BytesIO(written)))
    assert [cell.value for cell in sheet[2]][:5] == [*PLACE, "exact", "141200001"]
    with zipfile.ZipFile(io.BytesIO(written)) as archive:
        assert COMMENT[:100_000] in archive.read(SHEET)


TEXTS = "xl/sharedStrings.xml"
TAIL = pytest.mark.tail
MUCH = b"<a/>" * 4_300_000
DEEP = b"<a>" * 100 + b"</a>" * 100
COMMENT = b"<!--" + b"a" * 200_000 + b"-->"


@pytest.mark.parametrize(
    ("member", "edit", "sentence"),
    [
        ("xl/workbook.xml", lambda xml: xml.replace(b"<sheets>", b"<a/>" * 300_000 + b"<sheets>"), "larger than 1 MB"),
        (SHEET, lambda xml: xml.replace(b"<sheetData>", COMMENT + b"<sheetData>"), "a tag or a comment of more"),
        (SHEET, lambda xml: xml.replace(b"<row ", b'<row x="' + b"a" * 200_000 + b'" ', 1), "a tag or a comment"),
        (SHEET, lambda xml: xml.replace(b"</sheetData>", b"</sheetData>" + DEEP), "^The workbook can't be"),
        (SHEET, lambda xml: xml.replace(b"<row", DEEP + b"<row", 1), "^The workbook can't be read"),
        (SHEET, lambda xml: xml.decode().encode("utf-16"), "^The workbook is written in UTF-16: open it in Excel"),
        pytest.param(
            SHEET, lambda xml: xml.replace(b"</sheetData>", MUCH + b"</sheetData>"), "16 MB of XML", marks=TAIL
        ),
        pytest.param(TEXTS, lambda xml: xml.replace(b"<si>", MUCH + b"<si>", 1), "XML without a text", marks=TAIL),
        ("docProps/app.xml", lambda xml: xml + b" " * 1_100_000, "larger than 1 MB"),
        ("xl/styles.xml", lambda _: b"<styleSheet>" + DEEP + b"</styleSheet>", "^The workbook can't be read"),
    ],
    ids=["index", "comment", "tag", "deep tail", "deep row", "UTF-16", "no row", "no text", "copied", "deep style"],
)
def test_work_that_a_small_file_would_cause_is_refused(
    member: str, edit: Callable[[bytes], bytes], sentence: str
) -> None:
    with pytest.raises(UnreadableBodyError, match=sentence):
        opened(edited(shared_texts("nombre", "Zapopan"), {member: edit}))


@pytest.mark.parametrize("before", [0, 20_000])  # wherever in a piece that is parsed it begins
def test_long_tag_and_comment_are_read(before: int) -> None:
    comment, long = b"<!--" + b"a" * 120_000 + b"-->", b'<row x="' + b"a" * 120_000 + b'" '

    def lengthen(xml: bytes) -> bytes:
        return xml.replace(b"<sheetData>", b" " * before + comment + b"<sheetData>").replace(b"<row ", long, 1)

    assert read(edited(workbook_of(HEADER, PLACE), {SHEET: lengthen})) == [CELLS]


# -- What the answer keeps


NUMBER_OF_COLUMNS = len(MATCH_COLUMNS.cells)


@pytest.mark.parametrize(
    ("columns", "others"),
    [
        ("", []),
        ('<cols><col width="5"/><col min="1" width="5"/><col max="99" width="5"/></cols>', []),
        ('<cols><col min="1" max="1" width="5"></col><col min="2" max="6" width="7"/></cols>',
         [("1", "1", "5"), ("2", "3", "7")]),
        ('<cols><col min="1" max="3" width="8"/><col min="4" max="16384" hidden="1" width="0"/></cols>',
         [("1", "3", "8"), (str(4 + NUMBER_OF_COLUMNS), "16384", "0")]),
        (f'<cols><col min="3" max="{4 + NUMBER_OF_COLUMNS}" width="9"/></cols>',
         [("3", "3", "9"), (str(4 + NUMBER_OF_COLUMNS), str(4 + NUMBER_OF_COLUMNS), "9")]),
    ],
)  # fmt: skip
def test_columns_of_the_answer_have_widths_and_others_keep_theirs(
    columns: str, others: list[tuple[str, str, str]]
) -> None:
    before = columns.encode() + b"<sheetData>"
    data = edited(workbook_of(HEADER, PLACE), {SHEET: lambda xml: xml.replace(b"<sheetData>", before)})
    with zipfile.ZipFile(io.BytesIO(answered(data))) as book:
        sheet = ElementTree.fromstring(book.read(SHEET))  # noqa: S314  # of this test
    assert [child.tag.rpartition("}")[2] for child in sheet].count("cols") == 1
    found = [(one.get("min", ""), one.get("max", ""), one.get("width", "")) for one in sheet.iter(f"{{{MAIN}}}col")]
    assert all(int(least) <= int(most) for least, most, _ in found)
    assert all(int(one[1]) < int(following[0]) for one, following in pairwise(found))
    own = {int(least): float(width) for least, most, width in found if least == most and int(least) >= 4}
    for at, header in zip(MATCH_COLUMNS.positions(3).values(), MATCH_COLUMNS.headers([]), strict=True):
        assert len(header) + 3 < own[at] < 80
    assert [one for one in found if not 4 <= int(one[0]) < 4 + NUMBER_OF_COLUMNS] == others


@pytest.mark.parametrize(
    "xml", [(b"<!--" + b"<cols>" * 20_000 + b"-->") * 100, b"<cols>" + b'<col min="1" max="2"/>' * 150_000 + b"</cols>"]
)
def test_widths_of_a_stranger_take_little_time(xml: bytes) -> None:
    before = xml + b"<sheetData>"
    source = opened(edited(workbook_of(HEADER, PLACE), {SHEET: lambda sheet: sheet.replace(b"<sheetData>", before)}))
    target = writer(XLSX, source)
    target.begin()
    (row,) = source
    began = process_time()
    target.write(row, ANSWER)
    assert process_time() - began < 1


def test_new_workbook_has_widths() -> None:
    long = "Nombre de la localidad donde se hizo la visita"
    source = open_rows(f"nombre;{long};{'x' * 200}\nA;B;C\n".encode())
    written = answer_all(source, ANSWER, XLSX, in_language(MATCH_COLUMNS, "es"))
    sheet = first_sheet(openpyxl.load_workbook(io.BytesIO(written)))
    assert [sheet.column_dimensions[at].width for at in "ABC"] == pytest.approx([24, len(long) + 4, 60], abs=1)
    assert [sheet.column_dimensions[at].width for at in "DEFG"] == pytest.approx([20, 24, 50, 14], abs=1)


def test_workbook_says_nothing_in_backticks() -> None:
    answer = {**ANSWER, "problem": "Its `nombre` is empty, and it has no key to go by."}
    for language in LANGUAGES:
        row = sheet_answered(workbook_of(HEADER, PLACE), in_language(MATCH_COLUMNS, language), answer)[2]
        said = str([cell.value for cell in row])
        assert "“nombre”" in said
        assert "`" not in said


LIST: list[tuple[str, ...]] = [HEADER, PLACE, *[("Tesistán", "Zapopan", "Jalisco")] * 4]  # A1:C6
LOOKUP = {"E1": "clave", "F1": "giro", "E2": 1, "F2": "Abarrotes", "E3": 2, "F3": "Papelería"}  # E1:F3
BELOW = {f"{column}{row}": "x" for column in "ABC" for row in range(10, 13)}  # A10:C12
NEXT = {f"{column}{row}": f"{column}{row}" for column in "DE" for row in range(1, 4)}  # D1:E3, no column between


@pytest.mark.filterwarnings("ignore:File may not be readable")  # openpyxl, of an empty table
@pytest.mark.parametrize(
    ("filtered", "tables", "more", "grown", "begins"),
    [
        ("A1:C6", [], {"D1": "Notas"}, "A1:M6", ""),  # a column that the list has got since
        ("A1:C6", [], {"D3": "revisar"}, None, "E"),
        ("A1:C6", [], LOOKUP, None, "H"),
        ("A1:C6", ["D1:E3"], NEXT, None, "F"),
        ("A1:C6", ["A10:C12"], BELOW, "A1:L6", ""),
        ("E1:F3", [], LOOKUP, None, "H"),
        ("A1:B6", [], {}, None, "D"),  # without a column that is read
        ("A2:C6", [], {}, None, ""),  # with another header
        (None, ["A1:C6"], {"D1": "Notas"}, None, "E"),
        (None, ["A1:C3", "E1:F3"], LOOKUP, None, "H"),  # as high as the list's own
        (None, ["E1:F3", "H1:I3"], LOOKUP, None, "K"),  # the second is empty
        (None, ["A1:C6", "A10:C12"], BELOW, "A1:L6", ""),
    ],
)
def test_only_the_filter_or_table_of_the_list_grows(
    filtered: str | None, tables: list[str], more: dict[str, str | int], grown: str | None, begins: str
) -> None:
    def add_ranges(book: openpyxl.Workbook) -> None:
        sheet = first_sheet(book)
        for at, value in more.items():
            sheet[at] = value
        sheet.auto_filter.ref = filtered
        for number, cells in enumerate(tables):
            sheet.add_table(Table(displayName=f"T{number}", ref=cells))

    data = workbook_of(*LIST, change=add_ranges)
    source, written = opened(data), answered(data)
    sheet = first_sheet(openpyxl.load_workbook(io.BytesIO(written)))
    ranges = [*[filtered][: filtered is not None], *tables]
    assert [*[sheet.auto_filter.ref][: filtered is not None], *(one.ref for one in sheet.tables.values())] == [
        grown if grown and at == 0 else one for at, one in enumerate(ranges)
    ]
    assert [one.autoFilter and one.autoFilter.ref for one in sheet.tables.values()] == [
        one.ref for one in sheet.tables.values()
    ]
    with zipfile.ZipFile(io.BytesIO(written)) as book:
        names = re.findall(r"_FilterDatabase[^>]*>[^<]*!([^<]*)<", book.read("xl/workbook.xml").decode())
    assert [name.replace("$", "") for name in names] == ([sheet.auto_filter.ref] if filtered else [])
    assert {at: sheet[at].value for at in more} == more
    assert sheet[f"{xl_col_to_name(source.width)}1"].value == "match_outcome"
    assert (source.note or "").startswith(f"The answers begin in column {begins}, with other") == bool(begins)
    assert bool(source.note) == bool(begins)


@pytest.mark.parametrize(
    ("cells", "begins"),
    [
        ({"E1": "Proveedor", "F1": "Teléfono", "E2": "Abarrotes", "F2": "55"}, "H"),  # beside the list
        ({"A10": "Proveedor", "E10": "Teléfono", "A11": "Abarrotes", "E11": "55"}, "G"),  # below it
        ({"H20": "revisado en mayo"}, "J"),
    ],
)
@pytest.mark.parametrize("language", LANGUAGES)
def test_answers_beside_another_list_have_a_gap_and_the_sheet_says_so(
    cells: dict[str, str], begins: str, language: Language
) -> None:
    """A spreadsheet sorts the cells up to an empty row and an empty column."""

    def add(book: openpyxl.Workbook) -> None:
        for at, value in cells.items():
            first_sheet(book)[at] = value

    columns = in_language(match_columns([], ["outcome", "cvegeo", "label"]), language)
    data, header = workbook_of(*LIST, change=add), columns.headers([])
    for _ in range(2):  # the answer of an answer is as wide
        source, data = opened(data), answered(data, columns)
        sheet = first_sheet(openpyxl.load_workbook(io.BytesIO(data)))
        assert [cell.value for cell in sheet[1]][-5:-1] == [None, *header]
        assert sheet[f"{begins}1"].value == header[0]
        assert sheet.cell(1, sheet.max_column).value == say_sentences(str(source.note), language)
        assert f"column {begins}," in str(source.note)
        assert {at: sheet[at].value for at in cells} == cells


def test_column_that_someone_has_added_after_an_earlier_answer_is_kept() -> None:
    kept = [*HEADER, *MATCH_COLUMNS.headers([])[:2], "Visita"]
    sheet = sheet_answered(workbook_of(kept, [*PLACE, "exact", "010010001", "12 de mayo"]))
    assert [cell.value for cell in sheet[1]][: len(kept) + 1] == [*kept, "match2_outcome"]
    assert sheet["F2"].value == "12 de mayo"


def test_column_after_an_answer_without_a_header_is_kept() -> None:
    columns = match_columns([], ["outcome", "cvegeo", "label"])
    answer = [ANSWER["outcome"], ANSWER["cvegeo"], ANSWER["label"]]
    row = ["Tequila, Jal.", "exact", "010010001", "Tequila"]
    for added, written in ([], answer), (["12 de mayo"], [*row[1:], "12 de mayo", *answer]):
        sheet = sheet_answered(workbook_of([*row, *added], [*row, *added]), columns)
        assert [cell.value for cell in sheet[2]] == [row[0], *written][: sheet.max_column]


def test_titles_leave_the_answers_beside_the_list() -> None:
    sheet = sheet_answered(workbook_of(("Visitas", *[None] * 6, "mayo de 2026"), *LIST))
    assert [cell.value for cell in sheet[2]][:5] == [*HEADER, "match_outcome", "match_cvegeo"]
    assert sheet["H1"].value == "mayo de 2026"


def test_another_sheet_with_a_list_is_mentioned() -> None:
    def add(book: openpyxl.Workbook) -> None:
        sheets = ("Dos", LIST), ("Plantilla", [HEADER]), ("Claves", [("Estado",), ("Jalisco",)]), ("Tres", LIST)
        for name, rows in sheets:
            sheet = book.create_sheet(name)
            for row in rows:
                sheet.append(row)
        cast("Worksheet", book["Tres"]).sheet_state = "hidden"

    data = workbook_of(HEADER, PLACE, sheet="Uno", change=add)
    assert opened(data).note == "Only the sheet `Uno` is read, although there is a list in `Dos` as well."
    assert opened(data, sheet="Uno").note is None
    damaged = edited(data, {"xl/worksheets/sheet2.xml": lambda xml: xml[:-30]})
    assert opened(damaged).sheet.name == "Uno"


@pytest.mark.parametrize(
    ("merged", "begins"),
    [("A1:H1", "D"), ("C2:F2", "G"), ("D4:E5", "G"), ("A8:H8", "D")],  # a title, several columns, empty, a note below
)
def test_answers_are_behind_merged_cells(merged: str, begins: str) -> None:
    data = workbook_of(("Visitas",), *LIST, change=lambda book: first_sheet(book).merge_cells(merged))
    sheet = sheet_answered(data)
    assert sheet[f"{begins}2"].value == "match_outcome"
    assert {sheet[f"{begins}{row}"].value for row in range(3, 7)} == {"exact"}
    assert [str(one) for one in sheet.merged_cells.ranges] == [merged]


@pytest.mark.parametrize("part", [SHEET, "xl/tables/table1.xml"])
def test_how_a_list_is_sorted_grows_with_it(part: str) -> None:
    def add_range(book: openpyxl.Workbook) -> None:
        if part == SHEET:
            first_sheet(book).auto_filter.ref = "A1:C6"
        else:
            first_sheet(book).add_table(Table(displayName="T", ref="A1:C6"))

    def sort(xml: bytes) -> bytes:
        return re.sub(rb"(<autoFilter [^>]*[^> /]) */>", rb"\1>" + order % b"C" + rb"</autoFilter>", xml)

    order = b'<sortState ref="A2:%b6"><sortCondition ref="B2:B6"/></sortState>'
    with zipfile.ZipFile(io.BytesIO(answered(edited(workbook_of(*LIST, change=add_range), {part: sort})))) as book:
        assert order % b"L" in book.read(part)


def test_what_else_is_beside_a_list_stays() -> None:
    def decorate(book: openpyxl.Workbook) -> None:
        sheet = first_sheet(book)
        sheet.auto_filter.ref = "A1:C6"
        sheet.print_area = "A1:C6"
        sheet.conditional_formatting.add("E2:F9", Rule("containsBlanks", formula=["LEN(E2)=0"]))
        validation = DataValidation("list", formula1='"sí,no"', sqref="E2:E9")
        sheet.add_data_validation(validation)
        book.defined_names["Giros"] = DefinedName("Giros", attr_text="Sheet!$E$1:$F$3")
        book.create_sheet("Otra").auto_filter.ref = "A1:C6"

    book = openpyxl.load_workbook(io.BytesIO(answered(workbook_of(*LIST, change=decorate))))
    sheet = first_sheet(book)
    assert sheet.auto_filter.ref == "A1:L6"
    assert sheet.print_area == "'Sheet'!$A$1:$C$6"
    assert [str(one.sqref) for one in sheet.conditional_formatting] == ["E2:F9"]
    assert [str(one.sqref) for one in sheet.data_validations.dataValidation] == ["E2:E9"]
    assert book.defined_names["Giros"].attr_text == "Sheet!$E$1:$F$3"
    assert cast("Worksheet", book["Otra"]).auto_filter.ref == "A1:C6"


@pytest.mark.parametrize(("padding", "grown"), [(0, "A1:L2"), (64 * 1024, "A1:C2")])
def test_table_gets_the_columns_of_the_answer_unless_its_part_is_too_large(padding: int, grown: str) -> None:
    data = workbook_of(
        HEADER, PLACE, change=lambda book: first_sheet(book).add_table(Table(displayName="T", ref="A1:C2"))
    )
    padded = edited(data, {"xl/tables/table1.xml": lambda xml: xml + b" " * padding})
    table = sheet_answered(padded).tables["T"]
    assert table.ref == table.autoFilter.ref == grown
    names = [*HEADER] if padding else [*HEADER, *MATCH_COLUMNS.headers([])]
    assert [column.name for column in table.tableColumns] == names
    assert len({column.id for column in table.tableColumns}) == len(names)


@pytest.mark.parametrize(
    "text", [b"<!--" + b"<autoFilter ref=" * 5_000 + b"-->", b"<a><![CDATA[" + b"x" * 3_000_000 + b"]]></a>"]
)
def test_text_behind_the_rows_is_copied(text: bytes) -> None:
    data = edited(workbook_of(HEADER, PLACE), {SHEET: lambda xml: xml.replace(b"</sheetData>", b"</sheetData>" + text)})
    with zipfile.ZipFile(io.BytesIO(answered(data))) as book:
        assert b"</sheetData>" + text in book.read(SHEET)


# -- Without a header


@pytest.mark.parametrize(
    ("rows", "cells"),
    [
        ([("Tequila, Jal.",), (None,), ("Zapopan",)], [{"nombre": "Tequila, Jal."}, {"nombre": "Zapopan"}]),
        ([("El Fuerte", "Sin"), ("La Paz", "BCS")],
         [{"nombre": "El Fuerte", "estado": "Sin"}, {"nombre": "La Paz", "estado": "BCS"}]),
    ],
)  # fmt: skip
def test_sheet_without_a_header_is_a_list_of_places(
    rows: list[tuple[str | None, ...]], cells: list[dict[str, str]]
) -> None:
    data = workbook_of(*rows)
    source = opened(data)
    found = list(source)
    assert ([row.cells for row in found], source.header_row, source.count) == (cells, 0, len(cells))
    assert found[-1].number == len(rows)
    table = list(sheet_answered(data).iter_rows(values_only=True))
    assert [row[: len(rows[0])] for row in table] == list(rows)
    outcomes = [row[len(rows[0])] for row in table]
    assert outcomes == ["exact" if any(row) else None for row in rows]


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize(
    "rows", [[("Tequila, Jal.",), ("Zapopan",)], [("El Fuerte", "Sin"), (None, None), ("La Paz", "BCS")]]
)
def test_answers_without_a_header_are_recognized_when_they_come_back(
    language: Language, rows: list[tuple[str | None, ...]]
) -> None:
    columns = in_language(match_columns([]), language)
    first = answer_all(opened(workbook_of(*rows)), ANSWER, XLSX, columns)
    again = opened(first)
    found, own = list(again), list(opened(workbook_of(*rows)))
    assert ([row.cells for row in found], again.header_row) == ([row.cells for row in own], 0)
    assert {row.earlier and row.earlier.key for row in found} == {"141200001"}
    assert sheet_answered(first, columns=columns).max_column == len(rows[0]) + 2  # an outcome and a key
    mine = workbook_of(("Tequila", "none", "sin clave"), ("Zapopan", "none", None))
    assert [row.earlier for row in opened(mine, header_row=0)] == [None, None]


def test_cover_or_title_is_not_a_list_of_places() -> None:
    source = opened(
        workbook_of(("Informe",), change=lambda book: book.create_sheet("Visitas").append(["El Fuerte", "Sin"]))
    )
    assert (source.sheet.name, [row.cells for row in source]) == ("Visitas", [{"nombre": "El Fuerte", "estado": "Sin"}])
    with pytest.raises(UnreadableBodyError, match="names no column"):
        opened(workbook_of(("Informe de visitas",), ("sitio", "nota"), ("Tequila", "x")))


def with_summary(data: bytes, summary: Summary = SUMMARY, *, cached: bool = False) -> openpyxl.Workbook:
    """Answer rows with a workbook of two columns, and a summary; `cached` has the values of its formulas."""
    columns = in_language(match_columns([], ["outcome", "cvegeo"]), "es")
    written = io.BytesIO(answer_all(open_rows(data), ANSWER, XLSX, columns, summary))
    return openpyxl.load_workbook(written, data_only=cached)


@pytest.mark.parametrize("sheet", ["Localidades", "D'Or & más"])
def test_summary_counts_the_outcomes_of_the_list_by_formulas(sheet: str) -> None:
    data = workbook_of(("Localidad",), ("Zapopan",), sheet=sheet) if "&" in sheet else b"Localidad\nZapopan\n"
    days = [datetime.now(ZoneInfo("America/Mexico_City")).date().isoformat()]
    book = with_summary(data)
    days.append(datetime.now(ZoneInfo("America/Mexico_City")).date().isoformat())
    assert book.sheetnames == [sheet, "Resumen"]
    values = dict(cast("Iterator[tuple[str, str]]", book["Resumen"].iter_rows(values_only=True)))
    assert {"Versión": "2024-10", "Fuente": "Fuente: INEGI", "Certeza mínima": "97 %"}.items() <= values.items()
    assert values["Fecha"] in days
    quoted = sheet.replace("'", "''")
    assert values["idéntica"] == f"=COUNTIF('{quoted}'!B:B,\"idéntica\")"
    assert values["aceptada sin revisar"] == f"=COUNTIF('{quoted}'!B:B,\"aceptada sin revisar*\")"
    assert [*first_sheet(book).iter_rows(values_only=True)] == [
        ("Localidad", "Resultado", "Clave INEGI (CVEGEO)"), ("Zapopan", "idéntica", "141200001"),
    ]  # fmt: skip


@pytest.mark.parametrize("is_sheet", [True, False])
def test_summary_has_values_that_programs_read_without_computing(*, is_sheet: bool) -> None:
    """Telephones, the preview of a mail, and pandas show formulas by the value that is stored beside them."""
    data = (
        workbook_of(("Localidad",), ("Zapopan",), ("Tesistán",))
        if is_sheet
        else "Localidad\nZapopan\nTesistán\n".encode()
    )
    summary = SUMMARY._replace(areas={"municipio": "Zapopan", "estado": "Jalisco"})
    rows = [*with_summary(data, summary, cached=True)["Resumen"].iter_rows(values_only=True)]
    assert rows[4:] == [
        ("Estado de todas las filas", "Jalisco"), ("Municipio de todas las filas", "Zapopan"),
        (None, None), (None, None),
        ("idéntica", 2), ("con diferencias menores", 0), ("por decidir", 0), ("no encontrada", 0), ("ilegible", 0),
        ("elegida", 0), ("aceptada sin revisar", 0), ("ninguna de las opciones", 0),
        ("sin lugar, sin cambios", 0), ("Filas", 2),
    ]  # fmt: skip
    formulas = dict(
        cast("Iterator[tuple[str, str]]", with_summary(data, summary)["Resumen"].iter_rows(values_only=True))
    )
    assert formulas["sin lugar, sin cambios"] == "=B18-SUM(B9:B16)"


@pytest.mark.parametrize("is_saved", [False, True])
def test_summary_that_comes_back_is_replaced(*, is_saved: bool) -> None:
    """A spreadsheet that has saved it gives its part another name."""
    columns = in_language(match_columns([], ["outcome", "cvegeo"]), "es")
    first = answer_all(opened(workbook_of(HEADER, PLACE)), ANSWER, XLSX, columns, SUMMARY)
    if is_saved:
        openpyxl.load_workbook(io.BytesIO(first)).save(file := io.BytesIO())
        first = file.getvalue()
    book = with_summary(first, SUMMARY._replace(release="2026-01"), cached=True)
    assert book.sheetnames == ["Sheet", "Resumen"]
    assert book["Resumen"]["B1"].value == "2026-01"


def test_summary_has_a_name_of_its_own_and_spares_strict_workbooks() -> None:
    plain = workbook_of(HEADER, PLACE, change=lambda book: book.create_sheet("resumen"))
    end = b"</workbook>"
    strict = edited(plain, {"xl/workbook.xml": lambda xml: xml.replace(end, b"<!-- purl.oclc.org -->" + end)})
    assert with_summary(plain).sheetnames == ["Sheet", "resumen", "Resumen (2)"]
    assert with_summary(strict).sheetnames == ["Sheet", "resumen"]
