"""Recognizes unsupported file types by their first bytes or their members, and says what to do with them."""

import re
from zipfile import ZipFile

START = 512  # bytes that suffice
ZIP = b"PK\x03\x04"  # first bytes

_SAVE = "save its table as CSV (UTF-8)"
_UNPACK = "unpack it first"
# Patterns of first bytes, and the text after "The file is".
_KINDS = {
    rb"PK\x03\x04": "a workbook or a zip: save its sheet as CSV (UTF-8)",
    rb"\xd0\xcf\x11\xe0": "an Excel workbook of before 2007 (.xls), or has a password: save it as .xlsx, without one",
    rb"%PDF": f"a PDF: {_SAVE}",
    # Reports that are named .xls often begin so.
    rb"(?i:\s*<(!doctype html|html|head|meta|style|body|table)\b|MIME-Version:)": (
        "a web page: download the file itself, or open it in Excel and save it as .xlsx"
    ),
    rb"\s*<\?xml": f"XML: {_SAVE}",
    rb"\x89PNG|\xff\xd8\xff|GIF8|RIFF....WEBP|....ftyp|II\*\0|MM\0\*|BM....\0\0\0\0": (
        "a picture: ask for the list itself, or type it into a workbook and save that as .xlsx"
    ),
    rb"PAR1\x15": f"a Parquet file: {_SAVE}",
    rb"RD[AX][23]\n|X\n\0\0": f"an R data file (.rda, .rds): {_SAVE}",
    rb"SQLite format 3\0": f"an SQLite database or a GeoPackage: {_SAVE}",
    rb"\0\0\x27\x0a": "the outlines of a shapefile: save the table beside them as CSV (UTF-8)",
    # A version, and the date of the last change: year since 1900, month, day.
    rb"[\x02-\x05\x83\x8b\xf5][\x01-\xc8][\x01-\x0c][\x01-\x1f]": f"a dBase table (.dbf): {_SAVE}",
    rb"\x1f\x8b": f"compressed with gzip: {_UNPACK}",
    rb"BZh[1-9]1AY&SY|\xfd7zXZ\0|\x28\xb5\x2f\xfd": f"compressed with bzip2, xz or zstd: {_UNPACK}",
    rb"7z\xbc\xaf\x27\x1c|Rar!\x1a": f"a 7z or RAR archive: {_UNPACK}",
    rb".*\0": "not text, or is UTF-16: save it as CSV (UTF-8)",
}
KINDS = [(re.compile(start, re.DOTALL), what) for start, what in _KINDS.items()]


def describe_kind(start: bytes) -> str | None:
    """Return a file's type and what to do, as the text after "The file is"; None if it may be text."""
    return next((what for pattern, what in KINDS if pattern.match(start)), None)


_COPY = "copy its table into a workbook, and save that as .xlsx"
# Patterns of members of a zip, and the text after "The file is".
_MEMBERS = {
    r"xl/workbook\.bin": "an Excel binary workbook (.xlsb): save it as .xlsx",
    r"xl/workbook\.xml": "an Excel workbook: name it .xlsx",
    r"word/document\.xml": f"a Word document (.docx): {_COPY}",
    r"ppt/presentation\.xml": f"a PowerPoint presentation (.pptx): {_COPY}",
    r"index/document\.iwa|index\.zip": "a document of Numbers or another iWork program: export it to Excel (.xlsx)",
    r".*\.shp": "a zip with the outlines of a shapefile: save the table beside them as CSV (UTF-8)",
    r".*\.kml": f"a map for Google Earth (.kmz): {_SAVE}",
}
# The contents of the member `mimetype` of OpenDocument and similar formats.
_SHEET_TYPE = b"application/vnd.oasis.opendocument.spreadsheet"
_DOCUMENT_TYPE = b"application/vnd."

OTHER_ZIP = "a zip, and no Excel workbook (.xlsx): unpack it first"


def describe_zip(archive: ZipFile) -> str:
    """Return the type of a zip and what to do, as the text after "The file is"."""
    names = [name.replace("\\", "/").casefold() for name in archive.namelist()]
    for pattern, what in _MEMBERS.items():
        if any(re.fullmatch(pattern, name) for name in names):
            return what
    if "mimetype" in archive.namelist():
        with archive.open("mimetype") as file:
            kind = file.read(len(_SHEET_TYPE))
        if kind == _SHEET_TYPE:
            return "an OpenDocument spreadsheet (.ods): save it as .xlsx"
        if kind.startswith(_DOCUMENT_TYPE):
            return f"a document of LibreOffice or another office program: {_COPY}"
    return OTHER_ZIP
