"""Zips and Excel workbooks, as libraries write them and as hostile or careless programs change them."""

import io
import zipfile
from collections.abc import Callable, Mapping, Sequence

import openpyxl
import xlsxwriter

SHEET = "xl/worksheets/sheet1.xml"

Edit = Callable[[bytes], bytes | None]


def workbook_of(
    *rows: Sequence[object], sheet: str = "Sheet", change: Callable[[openpyxl.Workbook], object] | None = None
) -> bytes:
    workbook, file = openpyxl.Workbook(), io.BytesIO()
    workbook.worksheets[0].title = sheet
    for row in rows:
        workbook.worksheets[0].append([*row])
    if change is not None:
        change(workbook)
    workbook.save(file)
    return file.getvalue()


def shared_texts(*column: str) -> bytes:
    """Return a workbook as XlsxWriter writes it, with shared strings."""
    file = io.BytesIO()
    with xlsxwriter.Workbook(file) as workbook:
        workbook.add_worksheet().write_column(0, 0, column)
    return file.getvalue()


def zip_of(members: Mapping[str, bytes | str], compression: int = zipfile.ZIP_DEFLATED) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", compression) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return file.getvalue()


def edited(data: bytes, edits: Mapping[str, Edit], rename: Callable[[str], str] = str) -> bytes:
    """Return a workbook with members edited, added or removed (None), under other names."""
    file = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as new:
        for name in dict.fromkeys([*old.namelist(), *edits]):
            content: bytes | None = old.read(name) if name in old.namelist() else b""
            if name in edits:
                content = edits[name](content or b"")
            if content is not None:
                new.writestr(rename(name), content)
    return file.getvalue()


def add_nameless(archive: zipfile.ZipFile) -> None:
    """Add a member with an empty name, which no program writes, and `ZipInfo.is_dir` can't read in Python 3.11."""
    member = zipfile.ZipInfo("x")
    member.filename = ""
    archive.open(member, "w").close()
