"""The points of vector tiles, of the backdrop of the whole country, and of the map's overview."""

from array import array
from typing import Any, NamedTuple

from pydantic_core import from_json
from sqlalchemy import Row, func, select, text, true

from localidades_api.catalogue.filters import LocalityFilters
from localidades_api.catalogue.keys import KEYS_OF_A_STATE
from localidades_api.catalogue.mercator import Box, Frame, Tile
from localidades_api.catalogue.schemas import Release
from localidades_api.database.models import localities
from localidades_api.database.pool import Database
from localidades_api.database.queries.conditions import conditions, filtered_by, values
from localidades_api.database.queries.packed import pack, unpack

_LARGEST = 20  # places
_COLUMNS = localities.c


class Overview(NamedTuple):
    """The box around places, as west, south, east and north in degrees, and the most prominent of them."""

    bounds: tuple[float, float, float, float] | None
    largest: list[Row[Any]]


async def get_overview(database: Database, release: Release, filters: LocalityFilters) -> Overview:
    """Return the overview of the places that the filters choose, except those without coordinates."""
    chosen = [_COLUMNS.release_id == release.id, _COLUMNS.latitud.is_not(None), *conditions(filtered_by(filters))]
    east, north = _COLUMNS.longitud, _COLUMNS.latitud
    box = select(func.min(east), func.min(north), func.max(east), func.max(north)).where(*chosen).subquery()
    largest = (
        select(_COLUMNS.id, _COLUMNS.nombre, _COLUMNS.municipio_id, _COLUMNS.poblacion, north, east)
        .where(*chosen)
        .order_by(_COLUMNS.prominence, _COLUMNS.id)
        .limit(_LARGEST)
        .subquery()
    )
    statement = (
        select(largest, box)
        .select_from(box.join(largest, true()))
        .order_by(largest.c.poblacion.desc().nulls_last(), largest.c.id)
    )
    rows = await database.fetch_from(release, statement, values(filters))
    return Overview(tuple(rows[0][-4:]) if rows else None, list(rows))


EXTENT = 4096  # units along a side of a tile
CELLS = 128  # cells of the backdrop along a side of a tile
_BITS = EXTENT.bit_length() - 1
_CELL_BITS = (EXTENT // CELLS).bit_length() - 1

_MARGIN = 1e-9  # degrees, more than the rounding errors of an edge

# A place is in exactly one tile of a zoom: the index finds those within the box, with a margin, and the units decide.
# OFFSET 0 keeps Postgres from projecting places outside the box, whose latitude can be out of range.
_TILE = text(
    f"""
    WITH inside AS MATERIALIZED (
        SELECT id, prominence, x % {EXTENT} AS x, y % {EXTENT} AS y
          FROM (SELECT id, prominence,
                       floor((longitud / 360 + 0.5) * :scale)::int AS x,
                       floor((0.5 - atanh(sin(radians(latitud))) / (2 * pi())) * :scale)::int AS y
                  FROM localities
                 WHERE release_id = :release_id
                   AND point(longitud, latitud) <@ box(point(:west, :south), point(:east, :north))
                OFFSET 0) AS projected
         WHERE x >> {_BITS} = :column AND y >> {_BITS} = :row
    ), total AS (
        SELECT count(*) AS places FROM inside
    )
    SELECT (SELECT json_agg(json_build_array(id, x, y, nombre, ambito, poblacion) ORDER BY prominence, id)::text
              FROM (SELECT * FROM inside ORDER BY prominence, id LIMIT :most) AS shown
              JOIN (SELECT id, nombre, ambito, poblacion FROM localities WHERE release_id = :release_id) AS named
             USING (id)) AS places,
           (SELECT {pack("cell", "places", order="cell")}
              FROM (SELECT (y >> {_CELL_BITS}) * {CELLS} + (x >> {_CELL_BITS}) AS cell, count(*)::int AS places
                      FROM inside
                     GROUP BY cell) AS cells
             WHERE (SELECT places FROM total) > :most) AS cells
    """
)
_BACKDROP = text(
    f"""
    SELECT {pack("cell", "places", order="cell")}
      FROM (SELECT y * :columns + x AS cell, count(*)::int AS places
              FROM (SELECT floor((longitud / 360 + 0.5 - :left) * :scale)::int AS x,
                           floor((0.5 - atanh(sin(radians(latitud))) / (2 * pi()) - :top) * :scale)::int AS y
                      FROM localities
                     WHERE release_id = :release_id AND abs(latitud) < 85
                    OFFSET 0) AS projected
             WHERE x >= 0 AND x < :columns AND y >= 0 AND y < :rows
             GROUP BY cell) AS cells
    """
)
_STATE_CELLS = text(
    f"""
    SELECT id, CASE WHEN x >= 0 AND x < :columns AND y >= 0 AND y < :rows THEN y * :columns + x END AS cell,
           count(*)::int AS places, sum(poblacion)::int AS population
      FROM (SELECT municipio_id / {KEYS_OF_A_STATE} AS id, poblacion,
                   floor((longitud / 360 + 0.5 - :left) * :scale)::int AS x,
                   CASE WHEN abs(latitud) < 85
                        THEN floor((0.5 - atanh(sin(radians(latitud))) / (2 * pi()) - :top) * :scale)::int END AS y
              FROM localities
             WHERE release_id = :release_id
            OFFSET 0) AS projected
     GROUP BY id, cell
    """
)
_BOUNDS = text(
    "SELECT min(longitud), min(latitud), max(longitud), max(latitud) FROM localities WHERE release_id = :release_id"
)


class TilePlace(NamedTuple):
    """A place of a tile; `x` and `y` are units from its north-west corner."""

    id: int
    x: int
    y: int
    nombre: str
    ambito: str | None
    poblacion: int | None


class StateCell(NamedTuple):
    """The places of an estado in a cell, and how many people live there; the cell is None outside the frame."""

    id: int
    cell: int | None
    places: int
    population: int | None


class TileContent(NamedTuple):
    """The most prominent places of a tile, and its cells that hold any place: empty if all places are listed.

    Cells are numbered eastwards, row by row from the north, and sorted; each is followed by its number of places.
    """

    listed: str  # JSON, which takes milliseconds to read
    cells: "array[int]"

    def places(self) -> list[TilePlace]:
        """Read the places."""
        return [TilePlace(*place) for place in from_json(self.listed)]


async def get_tile(database: Database, release: Release, tile: Tile, most: int) -> TileContent:
    """Return the places of a tile, at most `most`."""
    box = tile.box
    parameters: dict[str, Any] = {
        "scale": float(2**tile.zoom * EXTENT),
        "column": tile.column,
        "row": tile.row,
        "most": most,
        "west": box.west - _MARGIN,
        "south": box.south - _MARGIN,
        "east": box.east + _MARGIN,
        "north": box.north + _MARGIN,
    }
    rows = await database.fetch_from(release, _TILE, parameters)
    return TileContent(rows[0].places or "[]", unpack(rows[0].cells))


async def get_backdrop(database: Database, release: Release, frame: Frame) -> "array[int]":
    """Return the cells of a frame that hold any place, as `TileContent` has those of a tile."""
    rows = await database.fetch_from(release, _BACKDROP, frame._asdict())
    return unpack(rows[0][0])


async def list_state_cells(database: Database, release: Release, frame: Frame) -> list[StateCell]:
    """Return what each estado has in each cell of a frame, and outside."""
    rows = await database.fetch_from(release, _STATE_CELLS, frame._asdict())
    return [StateCell(row.id, row.cell, row.places, row.population) for row in rows]


async def get_bounds(database: Database, release: Release) -> Box | None:
    """Return the smallest box with all places; None if none has coordinates."""
    rows = await database.fetch_from(release, _BOUNDS)
    return None if None in rows[0] else Box._make(rows[0])
