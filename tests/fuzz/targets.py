"""Readers to fuzz: each target refuses bytes with one of the service's errors, or reads them correctly."""

import io
import json
import pyexpat
import zipfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile
from time import process_time
from typing import NamedTuple

from localidades_api.bulk.answers import describe_problem, match_row
from localidades_api.bulk.columns import Reading, assign
from localidades_api.bulk.formats import XLSX, MediaType, reader
from localidades_api.bulk.input_rows import RowError
from localidades_api.bulk.roles import ROLES
from localidades_api.bulk.writers import writer
from localidades_api.catalogue.folding import fold
from localidades_api.catalogue.keys import PlaceKind
from localidades_api.errors import LocalidadesError
from localidades_api.html.languages.accept_language import choose_language
from localidades_api.http.conditional import is_fresh
from localidades_api.http.negotiation import choose_coding, choose_media_type
from localidades_api.importer.extract import open_table
from localidades_api.importer.transform import transform
from localidades_api.names.index import NameIndex
from localidades_api.server.heads import check_head, has_body
from tests.support.catalogue import TRAPS, lines_of, unwatched
from tests.support.long_texts import long_texts
from tests.support.names import open_index
from tests.support.workbooks import shared_texts, workbook_of

# The event loop gets its turn ten times as often; instrumented code is slow.
_MAX_SLICE = 1.0  # seconds of processor time
_MAX_ROW = 0.2  # seconds of processor time
_KINDS: Mapping[bytes, PlaceKind] = {b"l": "localidad", b"m": "municipio", b"e": "estado"}
_ENCODINGS = ("utf-8", "cp1252", "latin-1", "utf-16-le", "utf-16-be")
_NOTHING = {**describe_problem(""), "outcome": "none"}


class Target(NamedTuple):
    """A function that reads bytes or refuses them, and returns which, and bytes to begin with."""

    read: Callable[[bytes], bool]
    seeds: Sequence[bytes]


def _read_rows(data: bytes, media_type: MediaType) -> bool:
    """Read rows as a request's body, and write an answer to each."""
    with suppress(LocalidadesError), TemporaryFile() as file:  # a workbook's reader needs a real file
        file.write(data)
        file.seek(0)
        rows = reader(media_type, file, Reading(ROLES))
        began = process_time()
        for _ in rows.check():
            assert process_time() - began < _MAX_SLICE, "the event loop is held"
            began = process_time()
        target = writer(media_type, rows)
        written = target.begin()
        found = list(rows)
        assert len(found) == rows.count
        for row in found:
            written += target.write(row, _NOTHING)
        written += target.end()
        rows.describe(found[:5])
        if media_type == XLSX:
            _check_workbook(written)
        elif media_type != "text/csv":
            for line in [written] if media_type == "application/json" else written.splitlines():
                json.loads(line)
        return True
    return False


def _check_workbook(written: bytes) -> None:
    """Check that a workbook is a whole archive, and that its sheets are XML."""
    with zipfile.ZipFile(io.BytesIO(written)) as archive:
        assert archive.testzip() is None
        sheets = [name for name in archive.namelist() if name.startswith("xl/worksheets/sheet")]
        assert sheets
        for name in sheets:
            pyexpat.ParserCreate().Parse(archive.read(name), True)  # noqa: FBT003  # the end of it


@cache
def _workbooks() -> list[dict[str, bytes]]:
    """Return the members of two workbooks."""
    rows = [("Localidad", "Municipio", "x"), ("Peñón", "Asientos", 1.5), ("Ixtapa", None, True)]
    found = []
    for data in (workbook_of(*rows), shared_texts("Localidad", "Ixtapa", "Peñón")):
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            found.append({name: archive.read(name) for name in archive.namelist()})
    return found


def _read_workbook(data: bytes) -> bool:
    """Read a workbook of which one member is `data`; its first two bytes choose which."""
    if len(data) < 2:  # the choice
        return False
    members = dict(_workbooks()[data[0] % 2])
    members[list(members)[data[1] % len(members)]] = data[2:]
    return _read_rows(_zip_of(members), XLSX)


def _read_catalogue(data: bytes, *, is_packed: bool = False) -> bool:
    """Read INEGI's file: every name of a place is in it."""
    with suppress(LocalidadesError), TemporaryFile() as file:
        file.write(data)
        file.seek(0)
        with open_table(file) as table:
            for place in transform(table, unwatched).localities:
                names = (place.nombre.encode(encoding, "ignore") for encoding in _ENCODINGS)
                assert is_packed or any(name in data for name in names), place
        return True
    return False


def _read_head(data: bytes) -> bool:
    """Check a head as the server does, and choose by its fields as routing does."""
    first, *lines = data.split(b"\r\n")
    method, _, target = first.partition(b" ")
    fields = [(name.lower(), value) for name, _, value in (line.partition(b":") for line in lines)]
    with suppress(LocalidadesError):
        check_head(method, target, "1.1", fields)
    has_body(fields)
    text = data.decode("latin-1")
    choose_language(text)
    choose_coding([text], ["br", "gzip", "identity"])
    is_fresh([text], '"2020-01.json"')
    with suppress(LocalidadesError):
        choose_media_type(text, ["application/json", "text/html"])
    return True


@cache
def _names() -> tuple[NameIndex, TemporaryDirectory[str]]:
    """Return an index and its folder, which is removed at the end of the process."""
    folder = TemporaryDirectory()
    return open_index(Path(folder.name)), folder


def _match_row(data: bytes) -> bool:
    """Match a row, whose cells end at a NUL, as what its first byte chooses; the time of one row is bounded."""
    kind, cells = _KINDS.get(data[:1]), data[1:].decode(errors="replace").split("\0")
    if kind is None or len(cells) > len(ROLES.by_name):
        return False
    headers = [*ROLES.by_name][: len(cells)]
    names, _ = _names()
    began = process_time()
    try:
        row = assign(headers, ROLES.of_kind(kind), {}).read(1, cells, cells)
    except RowError:
        return False
    answer = match_row(row, names)
    assert process_time() - began < _MAX_ROW, "the event loop is held"
    return bool(answer["outcome"] != "problem")


def _zip_of(members: Mapping[str, bytes]) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return file.getvalue()


def targets() -> dict[str, Target]:
    """Return all targets by name."""
    catalogue = "\r\n".join(lines_of(place.values() for place in TRAPS))
    members = [
        bytes([which, at]) + content
        for which, workbook in enumerate(_workbooks())
        for at, content in enumerate(workbook.values())
    ]
    rows: dict[MediaType, bytes] = {
        "text/csv": 'Localidad,Municipio,Estado\r\nPeñón,"San\nJosé",Jal.\r\nIxtapa;x,,\r\n'.encode(),
        "application/json": '{"rows": [{"nombre": "Peñón", "lat": 20.5}, {"cvegeo": 140390001}]}'.encode(),
        "application/x-ndjson": '{"nombre": "Peñón"}\n\n{"cvegeo": "140390001"}\n'.encode(),
        XLSX: workbook_of(("Localidad", "Municipio"), ("Peñón", "Asientos")),
    }
    names = ("csv", "json", "ndjson", "package")
    cells = [
        b"lSeybaplaya\0Centla\0\0Tabasco\x0018.5\0-92.6",
        b"lEl Colorado (Rancho), Pto. Vallarta, Jal.",
        *(b"l" + text.encode() for text in long_texts(200) if fold(text)),
    ]
    head = b"GET /x?a=%20 HTTP/1.1\r\nHost: a:80\r\nAccept: text/html;q=0.5, */*\r\nTransfer-Encoding: chunked"
    return {
        **{
            name: Target(partial(_read_rows, media_type=media_type), [seed])
            for name, (media_type, seed) in zip(names, rows.items(), strict=True)
        },
        "archive": Target(
            partial(_read_catalogue, is_packed=True), [_zip_of({"catun_localidad.csv": catalogue.encode()})]
        ),
        "catalogue": Target(_read_catalogue, [catalogue.encode(), catalogue.encode("cp1252")]),
        "head": Target(_read_head, [head, b"es-MX,es;q=0.9", b'W/"a", "b"']),
        "row": Target(_match_row, cells),
        "workbook": Target(_read_workbook, members),
    }
