"""Recognizes unsupported file types by their first bytes or their members, and says what to do with them."""

import re
from zipfile import ZipFile

START = 512  # bytes that suffice
ZIP = b"PK\x03\x04"  # first bytes

_SAVE = "save its table as CSV (UTF-8)"
# Patterns of first bytes, and the text after "The file is".
_KINDS = {
    rb"PK\x03\x04": "a workbook or a zip: save its sheet as CSV (UTF-8)",
    rb"\xd0\xcf\x11\xe0": "an Excel workbook of before 2007 (.xls), or has a password: save it as .xlsx, without one",
    rb"%PDF": f"a PDF: {_SAVE}",
    # Reports that are named .xls often begin so.
    rb"(?i:\s*<(!doctype html|html|head|meta|style|body|table)\b|MIME-Version:)": (
        "a web page: download the file itself, or open it in Excel and save it as .xlsx"
    ),
    rb"\x89PNG|\xff\xd8\xff|GIF8|RIFF....WEBP|....ftyp|II\*\0|MM\0\*|BM....\0\0\0\0": (
        "a picture: ask for the list itself, or type it into a workbook and save that as .xlsx"
    ),
    rb"\x1f\x8b|BZh[1-9]1AY&SY|\xfd7zXZ\0|\x28\xb5\x2f\xfd|7z\xbc\xaf\x27\x1c|Rar!\x1a": "compressed: unpack it first",
    rb".*\0": "not text, or is UTF-16: save it as CSV (UTF-8)",
}
KINDS = [(re.compile(start, re.DOTALL), what) for start, what in _KINDS.items()]


def describe_kind(start: bytes) -> str | None:
    """Return a file's type and what to do, as the text after "The file is"; None if it may be text."""
    return next((what for pattern, what in KINDS if pattern.match(start)), None)


_DOCUMENT = "a document of Word or LibreOffice: copy its table into a workbook, and save that as .xlsx"
# Patterns of members of a zip, and the text after "The file is".
_MEMBERS = {
    r"xl/workbook\.bin": "an Excel binary workbook (.xlsb): save it as .xlsx",
    r"xl/workbook\.xml": "an Excel workbook: name it .xlsx",
    r"word/document\.xml": _DOCUMENT,
}
OTHER_ZIP = "a zip, and no Excel workbook (.xlsx): unpack it first"


def describe_zip(archive: ZipFile) -> str:
    """Return the type of a zip and what to do, as the text after "The file is"."""
    names = [name.replace("\\", "/").casefold() for name in archive.namelist()]
    for pattern, what in _MEMBERS.items():
        if any(re.fullmatch(pattern, name) for name in names):
            return what
    if "mimetype" in archive.namelist():  # of OpenDocument
        with archive.open("mimetype") as file:
            is_table = b"spreadsheet" in file.read(START)
        return "an OpenDocument spreadsheet (.ods): save it as .xlsx" if is_table else _DOCUMENT
    return OTHER_ZIP
