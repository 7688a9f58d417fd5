"""Files of other kinds, whatever their names: an import and a match refuse both, and say what they are."""

import lzma
import re
from contextlib import ExitStack
from pathlib import Path

import pytest

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


OFFICE = "application/vnd.openxmlformats-officedocument"
KINDS = {
    "an Excel binary workbook (.xlsb): save it as .xlsx": zip_of(
        {TYPES: "<Types/>", "xl/workbook.bin": "", "xl/worksheets/sheet1.bin": ""}
    ),
    "an OpenDocument spreadsheet (.ods): save it as .xlsx": open_document("spreadsheet"),
    "a document of Word or LibreOffice: copy its table into a workbook": zip_of(
        {
            TYPES: f"<Types><Override ContentType='{OFFICE}.wordprocessingml.document.main+xml'/></Types>",
            "word/document.xml": "<w:document/>",
        }
    ),
    "a zip, and no Excel workbook (.xlsx): unpack it first": zip_of({"lista/nombre.xlsm": ""}),
    # By their first bytes.
    "an Excel workbook of before 2007 (.xls), or has a password": b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1",
    "a PDF": b"%PDF-1.7\n",
    "a picture: ask for the list itself, or type it into": b"\xff\xd8\xff\xe0\0\x10JFIF",
    "a web page: download the file itself, or open it in Excel": b"\n<!doctype HTML>\n<title>x</title>",
    "compressed: unpack it first": lzma.compress(b"CVE_ENT"),
    "not text, or is UTF-16": b"SQLite format 3\0",
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
