"""The records of a release: its index of names, and what that lacks: columns by key, the areas, and the points."""

import json
from array import array
from bisect import bisect_left
from collections import Counter
from heapq import heappush, heappushpop
from math import inf, radians
from operator import itemgetter
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import ipc

from localidades_api.catalogue.columns import ATTRIBUTES, COLUMNS, MATCHED
from localidades_api.catalogue.degrees import EARTH_RADIUS, angle_between
from localidades_api.catalogue.keys import KEYS_OF_A_MUNICIPIO, KEYS_OF_A_STATE, PlaceKind, format_key
from localidades_api.catalogue.locality import describe_listed, describe_record
from localidades_api.importer.transform import CatalogueRecords
from localidades_api.names.fields import read_fields
from localidades_api.names.index import NameIndex

_RECORDS, _AREAS, _POINTS = "records.arrow", "areas.json", "points"
_LACKING = tuple(name for name in ATTRIBUTES if name not in MATCHED)  # in the index of names
_TYPES = {"integer": pa.int32(), "number": pa.float64(), "text": pa.string()}
_SLACK = 1e-12  # radians: more than the rounding errors of an angle
_DECIMALS = 9  # of degrees, a tenth of a millimetre, as in the service


def write_records(folder: Path, catalogue: CatalogueRecords) -> None:
    """Write the files into the folder of an index."""
    rows = sorted(catalogue.localities, key=itemgetter(0))
    columns = {name: [getattr(row, name) for row in rows] for name in ("id", *_LACKING)}
    table = pa.table({name: pa.array(values, _TYPES[COLUMNS[name].kind]) for name, values in columns.items()})
    with ipc.new_file(str(folder / _RECORDS), table.schema) as file:
        file.write_table(table)
    points = sorted((row.latitud, row.longitud or 0.0, row.id) for row in rows if row.latitud is not None)
    with (folder / _POINTS).open("wb") as target:
        array("d", [latitude for latitude, _, _ in points]).tofile(target)
        array("d", [longitude for _, longitude, _ in points]).tofile(target)
        array("i", [id_ for _, _, id_ in points]).tofile(target)
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


class Points:
    """The points of a release, sorted by latitude."""

    def __init__(self, folder: Path) -> None:
        content = memoryview((folder / _POINTS).read_bytes())
        count = len(content) // (8 + 8 + 4)
        self._latitudes = content[: 8 * count].cast("d")
        self._longitudes = content[8 * count : 16 * count].cast("d")
        self._ids = content[16 * count :].cast("i")

    def nearest(self, latitude: float, longitude: float, limit: int) -> list[tuple[float, int]]:
        """Return the distance in metres and the key of the points nearest to one in degrees, the nearest first.

        The search goes north and south from its latitude, until even the difference in latitude is too far.
        """
        latitude, longitude = round(latitude, _DECIMALS), round(longitude, _DECIMALS)
        latitudes, end = self._latitudes, len(self._latitudes)
        above = bisect_left(latitudes, latitude)
        below = above - 1
        nearest: list[tuple[float, int]] = []  # negative angles and keys: the farthest is the first of the heap
        while True:
            south = latitude - latitudes[below] if below >= 0 else inf
            north = latitudes[above] - latitude if above < end else inf
            least = min(south, north)
            if least == inf or (len(nearest) == limit and radians(least) > _SLACK - nearest[0][0]):
                break
            if south <= north:
                at, below = below, below - 1
            else:
                at, above = above, above + 1
            angle = angle_between(latitude, longitude, latitudes[at], self._longitudes[at])
            push = heappush if len(nearest) < limit else heappushpop
            push(nearest, (-angle, -self._ids[at]))
        return [(-angle * EARTH_RADIUS, -id_) for angle, id_ in sorted(nearest, reverse=True)]
