"""What files are read as the same catalogue, and with which sentence others are refused."""

import csv
import gzip
import io
import re
import zipfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localidades_api.catalogue.columns import ATTRIBUTES
from localidades_api.errors import CatalogueError
from localidades_api.importer.extract import open_table, split_line, split_lines
from localidades_api.importer.transform import CatalogueRecords
from tests.support.catalogue import HEADER, TRAPS, Place, lines_of, many, read_catalogue, write_catalogue
from tests.support.workbooks import workbook_of, zip_of

BOM = b"\xef\xbb\xbf"
OLD_HEADER = (
    "Mapa", "Cve_Ent", "Nom_Ent", "Nom_Abr", "Cve_Mun", "Nom_Mun", "Cve_Loc", "Nom_Loc", "Ámbito",
    "Latitud", "Longitud", "Lat_Decimal", "Lon_Decimal", "Altitud", "Cve_Carta",
    "Pob_Total", "Pob_Masculina", "Pob_Femenina", "Total de Viviendas Habitadas",
)  # fmt: skip
ROWS = [place.values() for place in TRAPS]
TABLE = [HEADER, *ROWS]
# As the old layout has them, which calls the key Mapa and lacks Estatus.
_OLD_NAMES = [name.upper().replace("MAPA", "CVEGEO").replace("Á", "A") for name in OLD_HEADER]
OLD_ROWS = [[dict(zip(HEADER, row, strict=True))[name] for name in _OLD_NAMES] for row in ROWS]


def as_inegi(
    rows: Iterable[Sequence[str]] = ROWS, header: Sequence[str] = HEADER, *,
    end: str = "\r\n", separator: str = ",", encoding: str = "utf-8",
) -> bytes:  # fmt: skip
    """Write rows as INEGI does."""
    return "".join(line + end for line in lines_of(rows, header, separator)).encode(encoding)


def places_as_inegi(places: Iterable[Place], **options: str) -> bytes:
    return as_inegi((place.values() for place in places), **options)


def as_csv(rows: Iterable[Sequence[str]] = TABLE, *, delimiter: str = ",", quoting: int = csv.QUOTE_MINIMAL) -> bytes:
    """Write rows as other programs do."""
    text = io.StringIO(newline="")
    csv.writer(text, delimiter=delimiter, quoting=quoting).writerows(rows)  # type: ignore[arg-type]  # a constant
    return text.getvalue().encode()


def read(tmp_path: Path, content: bytes, name: str = "localidades") -> CatalogueRecords:
    path = tmp_path / name
    path.write_bytes(content)
    return read_catalogue(path)


def names_of(catalogue: CatalogueRecords) -> list[str]:
    return [locality.nombre for locality in sorted(catalogue.localities)]


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> CatalogueRecords:
    """Return the traps as read from UTF-8 with a BOM and CRLF, which is INEGI's own format."""
    found = read_catalogue(write_catalogue(tmp_path_factory.mktemp("expected") / "AGEEML.csv", TRAPS))
    assert names_of(found) == [place.nombre for place in TRAPS]
    assert found.rejected == []
    return found


# -- The same catalogue in other bytes

SPELLINGS: tuple[Callable[[str], str], ...] = (str, str.lower, str.upper)
SAME = {
    **{
        f"{encoding} {end!r} {separator!r}": as_inegi(end=end, separator=separator, encoding=encoding)
        for encoding, end, separator in product(["utf-8-sig", "utf-8", "windows-1252"], ["\r\n", "\n"], [",", "\t"])
    },
    **{
        f"old header {encoding} {spell.__name__}": as_inegi(OLD_ROWS, [*map(spell, OLD_HEADER)], encoding=encoding)
        for encoding, spell in product(["utf-8", "windows-1252"], SPELLINGS)
    },
    "columns in another order": as_inegi([row[::-1] for row in ROWS], HEADER[::-1]),
    "additional column": as_inegi([(*row, "something new") for row in ROWS], (*HEADER, "NUEVA")),
    "escaped quotes": as_csv(),
    "escaped quotes and tabs": as_csv(delimiter="\t"),
    "every value quoted": as_csv(quoting=csv.QUOTE_ALL),
    "first value quoted": re.sub(rb"^[^,]+", rb'"\g<0>"', as_csv(), flags=re.MULTILINE),
    "semicolons of Spanish Excel": BOM + as_csv(delimiter=";"),
    "carriage return at the end": as_inegi().removesuffix(b"\n"),
    "gzip": gzip.compress(as_inegi()),
    "zip": zip_of({"AGEEML_2018.csv": as_inegi(encoding="windows-1252")}),
    "zip of a txt": zip_of({"AGEEML.txt": as_inegi(separator="\t")}),
    "zip with other files": zip_of({
        "leeme.txt": b"Fuente: INEGI", "__MACOSX/._AGEEML.csv": b"\0\x05\x16\x07", "mapa.pdf": b"%PDF-1.7" * 10_000,
        "folder/AGEEML.CSV": as_inegi(),
    }),
    "zip with both encodings": zip_of({
        "AGEEML.csv": as_inegi([*ROWS, ("x",)], encoding="windows-1252"), "AGEEML_utf.csv": as_inegi(),
    }),
}  # fmt: skip


@pytest.mark.parametrize("content", SAME.values(), ids=SAME)
def test_catalogue_is_read_from_every_kind_of_file(tmp_path: Path, expected: CatalogueRecords, content: bytes) -> None:
    assert read(tmp_path, content) == expected


def test_missing_optional_columns_are_empty(tmp_path: Path) -> None:
    header = ("CVE_ENT", "NOM_ENT", "CVE_MUN", "NOM_MUN", "CVE_LOC", "NOM_LOC")
    [locality] = read(tmp_path, as_inegi([("01", "A", "001", "B", "0007", "C")], header)).localities
    assert locality == (10010007, 1001, "0007", "C", *[None] * len(ATTRIBUTES))


@pytest.mark.parametrize("name", ['El "Güero"', '"Las Ardillas"', 'a"b', '"', 'La "Y", El Mirador', "A,B", ",", "'"])
@pytest.mark.parametrize("escaped", ['"', '""'])
def test_quote_in_a_name_is_kept_escaped_or_not(tmp_path: Path, name: str, escaped: str) -> None:
    places = [replace(TRAPS[0], nombre=name.replace('"', escaped)), TRAPS[1]]
    assert names_of(read(tmp_path, places_as_inegi(places))) == [name, "Ninguno"]


def test_member_that_is_read_is_told(tmp_path: Path) -> None:
    (tmp_path / "catun.zip").write_bytes(SAME["zip with both encodings"])
    with open_table(tmp_path / "catun.zip") as table:
        assert table.member == "AGEEML_utf.csv"


# Names that the layout can hold: `","` ends a value, and `""` is CSV's escape.
def _fits(name: str) -> bool:
    return bool(name.strip()) and '",' not in name and '"\t' not in name and '""' not in name


_UNICODE = st.characters(exclude_categories=("Cc", "Cs"))
_WINDOWS = st.characters(codec="windows-1252", exclude_categories=["Cc"])
_PROSE = st.sampled_from(list("aáñ \"',()[]-`½\N{NO-BREAK SPACE}"))


@given(data=st.data())
@pytest.mark.parametrize(
    ("encoding", "letters", "separator"),
    [("utf-8-sig", _UNICODE, ","), ("utf-8", _UNICODE, "\t"), ("windows-1252", _WINDOWS, ",")],
    ids=["BOM", "utf-8", "windows-1252"],
)
def test_any_name_is_read_back_exactly(
    tmp_path_factory: pytest.TempPathFactory, encoding: str, letters: st.SearchStrategy[str], separator: str,
    data: st.DataObject,
) -> None:  # fmt: skip
    name = st.text(letters | _PROSE, min_size=1, max_size=40).filter(_fits)
    names = data.draw(st.lists(name, min_size=1, max_size=5))
    # Enough ordinary rows follow to detect the encoding, whatever the names could be in another.
    places = [Place(f"01001{number:04d}", name) for number, name in enumerate([*names, *["Peñón"] * 60], 1)]
    content = places_as_inegi(places, separator=separator, encoding=encoding)
    assert names_of(read(tmp_path_factory.getbasetemp(), content, f"any-{encoding}.csv"))[: len(names)] == names


@given(
    lines=st.lists(st.text('"",\tx ', max_size=12) | st.text(max_size=6), max_size=9),
    end=st.sampled_from(["\n", ""]),
    separator=st.sampled_from([",", "\t"]),
)
def test_lines_are_split_in_batches_as_each_alone(lines: list[str], end: str, separator: str) -> None:
    lines = [line.rstrip("\n") for line in lines]
    alone = [split_line(line, separator) for line in lines]
    assert split_lines([line + end for line in lines], separator) == alone


# -- Encodings


def named(names: Iterable[str], encoding: str = "utf-8") -> bytes:
    """Return a table of these names, whose letters are the only ones outside ASCII."""
    lines = lines_of(Place(f"01001{number:04d}", name).values() for number, name in enumerate(names, 1))
    text = "".join(f"{line}\n" for line in lines).replace("°", " ").replace("\N{ACUTE ACCENT}", " ")
    return text.encode(encoding, "surrogateescape")


PLAIN = [f"Lugar {number}" for number in range(3_000)]


@pytest.mark.parametrize("encoding", ["windows-1252", "utf-8"])
def test_encoding_is_detected_from_a_single_letter_anywhere(tmp_path: Path, encoding: str) -> None:
    assert names_of(read(tmp_path, named([*PLAIN, "Peñón"], encoding)))[-1] == "Peñón"  # half a megabyte into the file
    header, row = "CVE_ENT,NOM_ENT,CVE_MUN,NOM_MUN,CVE_LOC,NOM_LOC\n", "01,A,001,B,0001,C\n"
    for text, last in ((f"{header}{row}Geograf\u00eda", "Geograf\u00eda"), (f"\u00f1,{header}1,{row}", f"1,{row}")):
        (tmp_path / "short.csv").write_bytes(text.encode(encoding))
        with open_table(tmp_path / "short.csv") as table:
            assert [*table.lines][-1] == last


def test_character_cut_by_the_sample_does_not_change_the_encoding(tmp_path: Path) -> None:
    start = places_as_inegi([Place("010010001", "y")])
    for offset in range(4):
        path = tmp_path / f"{offset}.csv"
        path.write_bytes(start + b"x" * (256 * 1024 - len(start) - offset) + ("ó" * 8).encode())
        with open_table(path) as table:
            assert "".join(table.lines).endswith("ó" * 8)


def test_windows_1252_that_starts_like_utf_8_is_read(tmp_path: Path) -> None:
    start = "CAÑ½N"  # Ñ½ is D1 BD, as a letter of Cyrillic in UTF-8; the first sample has nothing else to go by
    assert start.encode("windows-1252").decode() == "CA\u047dN"
    names = [start, *PLAIN, *["Peñón"] * 20]
    assert names_of(read(tmp_path, named(names, "windows-1252"))) == names


@pytest.mark.parametrize("start", [BOM, b""], ids=["BOM", "no BOM"])
def test_utf_8_with_few_accents_is_not_read_as_windows_1252(tmp_path: Path, start: bytes) -> None:
    """One valid letter or a BOM decides for UTF-8, despite invalid bytes."""
    content = start + named(["Lugar" if start else "Peña", *["Pe\udcf1a"] * 5])
    with pytest.raises(CatalogueError, match=r"^Line 3 has a byte that is not valid UTF-8"):
        read(tmp_path, content)


@pytest.mark.parametrize("bad", [b"\xf1", b"\xff", b"\xc3", b"\xed\xa0\x80", None], ids=repr)
@pytest.mark.parametrize("row", [1, 150, 2_998])  # in the first sample, and after it
def test_invalid_byte_is_refused_with_its_line(tmp_path: Path, row: int, bad: bytes | None) -> None:
    encoding, name = ("UTF-8", "utf-8-sig" if row == 150 else "utf-8") if bad else ("windows-1252", "windows-1252")
    places = [Place(f"01001{number:04d}", f"Peñón {number}") for number in range(1, 3_000)]
    lines = places_as_inegi(places, encoding=name).splitlines(keepends=True)
    # 0x81 is undefined in windows-1252.
    lines[row] = lines[row].replace("ñ".encode(name.removesuffix("-sig")), bad or b"\x81")
    with pytest.raises(CatalogueError, match=rf"^Line {row + 1} has a byte that is not valid {encoding}"):
        read(tmp_path, b"".join(lines))


# -- Files that are refused


def changed(archive: bytes, at: int, value: int) -> bytes:
    """Set bits of a byte in the header of the only member, and in the directory's entry two bytes further."""
    content = bytearray(archive)
    for place in (at, content.rindex(b"PK\x01\x02") + at + 2):
        content[place] |= value
    return bytes(content)


def inverted(archive: bytes) -> bytes:
    """Invert nine bytes in the middle."""
    middle = len(archive) // 2
    return archive[:middle] + bytes(byte ^ 0xFF for byte in archive[middle : middle + 9]) + archive[middle + 9 :]


DAMAGES: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "password": (lambda archive: changed(archive, 6, 1), r"locked.*password"),
    "compression": (lambda archive: changed(archive, 8, zipfile.ZIP_LZMA), "uncommon compression method"),
    "version": (lambda archive: changed(archive, 4, 0xFF), "damaged, cut short"),
    "head only": (lambda archive: archive[:4], "damaged, cut short"),
    "half": (lambda archive: archive[: len(archive) // 2], "damaged, cut short"),
    "without its last byte": (lambda archive: archive[:-1], "damaged, cut short"),
    "name": (lambda archive: archive.replace("á".encode(), b"\xe1a"), "damaged"),
    "content": (inverted, "damaged"),
}


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("compression", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_zip_that_cannot_be_read_is_refused_saying_why(tmp_path: Path, damage: str, compression: int) -> None:
    text = as_inegi([row for row in ROWS if "á" not in row[8]])
    make, sentence = DAMAGES[damage]
    with pytest.raises(CatalogueError, match=sentence):
        read(tmp_path, make(zip_of({"Catálogo.csv": text}, compression)))


@pytest.mark.parametrize(
    "content",
    [
        b"", b"\n", BOM, b"\r\n\r\n", bytes(range(256)) * 10, b"\x00" * 300_000, b"x" * 300_000, b'"' + b"x," * 150_000,
        b'"CVE_ENT","NOM_ENT","NOM_ABR","CVE_CAP"\r\n"01","Aguascalientes","Ags.","0001"\r\n',
        b"CVEGEO,NOM_LOC\r\n010010001,Aguascalientes\r\n",
        b"010010001,,01,Aguascalientes,Ags.,001,Aguascalientes,0001,Aguascalientes,U\r\n",
        as_inegi(encoding="utf-32"), b"PK\x05\x06",
    ],
    ids=lambda content: repr(content[:12]),
)  # fmt: skip
def test_other_file_is_refused_as_no_catalogue_also_in_a_zip(tmp_path: Path, content: bytes) -> None:
    for one in (content, zip_of({"AGEEML.csv": content})):
        with pytest.raises(CatalogueError, match=r"not a catalogue|a byte that is not|^The file is "):
            read(tmp_path, one)


REFUSED = {
    r"^The zip .*no csv or txt file \(it has .pdf\)": zip_of({"mapa.pdf": b"%PDF-1.7"}),
    "damaged, cut short": gzip.compress(as_inegi())[:-20],
    r"not a catalogue of localities: its first line does not name CVE_LOC, NOM_LOC\. Use": (
        b'"CVEGEO","CVE_ENT","NOM_ENT","CVE_MUN","NOM_MUN"\r\n'
    ),
    "no localities": as_inegi([]),
    "^The file is an Excel workbook: save its sheet as CSV": workbook_of(*TABLE),
    "^The file is not text, or is UTF-16": as_inegi(encoding="utf-16"),
}


@pytest.mark.parametrize(("sentence", "content"), REFUSED.items(), ids=[*map(str, range(len(REFUSED)))])
def test_file_is_refused_with_a_sentence(tmp_path: Path, sentence: str, content: bytes) -> None:
    with pytest.raises(CatalogueError, match=sentence):
        read(tmp_path, content)


# -- Lines and rows as an editor or Excel counts them


@pytest.mark.parametrize("end", ["\n", "\r\n"], ids=["lf", "crlf"])
def test_line_is_counted_as_an_editor_counts_despite_quoted_line_breaks(tmp_path: Path, end: str) -> None:
    places = many(300)
    lines = lines_of(place.values() for place in places)
    lines[260] = lines[260].replace(places[259].nombre, f"Lugar{end}partido")
    lines[270] = lines[270].replace('"R"', '"X"')
    catalogue = read(tmp_path, "".join(f"{line}{end}" for line in lines).encode())
    assert [line for line, _ in catalogue.rejected] == [261, 262, 272]
    assert catalogue.rejected[-1].reason == "AMBITO is neither U nor R"
