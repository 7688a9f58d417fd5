"""Web pages that portals and reports name `.xls`."""

import io
from time import process_time

import openpyxl
import pytest

from localidades_api.bulk.formats import XLSX
from localidades_api.bulk.workbook_reader import XlsxReader
from localidades_api.errors import UnreadableBodyError
from tests.bulk.test_sheets import ANSWER
from tests.support.bulk import CSV, answer_all, open_rows, rows_in

REPORT = """<html xmlns:x="urn:schemas-microsoft-com:office:excel"><head><meta charset="utf-8">
<style>td {color: red}</style></head><body><table><tr><td colspan=3>Padr&oacute;n 2026</td></tr>
<tr><th>Clave</th><th>Estado</th><th>Localidad</th></tr>
<tr><td>001</td><td rowspan="2">Jalisco</td><td>Tequila<br>de abajo</td></tr>
<tr><td>002</td><td><b>Peñón</b> &lt;1&gt;</td></tr>
<tr><td>003<td>Sonora<td>La Paz
</table></body></html>"""
PLACES = [("Jalisco", "Tequila de abajo"), ("Jalisco", "Peñón <1>"), ("Sonora", "La Paz")]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "windows-1252"])
@pytest.mark.parametrize("media_type", [CSV, XLSX])
def test_table_of_a_web_page_is_read_as_a_sheet(encoding: str, media_type: str) -> None:
    data = REPORT.encode(encoding)
    rows = rows_in(data, media_type)  # type: ignore[arg-type]  # one of two
    assert [(row.cells["estado"], row.cells["nombre"]) for row in rows] == PLACES
    assert [row.number for row in rows] == [3, 4, 5]


def test_answer_to_a_web_page_is_a_table_for_excel() -> None:
    data = REPORT.encode()
    written = answer_all(open_rows(data), ANSWER, CSV)
    assert written.startswith("\ufeffClave,Estado,Localidad,match_outcome".encode())
    sheet = openpyxl.load_workbook(io.BytesIO(answer_all(open_rows(data), ANSWER, XLSX))).worksheets[0]
    assert [cell.value for cell in sheet[2]][:5] == ["Clave", "Estado", "Localidad", "match_outcome", "match_cvegeo"]
    assert [cell.value for cell in sheet[4]][:5] == ["002", "Jalisco", "Peñón <1>", "exact", "141200001"]


def test_table_within_another_is_a_sheet_of_its_own() -> None:
    inner = "<table><tr><td>Localidad<td>n<tr><td>Zapopan<td>1</table>"
    source = open_rows(f"<table><tr><td>Menú<td>{inner}</table>".encode())
    assert isinstance(source, XlsxReader)
    with pytest.raises(UnreadableBodyError, match="no such sheet"):
        open_rows(REPORT.encode(), sheet="Lista")
    assert (source.sheet.name, [row.cells["nombre"] for row in source]) == ("Sheet2", ["Zapopan"])


MEGABYTES = 5 * 1024**2
START = b"<table><tr><td>"


@pytest.mark.parametrize(
    "page",
    [
        b"<html><p>Entrar</p></html>", START + b"a" * MEGABYTES, START * 60,
        *[START + b"<a " + piece * (MEGABYTES // 8) for piece in (b"<a ", b'a="', b"a=")],
        *[START + piece * (MEGABYTES // 8) for piece in (b"<!--", b"<!", b"&", b"&#", b"</", b"<script>")],
        b"<table><tr>" + b"<td rowspan=65000>a" * 16_384 + b"<tr><td>b" * 50_000,
    ],
    ids=range(13),
)  # fmt: skip
def test_web_page_without_a_table_or_with_too_much_is_refused(page: bytes) -> None:
    began = process_time()
    with pytest.raises(UnreadableBodyError):
        open_rows(page)
    assert process_time() - began < 4
