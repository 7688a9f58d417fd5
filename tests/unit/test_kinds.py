"""Files that are not what their names say: the zips of office programs and others."""

import io
import re
import zipfile
from contextlib import ExitStack
from pathlib import Path

import pytest
from openpyxl import Workbook

from localidades_api.bulk.formats import XLSX, MediaType, reader
from localidades_api.bulk.input_rows import ROLES
from localidades_api.errors import CatalogueError, UnreadableBodyError
from localidades_api.files.archive import describe_file, open_text

TYPES = "[Content_Types].xml"
MEDIA_TYPES: tuple[MediaType, ...] = (XLSX, "text/csv")


def zip_of(**members: str) -> bytes:
    """Return a zip; a member's name has two underscores for a slash and one for a dot."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(TYPES if name == "types" else name.replace("__", "/").replace("_", "."), content)
    return file.getvalue()


def open_document(kind: str) -> bytes:
    """Return a document as LibreOffice writes it: its type first, not compressed."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(zipfile.ZipInfo("mimetype"), f"application/vnd.oasis.opendocument.{kind}")
        archive.writestr("content.xml", "<office:document-content/>")
        archive.writestr("META-INF/manifest.xml", "<manifest:manifest/>")
    return file.getvalue()


OFFICE = "application/vnd.openxmlformats-officedocument"
ZIPS = {
    "an Excel binary workbook (.xlsb): save it as .xlsx": zip_of(
        types="<Types/>", xl__workbook_bin="", xl__worksheets__sheet1_bin=""
    ),
    "an OpenDocument spreadsheet (.ods): save it as .xlsx": open_document("spreadsheet"),
    "a document of LibreOffice or another office program: copy its table": open_document("text"),
    "a Word document (.docx): copy its table into a workbook": zip_of(
        types=f"<Types><Override ContentType='{OFFICE}.wordprocessingml.document.main+xml'/></Types>",
        word__document_xml="<w:document/>",
    ),
    "a PowerPoint presentation (.pptx): copy its table": zip_of(types="<Types/>", ppt__presentation_xml="<p/>"),
    "a document of Numbers or another iWork program: export it": zip_of(
        Index__Document_iwa="", Index__CalculationEngine_iwa="", Metadata__Properties_plist="", preview_jpg=""
    ),
    "a zip with the outlines of a shapefile: save the table": zip_of(loc_shp="", loc_dbf="", loc_prj=""),
    "a map for Google Earth (.kmz)": zip_of(doc_kml="<kml/>"),
    "a zip, and no Excel workbook (.xlsx): unpack it first": zip_of(lista__nombre_xlsm=""),
}


@pytest.mark.parametrize("what", ZIPS)
def test_other_zip_is_refused_naming_it(tmp_path: Path, what: str) -> None:
    path = tmp_path / "lista"
    path.write_bytes(ZIPS[what])
    assert str(describe_file(path)).startswith(what)
    for media_type in MEDIA_TYPES:
        with path.open("rb") as file, pytest.raises(UnreadableBodyError, match=re.escape(f"The file is {what}")):
            reader(media_type, file, ROLES)
    if not what.startswith("a zip, and"):
        sentence = f"^The file is {re.escape(what)}.*; or use INEGI's own zip.$"
        with ExitStack() as stack, pytest.raises(CatalogueError, match=sentence):
            open_text(path, stack)


def test_type_of_a_file_is_found_whatever_its_name(tmp_path: Path) -> None:
    path = tmp_path / "lista.xls"
    path.write_bytes(b"nombre,municipio\n")
    assert describe_file(path) is None
    path.write_bytes(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1")
    assert str(describe_file(path)).startswith("an Excel workbook of before 2007 (.xls)")
    path.write_bytes(b"<html><table>")
    assert str(describe_file(path)).startswith("a web page: download the file itself, or open it in Excel")
    path.write_bytes(ZIPS["a map for Google Earth (.kmz)"][:-30])
    assert str(describe_file(path)).startswith("a workbook or a zip")
    Workbook().save(path)
    assert describe_file(path) == "an Excel workbook: name it .xlsx"
