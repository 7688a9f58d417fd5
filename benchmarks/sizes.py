"""Measures whether a page costs more in a larger catalogue."""

from contextlib import ExitStack

from benchmarks.contenders import OURS_COLD
from benchmarks.database import execute
from benchmarks.lab import Lab
from benchmarks.processes import PATH
from benchmarks.series import Series
from benchmarks.wrk import drive
from localidades_api.catalogue.pagination import PAGE_SIZE

SIZES = (30_000, 300_000, 3_000_000)
_SEED, _GROWN = 1, 2  # ids of releases


def measure_sizes(lab: Lab) -> dict[str, Series]:
    """Return requests a second for random pages with the cache off, by number of localities."""
    rates: dict[int, list[float]] = {size: [] for size in SIZES}
    with ExitStack() as stack:
        servers = {size: stack.enter_context(lab.start(OURS_COLD, _grow(lab, size))) for size in SIZES}
        for number in range(lab.options.rounds):
            for size, server in servers.items():
                load = drive(server.base + PATH, lab.options.seconds, pages=size // PAGE_SIZE, seed=number)
                rates[size].append(load.rate)
                print(f"  round {number + 1}  {size:9,} localities {load.rate:10,.0f}/s", flush=True)
    return {str(size): Series.of(values) for size, values in rates.items()}


def _grow(lab: Lab, size: int) -> str:
    """Return the address of a database whose current release has that many localities.

    The release's rows are repeated under new keys, in the list's order, and the partition gets the same indexes and
    constraints as from the importer.
    """
    url = lab.copy(f"localities_{size}")
    new = f"localities_r{_GROWN}"
    execute(
        url,
        "INSERT INTO releases (id, name, source, sha256, states, municipalities, localities) OVERRIDING SYSTEM VALUE"
        f" SELECT {_GROWN}, 'grown', '', '', states, municipalities, {size} FROM releases WHERE id = {_SEED}",
        f"INSERT INTO states SELECT {_GROWN}, id, clave, nombre, abreviatura FROM states WHERE release_id = {_SEED}",
        f"INSERT INTO municipalities SELECT {_GROWN}, id, estado_id, clave, nombre, localities FROM municipalities"
        f" WHERE release_id = {_SEED}",
        f"CREATE TABLE {new} (LIKE localities INCLUDING DEFAULTS)",
        _fill(new, size),
        f"ALTER TABLE {new} ADD PRIMARY KEY (release_id, id), ADD UNIQUE (release_id, position),"
        f" ADD CHECK (release_id = {_GROWN}),"
        " ADD FOREIGN KEY (release_id, municipio_id) REFERENCES municipalities (release_id, id)",
        f"ALTER TABLE localities ATTACH PARTITION {new} FOR VALUES IN ({_GROWN})",
        f"UPDATE current_release SET release_id = {_GROWN}",
        "VACUUM (FREEZE, ANALYZE)",
    )
    return url


def _fill(table: str, size: int) -> str:
    """Return the INSERT of `size` rows: as many copies of the demo's as needed, ordered by clave, then id."""
    columns = (
        "municipio_id, clave, nombre, ambito, latitud, longitud, altitud, carta,"
        " poblacion, poblacion_masculina, poblacion_femenina, viviendas, folded, prominence"
    )
    return (
        f"INSERT INTO {table} (release_id, position, id, {columns})"
        f" SELECT {_GROWN}, row_number() OVER (ORDER BY clave, id), id, {columns} FROM ("
        f"SELECT 100000000 + copy * 1000000 + position AS id, {columns}"
        f" FROM localities, generate_series(0, 10) AS copy WHERE release_id = {_SEED}"
        f" ORDER BY copy, position LIMIT {size}) AS copies"
    )
