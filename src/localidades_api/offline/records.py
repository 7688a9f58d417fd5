"""The records of a release: its index of names, and what that lacks: columns by key, and the areas."""

import json
from bisect import bisect_left
from collections import Counter
from operator import itemgetter
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import ipc

from localidades_api.catalogue.columns import ATTRIBUTES, COLUMNS, MATCHED
from localidades_api.catalogue.keys import KEYS_OF_A_MUNICIPIO, KEYS_OF_A_STATE, PlaceKind, format_key
from localidades_api.catalogue.locality import describe_listed, describe_record
from localidades_api.importer.transform import CatalogueRecords
from localidades_api.names.fields import read_fields
from localidades_api.names.index import NameIndex

_RECORDS, _AREAS = "records.arrow", "areas.json"
STORED = ("id", *(name for name in ATTRIBUTES if name not in MATCHED))  # which the index of names lacks
_TYPES = {"integer": pa.int32(), "number": pa.float64(), "text": pa.string()}


def write_records(folder: Path, catalogue: CatalogueRecords) -> None:
    """Write the files into the folder of an index."""
    rows = sorted(catalogue.localities, key=itemgetter(0))
    columns = {name: [getattr(row, name) for row in rows] for name in STORED}
    table = pa.table({name: pa.array(values, _TYPES[COLUMNS[name].kind]) for name, values in columns.items()})
    with ipc.new_file(str(folder / _RECORDS), table.schema) as file:
        file.write_table(table)
    counts = Counter(row.municipio_id for row in rows)
    areas = {
        "estados": {state.id: state._asdict() for state in catalogue.states.values()},
        "municipios": {
            area.id: {**area._asdict(), "localidades": counts[area.id]} for area in catalogue.municipalities.values()
        },
    }
    (folder / _AREAS).write_text(json.dumps(areas), encoding="ascii")


class Records:
    """The records in the folder of an index."""

    def __init__(self, folder: Path, names: NameIndex) -> None:
        self._names = names
        self._table = ipc.open_file(pa.memory_map(str(folder / _RECORDS))).read_all()
        self._ids = memoryview(self._table.column("id").combine_chunks().buffers()[1]).cast("B").cast("i")
        self._areas: dict[str, dict[str, dict[str, Any]]] = json.loads((folder / _AREAS).read_bytes())

    def get(self, kind: PlaceKind, id_: int) -> dict[str, Any] | None:
        """Return what the service answers for a key, or None if the release does not have it."""
        if kind == "estado":
            return self._areas["estados"].get(str(id_))
        if kind == "municipio":
            return self._get_municipio(id_)
        at = bisect_left(self._ids, id_, 0, self._table.num_rows)
        if at == self._table.num_rows or self._ids[at] != id_:
            return None
        [lacking] = self._table.slice(at, 1).to_pylist()
        row = lacking | read_fields(self._names, id_, MATCHED)
        columns = {**row, **describe_listed(id_, row["nombre"]), "cvegeo": format_key("localidad", id_)}
        municipio = self._areas["municipios"][str(id_ // KEYS_OF_A_MUNICIPIO)]
        return describe_record(columns, municipio, self._areas["estados"][str(municipio["estado_id"])])

    def _get_municipio(self, id_: int) -> dict[str, Any] | None:
        municipio = self._areas["municipios"].get(str(id_))
        return municipio and {**municipio, "estado": self._areas["estados"][str(id_ // KEYS_OF_A_STATE)]}
