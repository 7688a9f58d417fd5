"""Downloads of the changes between two releases, as NDJSON or CSV."""

import csv
import io
from array import array
from collections.abc import AsyncGenerator, Iterable
from typing import Any, Literal, NamedTuple

from pydantic_core import to_json
from sqlalchemy import Row

from localidades_api.catalogue.columns import ATTRIBUTES
from localidades_api.catalogue.schemas import CHANGE_KINDS, Release
from localidades_api.database.pool import Database
from localidades_api.database.queries.changes import list_localities_of_both
from localidades_api.errors import DatabaseUnavailableError

ChangesFormat = Literal["ndjson", "csv"]

_CHUNK = 2000  # changes read per statement
_COMPARED = ("nombre", *ATTRIBUTES)
_HEADER = (
    *("change", "id", "municipio_id", "cvegeo", "clave", "nombre", "municipio", "estado", "differs"),
    *(f"{when}_{name}" for name in _COMPARED for when in ("before", "after")),
)
_NOT_RECORD = {"release_id", "municipio", "estado"}  # columns of a row that are not of the locality


class ChangedPlace(NamedTuple):
    """A change, as in JSON, and the names of the locality's municipio and estado."""

    content: dict[str, Any]
    municipio: str
    estado: str


async def describe_changes(database: Database, old: Release, new: Release, changes: "array[int]") -> list[ChangedPlace]:
    """Return changes with the locality's record in each of the two releases.

    `changes` is a flat array of pairs: the number of a kind, and a key.
    """
    if not changes:
        return []
    records = await list_localities_of_both(database, old, new, sorted(set(changes[1::2])))
    found = []
    for kind, id_ in zip(changes[0::2], changes[1::2], strict=True):
        before, after = records.get((old.id, id_)), records.get((new.id, id_))
        if (row := after or before) is None:
            raise DatabaseUnavailableError(f"The database has lost the record {id_} of a comparison.")
        content = {"change": CHANGE_KINDS[kind], "id": id_, "before": _record(before), "after": _record(after)}
        found.append(ChangedPlace(content, row.municipio, row.estado))
    return found


def _record(row: Row[Any] | None) -> dict[str, Any] | None:
    if row is None:
        return None
    return {name: value for name, value in row._asdict().items() if name not in _NOT_RECORD}


async def write_changes(
    database: Database, old: Release, new: Release, changes: "array[int]", format_: ChangesFormat
) -> AsyncGenerator[bytes, None]:
    """Write a file of changes; raise DatabaseUnavailableError if records are missing.

    A table has a row for each change, with the whole record before and after, and the names of the columns that differ.
    """
    head = csv_of([_HEADER]) if format_ == "csv" else b""
    for start in range(0, len(changes), _CHUNK * 2):
        chunk = await describe_changes(database, old, new, changes[start : start + _CHUNK * 2])
        if format_ == "csv":
            yield head + csv_of(map(_cells, chunk))
        else:
            yield b"".join(to_json(change.content) + b"\n" for change in chunk)
        head = b""
    yield head


def csv_of(rows: Iterable[Iterable[object]]) -> bytes:
    """Write rows as CSV."""
    text = io.StringIO()
    csv.writer(text).writerows(rows)
    return text.getvalue().encode()


def _cells(change: ChangedPlace) -> list[object]:
    before, after = change.content["before"], change.content["after"]
    present = after or before
    keys = [present[name] for name in ("id", "municipio_id", "cvegeo", "clave", "nombre")]
    differs = [name for name in _COMPARED if before and after and before[name] != after[name]]
    return [
        *(change.content["change"], *keys, change.municipio, change.estado, ",".join(differs)),
        *(record and record[name] for name in _COMPARED for record in (before, after)),
    ]
