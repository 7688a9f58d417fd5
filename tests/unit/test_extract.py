import csv
import gzip
import io
import lzma
import re
import zipfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Literal

import openpyxl
import pyarrow as pa
import pytest
import xlsxwriter
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

from localidades_api.catalogue.columns import ATTRIBUTES
from localidades_api.errors import CatalogueError
from localidades_api.files import workbook
from localidades_api.files.kinds import describe_kind
from localidades_api.importer.extract import Position, open_table, split_line, split_lines
from localidades_api.importer.transform import CatalogueRecords, Rejected, transform
from tests.support.catalogue import HEADER, TRAPS, Place, lines_of, many, read_catalogue, unwatched, write_catalogue

BOM = b"\xef\xbb\xbf"
OLD_HEADER = (
    "Mapa", "Cve_Ent", "Nom_Ent", "Nom_Abr", "Cve_Mun", "Nom_Mun", "Cve_Loc", "Nom_Loc", "Ámbito",
    "Latitud", "Longitud", "Lat_Decimal", "Lon_Decimal", "Altitud", "Cve_Carta",
    "Pob_Total", "Pob_Masculina", "Pob_Femenina", "Total de Viviendas Habitadas",
)  # fmt: skip


def names_of(catalogue: CatalogueRecords) -> list[str]:
    return [locality.nombre for locality in sorted(catalogue.localities)]


def text_of(places: Iterable[Place], *, end: str = "\r\n", header: Sequence[str] = HEADER, separator: str = ",") -> str:
    return "".join(line + end for line in lines_of((place.values() for place in places), header, separator))


def old_rows(places: Iterable[Place]) -> list[tuple[str, ...]]:
    """Return the rows as the old layout has them, which calls the key Mapa and lacks Estatus."""
    names = [name.upper().replace("MAPA", "CVEGEO").replace("Á", "A") for name in OLD_HEADER]
    rows = (dict(zip(HEADER, place.values(), strict=True)) for place in places)
    return [tuple(row[name] for name in names) for row in rows]


def write_zip(path: Path, members: dict[str, bytes], compression: int = zipfile.ZIP_DEFLATED) -> Path:
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return path


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> CatalogueRecords:
    """Return the traps as read from UTF-8 with a BOM and CRLF, which is INEGI's own format."""
    return read_catalogue(write_catalogue(tmp_path_factory.mktemp("expected") / "AGEEML.csv", TRAPS))


def test_csv_with_every_trap_is_read_back_exactly(expected: CatalogueRecords) -> None:
    assert names_of(expected) == [place.nombre for place in TRAPS]
    assert expected.rejected == []


@pytest.mark.parametrize("end", ["\r\n", "\n"], ids=["crlf", "lf"])
@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-8", "windows-1252"])
@pytest.mark.parametrize(("separator", "suffix"), [(",", "csv"), ("\t", "txt")], ids=["csv", "txt"])
def test_encoding_separator_and_line_ending_do_not_matter(
    tmp_path: Path, expected: CatalogueRecords, encoding: str, end: str, separator: str, suffix: str
) -> None:
    path = tmp_path / f"AGEEML.{suffix}"
    path.write_bytes(text_of(TRAPS, end=end, separator=separator).encode(encoding))
    assert read_catalogue(path) == expected


@pytest.mark.parametrize("spell", [str, str.lower, str.upper], ids=["as it was", "lower", "upper"])
@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-8", "windows-1252"])
def test_old_header_is_accepted(
    tmp_path: Path, expected: CatalogueRecords, spell: Callable[[str], str], encoding: str
) -> None:
    header = [spell(name) for name in OLD_HEADER]
    path = tmp_path / "AGEEML.csv"
    path.write_bytes("".join(f"{line}\r\n" for line in lines_of(old_rows(TRAPS), header)).encode(encoding))
    assert read_catalogue(path) == expected


def test_column_order_does_not_matter(tmp_path: Path, expected: CatalogueRecords) -> None:
    rows = [tuple(reversed(place.values())) for place in TRAPS]
    path = tmp_path / "AGEEML.csv"
    path.write_bytes("".join(f"{line}\r\n" for line in lines_of(rows, tuple(reversed(HEADER)))).encode())
    assert read_catalogue(path) == expected


def test_additional_columns_are_ignored(tmp_path: Path, expected: CatalogueRecords) -> None:
    rows = [(*place.values(), "something new") for place in TRAPS]
    path = tmp_path / "AGEEML.csv"
    path.write_bytes("".join(f"{line}\r\n" for line in lines_of(rows, (*HEADER, "NUEVA"))).encode())
    assert read_catalogue(path) == expected


def test_missing_optional_columns_are_empty(tmp_path: Path) -> None:
    header = ("CVE_ENT", "NOM_ENT", "CVE_MUN", "NOM_MUN", "CVE_LOC", "NOM_LOC")
    path = tmp_path / "AGEEML.csv"
    path.write_bytes(
        "".join(f"{line}\r\n" for line in lines_of([("01", "A", "001", "B", "0007", "C")], header)).encode()
    )
    [locality] = read_catalogue(path).localities
    assert locality == (10010007, 1001, "0007", "C", *[None] * len(ATTRIBUTES))


@pytest.mark.parametrize("delimiter", [",", "\t"], ids=["csv", "txt"])
@pytest.mark.parametrize("quoting", [csv.QUOTE_MINIMAL, csv.QUOTE_ALL], ids=["minimal", "all"])
def test_doubled_quotes_are_read(
    tmp_path: Path, expected: CatalogueRecords, delimiter: str, quoting: Literal[0, 1]
) -> None:
    text = io.StringIO()
    writer = csv.writer(text, delimiter=delimiter, quoting=quoting, lineterminator="\r\n")
    writer.writerows([HEADER, *(place.values() for place in TRAPS)])
    path = tmp_path / "AGEEML.csv"
    path.write_bytes(text.getvalue().encode())
    assert read_catalogue(path) == expected


def test_line_that_begins_with_a_quote_may_end_without_one(tmp_path: Path, expected: CatalogueRecords) -> None:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([HEADER, *(place.values() for place in TRAPS)])
    path = tmp_path / "AGEEML.csv"
    path.write_text(re.sub("^[^,]+", r'"\g<0>"', text.getvalue(), flags=re.MULTILINE), encoding="utf-8")
    assert read_catalogue(path) == expected


@pytest.mark.parametrize("name", ['El "Güero"', '"Las Ardillas"', 'a"b', '"', 'La "Y", El Mirador', "A,B", ",", "'"])
@pytest.mark.parametrize("escaped", [False, True], ids=["as INEGI does", "escaped"])
def test_unescaped_quote_in_a_name_is_kept(tmp_path: Path, name: str, *, escaped: bool) -> None:
    written = name.replace('"', '""') if escaped else name
    path = write_catalogue(tmp_path / "AGEEML.csv", [replace(TRAPS[0], nombre=written), TRAPS[1]])
    assert names_of(read_catalogue(path)) == [name, "Ninguno"]


def test_trailing_carriage_return_ends_the_last_line(tmp_path: Path, expected: CatalogueRecords) -> None:
    path = tmp_path / "AGEEML.csv"
    path.write_bytes(text_of(TRAPS).encode().removesuffix(b"\n"))
    assert read_catalogue(path) == expected


def test_encoding_is_detected_from_letters_far_into_the_file(tmp_path: Path) -> None:
    plain = [Place(f"01001{number:04d}", f"Lugar {number}") for number in range(1, 3_000)]
    places = [*plain, Place("010013000", "Peñón")]
    for encoding in ("windows-1252", "utf-8"):
        # LATITUD has a degree sign in every row of INEGI's: without one the file is ASCII for half a megabyte.
        text = text_of(places).replace("°", " ").replace("\N{ACUTE ACCENT}", " ")
        path = tmp_path / f"{encoding}.csv"
        path.write_bytes(text.encode(encoding))
        assert names_of(read_catalogue(path))[-1] == "Peñón"


def test_character_cut_by_the_sample_does_not_change_the_encoding(tmp_path: Path) -> None:
    filler = 256 * 1024
    for offset in range(4):
        name = "x" * offset
        text = text_of([Place("010010001", name or "y")]) + "x" * filler + "ó" * 8 + "\r\n"
        cut = text.encode().find("ó".encode()) - filler
        path = tmp_path / f"{offset}.csv"
        path.write_bytes(
            (text_of([Place("010010001", name or "y")]) + "x" * (filler - cut + offset) + "ó" * 8).encode()
        )
        with open_table(path) as table:
            assert "".join(table.lines).endswith("ó" * 8)


# Names that the layout can hold: `","` ends a value, and `""` is CSV's escape.
def _fits(name: str) -> bool:
    return bool(name.strip()) and '",' not in name and '"\t' not in name and '""' not in name


def _encodable(character: str) -> bool:
    try:
        character.encode("windows-1252")
    except UnicodeEncodeError:
        return False
    return True


_UNICODE = st.characters(exclude_categories=("Cc", "Cs"))
_WINDOWS = st.sampled_from([chr(code) for code in range(0x20, 0x2123) if code != 0x7F and _encodable(chr(code))])
_PROSE = st.sampled_from(list("aáñ \"',()[]-`½\N{NO-BREAK SPACE}"))


@given(data=st.data())
@pytest.mark.parametrize(
    ("encoding", "letters"), [("utf-8-sig", _UNICODE), ("utf-8", _UNICODE), ("windows-1252", _WINDOWS)],
    ids=["BOM", "utf-8", "windows-1252"],
)  # fmt: skip
@pytest.mark.parametrize("separator", [",", "\t"], ids=["csv", "txt"])
def test_any_name_is_read_back_exactly(
    tmp_path_factory: pytest.TempPathFactory,
    encoding: str,
    letters: st.SearchStrategy[str],
    separator: str,
    data: st.DataObject,
) -> None:
    name = st.text(letters | _PROSE, min_size=1, max_size=40).filter(_fits)
    names = data.draw(st.lists(name, min_size=1, max_size=5))
    # Enough ordinary rows follow to detect the encoding, whatever the names could be in another.
    places = [Place(f"01001{number:04d}", name) for number, name in enumerate([*names, *["Peñón"] * 200], 1)]
    path = tmp_path_factory.getbasetemp() / f"any-{encoding}.csv"
    path.write_bytes(text_of(places, separator=separator).encode(encoding))
    assert names_of(read_catalogue(path))[: len(names)] == names


@given(
    lines=st.lists(st.text('"",\tx ', max_size=12) | st.text(max_size=6), max_size=9),
    end=st.sampled_from(["\n", ""]),
    separator=st.sampled_from([",", "\t"]),
)
def test_lines_are_split_in_batches_as_each_alone(lines: list[str], end: str, separator: str) -> None:
    lines = [line.rstrip("\n") for line in lines]
    alone = [split_line(line, separator) for line in lines]
    assert split_lines([line + end for line in lines], separator) == alone


# Zips


def test_utf_8_member_of_a_zip_is_preferred(tmp_path: Path) -> None:
    path = write_zip(
        tmp_path / "catun_localidad.zip",
        {
            "AGEEML_20189281012.csv": text_of([Place("010010001", "Windows ó")] * 2).encode("windows-1252"),
            "AGEEML_20189281012_utf.csv": text_of([Place("010010001", "Utf ó")]).encode("utf-8-sig"),
        },
    )
    with open_table(path) as table:
        assert table.member == "AGEEML_20189281012_utf.csv"
        assert names_of(transform(table, unwatched)) == ["Utf ó"]


@pytest.mark.parametrize(
    ("name", "members"),
    [
        ("windows-1252 alone.zip", {"AGEEML_2018.csv": text_of(TRAPS).encode("windows-1252")}),
        ("without an extension", {"AGEEML.txt": text_of(TRAPS, separator="\t").encode()}),
        (
            "among others.zip",
            {
                "leeme.txt": b"Fuente: INEGI",
                "__MACOSX/._AGEEML.csv": b"\0\x05\x16\x07",
                "mapa.pdf": b"%PDF-1.7" * 10_000,
                "folder/AGEEML.CSV": text_of(TRAPS).encode(),
            },
        ),
    ],
    ids=["windows-1252 alone", "without an extension", "the largest table among other files"],
)
def test_table_of_a_zip_is_read(
    tmp_path: Path, expected: CatalogueRecords, name: str, members: dict[str, bytes]
) -> None:
    assert read_catalogue(write_zip(tmp_path / name, members)) == expected


def test_zip_without_a_table_is_refused(tmp_path: Path) -> None:
    path = write_zip(tmp_path / "catun_localidad.zip", {"mapa.pdf": b"%PDF-1.7"})
    with pytest.raises(CatalogueError, match=r"no csv or txt file \(it has .pdf\)"):
        read_catalogue(path)


def changed(archive: bytes, at: int, value: int) -> bytes:
    """Set bits of a byte in the head of the only member and in the directory's entry, which has it two bytes later."""
    content = bytearray(archive)
    for place in (at, content.rindex(b"PK\x01\x02") + at + 2):
        content[place] |= value
    return bytes(content)


def inverted(archive: bytes) -> bytes:
    """Invert nine bytes in the middle."""
    middle = len(archive) // 2
    return archive[:middle] + bytes(byte ^ 0xFF for byte in archive[middle : middle + 9]) + archive[middle + 9 :]


@pytest.mark.parametrize(
    ("damage", "sentence"),
    [
        (lambda archive: changed(archive, 6, 1), r"locked.*password"),
        (lambda archive: changed(archive, 8, zipfile.ZIP_LZMA), "uncommon compression method"),
        (lambda archive: archive[:4], "damaged, cut short"),
        (lambda archive: archive[: len(archive) // 2], "damaged, cut short"),
        (lambda archive: archive[:-1], "damaged, cut short"),
        (lambda archive: archive.replace("á".encode(), b"\xe1a"), "damaged"),
        (inverted, "damaged"),
    ],
    ids=["password", "compression", "head only", "half", "without its last byte", "name", "content"],
)
@pytest.mark.parametrize("compression", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_zip_that_cannot_be_read_is_refused_saying_why(
    tmp_path: Path, damage: Callable[[bytes], bytes], sentence: str, compression: int
) -> None:
    text = text_of([place for place in TRAPS if "á" not in place.nombre]).encode()
    path = write_zip(tmp_path / "catun_localidad.zip", {"Catálogo.csv": text}, compression)
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(CatalogueError, match=sentence):
        read_catalogue(path)


@given(st.data())
def test_zip_with_any_changed_byte_is_refused_or_unchanged(
    tmp_path_factory: pytest.TempPathFactory, expected: CatalogueRecords, data: st.DataObject
) -> None:
    compression = data.draw(st.sampled_from([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED]))
    path = tmp_path_factory.getbasetemp() / "changed.zip"
    content = bytearray(write_zip(path, {"AGEEML.csv": text_of(TRAPS).encode()}, compression).read_bytes())
    # Half of the changes hit the directory, where more can go wrong than in the text.
    directory = content.index(b"PK\x01\x02")
    last = len(content) - 1
    position = data.draw(st.integers(0, last) | st.integers(directory, last) | st.integers(0, 45))
    content[position] ^= data.draw(st.integers(1, 255))
    path.write_bytes(content)
    with suppress(CatalogueError):
        assert read_catalogue(path) == expected


# Files that aren't catalogues


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\n",
        BOM,
        b"\r\n\r\n",
        b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n1 0 obj\n",
        bytes(range(256)) * 10,
        b"\x00" * 300_000,
        b"x" * 300_000,
        b'"' + b"x," * 150_000,
        b"<!DOCTYPE html>\n<html><body>No disponible</body></html>\n",
        b'"CVE_ENT","NOM_ENT","NOM_ABR","CVE_CAP"\r\n"01","Aguascalientes","Ags.","0001"\r\n',
        b"CVEGEO,NOM_LOC\r\n010010001,Aguascalientes\r\n",
        b"010010001,,01,Aguascalientes,Ags.,001,Aguascalientes,0001,Aguascalientes,U\r\n",
        text_of(TRAPS).encode("utf-16"),
        text_of(TRAPS).encode("utf-16-le"),
        text_of(TRAPS).encode("utf-32"),
        b"PK\x05\x06",
    ],
    ids=lambda content: repr(content[:12]),
)
@pytest.mark.parametrize("zipped", [False, True], ids=["bare", "zipped"])
def test_other_file_is_refused_as_no_catalogue(tmp_path: Path, content: bytes, *, zipped: bool) -> None:
    path = tmp_path / "AGEEML.csv"
    path.write_bytes(content)
    if zipped:
        path = write_zip(tmp_path / "AGEEML.zip", {"AGEEML.csv": content})
    with pytest.raises(
        CatalogueError,
        match=r"not a catalogue|a byte that is not|^The file is |^This file has estados",
    ):
        read_catalogue(path)


def test_header_without_required_columns_is_refused_naming_them(tmp_path: Path) -> None:
    path = tmp_path / "catun_municipio.csv"
    path.write_bytes(b'"CVEGEO","CVE_ENT","NOM_ENT","CVE_MUN","NOM_MUN"\r\n')
    with pytest.raises(CatalogueError) as refused:
        read_catalogue(path)
    assert str(refused.value) == (
        "This file has municipios, not localities (its first line does not name CVE_LOC, NOM_LOC): use the file of"
        " INEGI's catun_localidad.zip."
    )


def test_census_table_is_refused_as_such(tmp_path: Path) -> None:
    path = tmp_path / "ITER_01CSV20.csv"
    path.write_bytes(b"ENTIDAD,NOM_ENT,MUN,NOM_MUN,LOC,NOM_LOC,LONGITUD,LATITUD,ALTITUD,POBTOT\r\n")
    with pytest.raises(CatalogueError, match=r"This is a table of the census \(ITER\), which is no catalogue"):
        read_catalogue(path)


def test_semicolons_of_spanish_excel_are_read(tmp_path: Path, expected: CatalogueRecords) -> None:
    rows = csv.reader(io.StringIO(text_of(TRAPS).replace('"N"', 'N"').replace('"W"', 'W"')))
    path = tmp_path / "AGEEML.csv"
    written = io.StringIO()
    csv.writer(written, delimiter=";").writerows(rows)
    path.write_text(written.getvalue(), "utf-8-sig", newline="")
    assert read_catalogue(path) == expected


@pytest.mark.parametrize("end", ["\n", "\r\n"], ids=["lf", "crlf"])
def test_line_is_counted_as_an_editor_counts_despite_quoted_line_breaks(tmp_path: Path, end: str) -> None:
    places = many(300)
    lines = lines_of(place.values() for place in places)
    lines[260] = lines[260].replace(places[259].nombre, f"Lugar{end}partido")
    lines[270] = lines[270].replace('"R"', '"X"')
    path = tmp_path / "AGEEML.csv"
    path.write_bytes("".join(f"{line}{end}" for line in lines).encode())
    shown = path.read_text().splitlines()
    catalogue = read_catalogue(path)
    assert [position for position, _ in catalogue.rejected] == [Position("line", line) for line in (261, 262, 272)]
    assert catalogue.rejected[-1].reason == "AMBITO is neither U nor R"
    assert '"X"' in shown[272 - 1]


def test_gzip_is_read(tmp_path: Path, expected: CatalogueRecords) -> None:
    path = tmp_path / "AGEEML.csv.gz"
    path.write_bytes(gzip.compress(text_of(TRAPS).encode()))
    assert read_catalogue(path) == expected
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(CatalogueError, match="damaged, cut short"):
        read_catalogue(path)


# Other file types by their first bytes; some files are written by libraries.
OTHERS = {
    "a dBase table (.dbf)": b"\x03\x7a\x0b\x1a\x10\0\0\0",
    "an Excel workbook of before 2007 (.xls), or has a password": b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1",
    "a PDF": b"%PDF-1.7\n",
    "a web page": b"\n<!doctype HTML>\n<title>x</title>",
    "XML": b"<?xml version='1.0'?>",
    "an R data file (.rda, .rds)": gzip.compress(b"RDX3\nX\n\0\0\0\x03"),
    "a 7z or RAR archive": b"7z\xbc\xaf\x27\x1c\0\x04",
    "compressed with bzip2, xz or zstd": lzma.compress(b"CVE_ENT"),
    "an SQLite database or a GeoPackage": b"SQLite format 3\0",
    "UTF-16": "CVE_ENT".encode("utf-16"),
    "not text, or is UTF-16": "CVE_ENT".encode("utf-16-le"),
}


@pytest.mark.parametrize("what", OTHERS)
def test_other_file_type_is_refused_naming_it(tmp_path: Path, what: str) -> None:
    path = tmp_path / "localidades"
    path.write_bytes(OTHERS[what])
    with pytest.raises(CatalogueError, match=f"^The file is {re.escape(what)}: .*; or use INEGI's own zip"):
        read_catalogue(path)


def test_parquet_file_is_refused_naming_it(tmp_path: Path) -> None:
    parquet.write_table(pa.table({"CVE_ENT": ["01"]}), tmp_path / "localidades.parquet")
    with pytest.raises(CatalogueError, match="The file is a Parquet file: save its table as CSV"):
        read_catalogue(tmp_path / "localidades.parquet")


def test_text_that_starts_like_another_file_type_is_read() -> None:
    for header in (b"PAR1,PAR2", b"RDX3", b"BZh9,x", b"Rar!,x", b"X\nY", b"\xef\xbb\xbfCVE_ENT", b"01\n\n02"):
        assert describe_kind(header) is None


# Workbooks


def write_workbook(path: Path, rows: Iterable[Sequence[object]]) -> Path:
    """Write a workbook whose first sheet is the table, as a person saves it from Excel."""
    workbook = openpyxl.Workbook()
    sheet = workbook.active
    assert sheet is not None
    for row in rows:
        sheet.append([*row])
    workbook.create_sheet("Fuente").append(["INEGI"])
    workbook.save(path)
    return path


def rows_of_traps() -> list[tuple[str, ...]]:
    return [HEADER, *(place.values() for place in TRAPS)]


def test_workbook_is_read(tmp_path: Path, expected: CatalogueRecords) -> None:
    assert read_catalogue(write_workbook(tmp_path / "localidades.xlsx", rows_of_traps())) == expected


def test_workbook_written_by_another_library_is_read(tmp_path: Path, expected: CatalogueRecords) -> None:
    with xlsxwriter.Workbook(tmp_path / "localidades.xlsx", {"constant_memory": True}) as workbook:  # no shared texts
        sheet = workbook.add_worksheet()
        for number, row in enumerate(rows_of_traps()):
            for column, value in enumerate(row):
                sheet.write_string(number, column, value)
    assert read_catalogue(tmp_path / "localidades.xlsx") == expected


def test_workbook_with_numeric_cells_is_read(tmp_path: Path, expected: CatalogueRecords) -> None:
    rows = [[_as_number(value) for value in row] for row in rows_of_traps()]
    found = read_catalogue(write_workbook(tmp_path / "localidades.xlsx", rows))
    assert found.zeros_restored
    assert replace(found, zeros_restored=False) == expected


def _as_number(value: str) -> str | float:
    with suppress(ValueError):
        return float(value)
    return value


def write_sheet(path: Path, rows: Mapping[int, Sequence[str]]) -> Path:
    """Write rows by their number in the sheet, from 1, and leave the others empty."""
    with xlsxwriter.Workbook(path) as book:
        sheet = book.add_worksheet()
        for number, row in rows.items():
            sheet.write_row(number - 1, 0, row)
    return path


def test_row_of_a_sheet_is_counted_as_excel_counts_despite_empty_rows(tmp_path: Path) -> None:
    rows = {5: HEADER} | {row + 5 + (row > 150): place.values() for row, place in enumerate(many(400), 1)}
    rows[66] = tuple("X" if value == "R" else value for value in rows[66])
    rows[300] = ("Fuente: INEGI",)
    catalogue = read_catalogue(write_sheet(tmp_path / "localidades.xlsx", rows))
    assert catalogue.rejected == [
        Rejected(Position("row", 66), "AMBITO is neither U nor R"),
        Rejected(Position("row", 300), "CVE_LOC is not four digits from 0001"),
    ]


def test_fault_of_a_whole_workbook_names_its_row(tmp_path: Path) -> None:
    rows = {5: HEADER} | {row + 6: place.values() for row, place in enumerate(many(100), 1)}
    path = write_sheet(tmp_path / "localidades.xlsx", rows | {66: ("", *rows[66][1:2], "33", *rows[66][3:])})
    with pytest.raises(CatalogueError, match=r"^Row 66 names an unknown estado 33"):
        read_catalogue(path)
    path = write_sheet(tmp_path / "localidades.xlsx", rows | dict.fromkeys(range(60, 80), ("x",)))
    with pytest.raises(CatalogueError, match=r"20 of 100 rows can't be read; the first is row 60: "):
        read_catalogue(path)
    path = write_sheet(tmp_path / "localidades.xlsx", rows | {66: ['"' * 32_767] * 31})  # 2 MB of CSV
    with pytest.raises(CatalogueError, match=r"^Row 66 has more than a million characters"):
        read_catalogue(path)


def test_line_break_in_a_cell_starts_no_line(tmp_path: Path) -> None:
    rows = [HEADER, *(place.values() for place in many(30)), ("x",)]
    sound = write_workbook(tmp_path / "sound.xlsx", rows)
    with zipfile.ZipFile(sound) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    cell = b'<c r="Z3" t="d"><v>2026-01-01\n</v></c></row>'
    sheet = members["xl/worksheets/sheet1.xml"]
    third = sheet.index(b"</row>", sheet.index(b'<row r="3"'))
    members["xl/worksheets/sheet1.xml"] = sheet[:third] + cell + sheet[third + len(b"</row>") :]
    catalogue = read_catalogue(write_zip(tmp_path / "broken.xlsx", members))
    assert [position for position, _ in catalogue.rejected] == [Position("row", 3), Position("row", 32)]


def test_sheet_of_more_rows_than_excel_has_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_workbook(tmp_path / "localidades.xlsx", rows_of_traps())
    monkeypatch.setattr(workbook, "MAX_ROWS", len(TRAPS) + 1)
    assert len(read_catalogue(path).localities) == len(TRAPS)
    monkeypatch.setattr(workbook, "MAX_ROWS", len(TRAPS))
    with pytest.raises(CatalogueError, match=f"The sheet has more than {len(TRAPS)} rows"):
        read_catalogue(path)


def test_sheet_is_read_by_its_name(tmp_path: Path, expected: CatalogueRecords) -> None:
    workbook = openpyxl.Workbook()
    workbook.create_sheet("Localidades & más")
    for row in rows_of_traps():
        workbook["Localidades & más"].append(row)
    workbook.save(tmp_path / "localidades.xlsx")
    with open_table(tmp_path / "localidades.xlsx", "Localidades & más") as table:
        assert transform(table, lambda _: None) == expected
    with (
        pytest.raises(CatalogueError, match=r"no such sheet; it has `Sheet`, `Localidades & más`\."),
        open_table(tmp_path / "localidades.xlsx", "Hoja1"),
    ):
        pass


def test_sheet_name_for_a_text_file_is_refused(tmp_path: Path) -> None:
    path = write_catalogue(tmp_path / "AGEEML.csv", TRAPS)
    with pytest.raises(CatalogueError, match="no workbook"), open_table(path, "Hoja1"):
        pass


def test_formula_without_a_value_is_refused_naming_its_cell(tmp_path: Path) -> None:
    rows = [[*rows_of_traps()[0], "sum"], [*rows_of_traps()[1], "=1+1"]]
    with pytest.raises(CatalogueError, match=r"Cell [A-Z]+2 has a formula without its value"):
        read_catalogue(write_workbook(tmp_path / "localidades.xlsx", rows))


def test_stray_cell_at_the_end_of_a_workbook_takes_no_memory(tmp_path: Path) -> None:
    with xlsxwriter.Workbook(tmp_path / "localidades.xlsx", {"constant_memory": True}) as workbook:
        sheet = workbook.add_worksheet()
        sheet.write_row(0, 0, HEADER)
        for number, place in enumerate(many(100), 1):
            sheet.write_row(number, 0, place.values())
        sheet.write_string(2**20 - 1, 2**14 - 1, "stray")
    catalogue = read_catalogue(tmp_path / "localidades.xlsx")
    assert (len(catalogue.localities), len(catalogue.rejected)) == (100, 1)


@pytest.mark.parametrize("member", ["xl/workbook.xml", "xl/worksheets/sheet1.xml", "xl/_rels/workbook.xml.rels"])
@pytest.mark.parametrize("content", [None, b"", b"<a>", b"<a/>", b'<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>'])
def test_corrupt_workbook_is_refused_as_such(tmp_path: Path, member: str, content: bytes | None) -> None:
    sound = write_workbook(tmp_path / "sound.xlsx", rows_of_traps())
    with zipfile.ZipFile(sound) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    del members[member]
    damaged = write_zip(tmp_path / "damaged.xlsx", members | ({} if content is None else {member: content}))
    with pytest.raises(CatalogueError, match=r"The workbook can't be read|not a catalogue|no csv or txt"):
        read_catalogue(damaged)


def test_header_without_rows_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CatalogueError, match="no localities"):
        read_catalogue(write_catalogue(tmp_path / "AGEEML.csv", []))


@pytest.mark.parametrize("where", ["in the sample", "after it"])
def test_bytes_in_neither_encoding_are_refused(tmp_path: Path, where: str) -> None:
    places = [Place(f"01001{number:04d}", f"Peñón {number}") for number in range(1, 3_000)]
    content = text_of(places).encode("windows-1252")
    middle = content.index(b"\n", 1_000 if where == "in the sample" else 400_000) + 30
    path = tmp_path / "AGEEML.csv"
    path.write_bytes(content[:middle] + b"\x81" + content[middle:])  # 0x81 is undefined in windows-1252
    line = content[:middle].count(b"\n") + 1
    with pytest.raises(CatalogueError, match=rf"^Line {line} has a byte that is not valid windows-1252"):
        read_catalogue(path)


@pytest.mark.parametrize("bad", [b"\xf1", b"\xff", b"\xc3", b"\xed\xa0\x80"], ids=repr)
@pytest.mark.parametrize("row", [1, 150, 2_998])  # in the first sample, and after it
@pytest.mark.parametrize(("bom", "end"), [(BOM, "\r\n"), (b"", "\n")], ids=["BOM, crlf", "lf"])
def test_invalid_utf_8_byte_is_refused_with_its_line(
    tmp_path: Path, bom: bytes, row: int, bad: bytes, end: str
) -> None:
    places = [Place(f"01001{number:04d}", f"Peñón {number}") for number in range(1, 3_000)]
    lines = text_of(places, end=end).encode().splitlines(keepends=True)
    lines[row] = lines[row].replace("ñ".encode(), bad)
    path = tmp_path / "AGEEML.csv"
    path.write_bytes(bom + b"".join(lines))
    with pytest.raises(CatalogueError, match=rf"^Line {row + 1} has a byte that is not valid UTF-8"):
        read_catalogue(path)


def without_marks(text: str) -> str:
    """Leave names as the only letters outside ASCII."""
    return text.replace("°", " ").replace("\N{ACUTE ACCENT}", " ")


@pytest.mark.parametrize("bom", [BOM, b""], ids=["BOM", "no BOM"])
def test_utf_8_with_few_accents_is_not_read_as_windows_1252(tmp_path: Path, bom: bytes) -> None:
    """One valid letter or a BOM decides for UTF-8, despite invalid bytes."""
    names = ["Peña" if not bom else "Lugar", *["Pe\udcf1a"] * 5]
    places = [Place(f"01001{number:04d}", name) for number, name in enumerate(names, 1)]
    path = tmp_path / "AGEEML.csv"
    path.write_bytes(bom + without_marks(text_of(places)).encode(errors="surrogateescape"))
    with pytest.raises(CatalogueError, match=r"^Line 3 has a byte that is not valid UTF-8"):
        read_catalogue(path)


def test_windows_1252_that_starts_like_utf_8_is_read(tmp_path: Path) -> None:
    names = ["CAÑ½N", *[f"Peñón {number}" for number in range(20)]]  # Ñ½ is D1 BD, as a letter of Cyrillic in UTF-8
    assert names[0].encode("windows-1252").decode() == "CA\u047dN"
    places = [Place(f"01001{number:04d}", name) for number, name in enumerate(names, 1)]
    # The first sample has nothing else to go by.
    plain = [Place(f"01001{number:04d}", f"Lugar {number}") for number in range(2_000, 4_000)]
    path = tmp_path / "AGEEML.csv"
    path.write_bytes(without_marks(text_of([places[0], *plain, *places[1:]])).encode("windows-1252"))
    assert names_of(read_catalogue(path)) == [*names, *(place.nombre for place in plain)]


@pytest.mark.parametrize("encoding", ["windows-1252", "utf-8"])
def test_encoding_is_detected_from_a_single_letter_at_the_beginning_or_the_end(tmp_path: Path, encoding: str) -> None:
    header, row = "CVE_ENT,NOM_ENT,CVE_MUN,NOM_MUN,CVE_LOC,NOM_LOC\n", "01,A,001,B,0001,C\n"
    end = "Fuente: Instituto de Geograf\u00eda\u00ed"
    path = tmp_path / "AGEEML.csv"
    for text, last in ((header + row + end, end), (f"\u00f1,{header}1,{row}", f"1,{row}")):
        path.write_bytes(text.encode(encoding))
        with open_table(path) as table:
            assert [*table.lines][-1] == last


@given(content=st.binary(max_size=200), whole=st.booleans())
def test_arbitrary_bytes_are_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, content: bytes, *, whole: bool
) -> None:
    path = tmp_path_factory.getbasetemp() / "any-bytes.csv"
    path.write_bytes(text_of(TRAPS).encode() + content if whole else content)
    try:
        catalogue = read_catalogue(path)
    except CatalogueError:
        return
    assert len(catalogue.localities) >= len(TRAPS)
