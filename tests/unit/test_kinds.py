"""Files of other kinds, whatever their names: an import and a match refuse both, and say what they are."""

import io
import lzma
import re
from contextlib import ExitStack
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from localidades_api.bulk.formats import XLSX
from localidades_api.errors import CatalogueError, UnreadableBodyError
from localidades_api.files.archive import describe_file, open_text
from tests.support.bulk import CSV, open_rows
from tests.support.workbooks import zip_of

TYPES = "[Content_Types].xml"


def open_document(kind: str) -> bytes:
    """Return a document as LibreOffice writes it: its type first."""
    members = {"mimetype": f"application/vnd.oasis.opendocument.{kind}", "content.xml": "<office:document-content/>"}
    return zip_of({**members, "META-INF/manifest.xml": "<manifest:manifest/>"})


def parquet_file() -> bytes:
    file = io.BytesIO()
    parquet.write_table(pa.table({"CVE_ENT": ["01"]}), file)
    return file.getvalue()


OFFICE = "application/vnd.openxmlformats-officedocument"
KINDS = {
    "an Excel binary workbook (.xlsb): save it as .xlsx": zip_of(
        {TYPES: "<Types/>", "xl/workbook.bin": "", "xl/worksheets/sheet1.bin": ""}
    ),
    "an OpenDocument spreadsheet (.ods): save it as .xlsx": open_document("spreadsheet"),
    "a document of LibreOffice or another office program: copy its table": open_document("text"),
    "a Word document (.docx): copy its table into a workbook": zip_of(
        {
            TYPES: f"<Types><Override ContentType='{OFFICE}.wordprocessingml.document.main+xml'/></Types>",
            "word/document.xml": "<w:document/>",
        }
    ),
    "a PowerPoint presentation (.pptx): copy its table": zip_of({TYPES: "<Types/>", "ppt/presentation.xml": "<p/>"}),
    "a document of Numbers or another iWork program: export it": zip_of(
        dict.fromkeys(
            ("Index/Document.iwa", "Index/CalculationEngine.iwa", "Metadata/Properties.plist", "preview.jpg"), ""
        )
    ),
    "a zip with the outlines of a shapefile: save the table": zip_of({"loc.shp": "", "loc.dbf": "", "loc.prj": ""}),
    "a map for Google Earth (.kmz)": zip_of({"doc.kml": "<kml/>"}),
    "a zip, and no Excel workbook (.xlsx): unpack it first": zip_of({"lista/nombre.xlsm": ""}),
    # By their first bytes.
    "a dBase table (.dbf)": b"\x03\x7a\x0b\x1a\x10\0\0\0",
    "an Excel workbook of before 2007 (.xls), or has a password": b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1",
    "a PDF": b"%PDF-1.7\n",
    "a picture: ask for the list itself, or type it into": b"\xff\xd8\xff\xe0\0\x10JFIF",
    "a web page: download the file itself, or open it in Excel": b"\n<!doctype HTML>\n<title>x</title>",
    "XML": b"<?xml version='1.0'?>",
    "a 7z or RAR archive": b"7z\xbc\xaf\x27\x1c\0\x04",
    "compressed with bzip2, xz or zstd": lzma.compress(b"CVE_ENT"),
    "an SQLite database or a GeoPackage": b"SQLite format 3\0",
    "a Parquet file": parquet_file(),
}


@pytest.mark.parametrize("what", KINDS)
def test_file_of_another_kind_is_refused_naming_it(tmp_path: Path, what: str) -> None:
    path = tmp_path / "lista"
    path.write_bytes(KINDS[what])
    assert str(describe_file(path)).startswith(what)
    for media_type in (XLSX, CSV):
        with pytest.raises(UnreadableBodyError, match=re.escape(f"The file is {what}")):
            open_rows(KINDS[what], media_type)
    if not what.startswith("a zip, and"):
        sentence = f"^The file is {re.escape(what)}.*; or use INEGI's own zip.$"
        with ExitStack() as stack, pytest.raises(CatalogueError, match=sentence):
            open_text(path, stack)
