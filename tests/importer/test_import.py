import asyncio
import gc
import os
import signal
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from threading import Event, Thread
from typing import Self

import asyncpg
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from localidades_api.database.pool import Database
from localidades_api.errors import (
    CatalogueError,
    ConfigurationError,
    DatabaseUnavailableError,
    ImportRunningError,
    LocalidadesError,
)
from localidades_api.importer.checks import refuse_broken_letters
from localidades_api.importer.extract import Position
from localidades_api.importer.run import ImportReport, import_catalogue
from localidades_api.importer.transform import Rejected
from localidades_api.observability.progress import ImportStep
from tests.support.application import import_into
from tests.support.catalogue import HEADER, TRAPS, Place, Silent, many, read_catalogue, write_catalogue
from tests.support.database import (
    SOMEBODY_WAITS,
    assert_nothing_left,
    connected,
    photograph,
    read_release,
    rows_of,
)
from tests.support.http_server import Response, at_paths, http_server
from tests.support.postgres import new_database
from tests.support.records import record_of
from tests.support.waiting import eventually_async, in_thread
from tests.support.wire import ROOT

# Steps of an import from a path, and all but the last before anything is published.
UNPUBLISHED = [step for step in ImportStep if step not in {ImportStep.FETCH, ImportStep.DONE, ImportStep.NAMES}]
LARGE = 6_000  # localities, enough for the observer to be told of some in the middle of COPY

# An import in a process of its own, that kills itself at a step's begin, or in the middle of COPY.
IMPORTER = """
import asyncio, os, signal, sys
from localidades_api.database.pool import Database
from localidades_api.importer.run import import_catalogue
from localidades_api.observability.progress import ImportStep

url, source, moment = sys.argv[1:]

class Killer:
    step = None
    def begin(self, step):
        self.step = step
        if step.name == moment:
            os.kill(os.getpid(), signal.SIGKILL)
    def expect(self, amount):
        pass
    def advance(self, amount):
        if self.step is ImportStep.COPY and moment == "amid COPY":
            os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(import_catalogue(Database.for_writing(url), source, Killer(), release="dead"))
"""

Observation = Callable[[ImportStep], None]


class Observer:
    """Calls a function when a step begins, and in the middle of COPY."""

    def __init__(self, observe: Observation, *, amid_copy: bool = False) -> None:
        self._observe = observe
        self._amid_copy = amid_copy
        self._step: ImportStep | None = None
        self.expected: dict[ImportStep | None, int] = {}
        self.amounts: dict[ImportStep | None, list[int]] = defaultdict(list)  # reported in each step

    def begin(self, step: ImportStep) -> None:
        """Call it, unless it waits for COPY."""
        self._step = step
        if not self._amid_copy:
            self._observe(step)

    def expect(self, amount: int) -> None:
        """Keep it."""
        self.expected[self._step] = amount

    def advance(self, amount: int) -> None:
        """Keep it, and call the function if it waits for this."""
        self.amounts[self._step].append(amount)
        if self._amid_copy and self._step is ImportStep.COPY and amount:
            self._observe(ImportStep.COPY)


async def import_watched(url: str, source: Path | str, observer: Observer) -> ImportReport:
    database = Database.for_writing(url)
    try:
        return await import_catalogue(database, str(source), observer)
    finally:
        await database.dispose()


@contextmanager
def served(path: Path) -> Iterator[str]:
    """Serve a file over HTTP, and yield its address."""
    with http_server(at_paths({f"/{path.name}": Response(path.read_bytes())})) as root:
        yield f"{root}/{path.name}"


@pytest.fixture(scope="module")
def places() -> list[Place]:
    """Lend the places of the seeded database."""
    return many(132)


@pytest.fixture
def next_catalogue(tmp_path: Path, places: list[Place]) -> Path:
    """Lend a file that follows the seeded catalogue: one locality renamed."""
    return write_catalogue(tmp_path / "catun_localidad_2020-02.csv", [replace(places[0], nombre="New"), *places[1:]])


@pytest.fixture(scope="module")
def plenty() -> list[Place]:
    return many(LARGE)


@pytest.fixture(scope="module")
def large_catalogue(tmp_path_factory: pytest.TempPathFactory, plenty: list[Place]) -> Path:
    """Lend a file large enough to be observed in the middle of COPY."""
    return write_catalogue(tmp_path_factory.mktemp("large") / "catun_localidad_2020-03.csv", plenty)


# Publishing


async def test_import_into_an_empty_database_publishes_the_whole_file(
    database: str, small_catalogue: Path, places: list[Place]
) -> None:
    report = await import_into(database, small_catalogue)
    assert (report.release, report.states, report.municipalities, report.localities) == ("2020-01", 10, 81, 132)
    assert (report.withdrawn, report.rejected) == (0, [])
    comparison = report.comparison
    assert (comparison.previous, comparison.added, comparison.removed) == (None, 0, 0)
    assert (comparison.renamed, comparison.relocated) == (0, 0)
    release, rows = await read_release(database)
    assert (release.name, release.source, release.localities) == ("2020-01", small_catalogue.name, 132)
    assert rows == rows_of(places)


async def test_import_keeps_every_column(database: str, tmp_path: Path) -> None:
    place = Place(
        "010010001", "Aguascalientes", nom_mun="Aguascalientes", ambito="U",
        latitud="21.880833", longitud="-102.296111", altitud="-12", carta="F13D19",
        poblacion="863893", poblacion_masculina="419168", poblacion_femenina="444725", viviendas="246259",
    )  # fmt: skip
    unknown = dict.fromkeys(("ambito", "latitud", "longitud", "altitud", "carta", "poblacion", "viviendas"), "-")
    other_place = Place("010010002", "Ninguno", nom_mun="Aguascalientes", **unknown)
    deserted = Place("010010003", "Desierto", nom_mun="Aguascalientes", poblacion="0")
    await import_into(database, write_catalogue(tmp_path / "2020-01.csv", [place, other_place, deserted]))
    async with connected(database) as connection:
        [state] = await connection.fetch("SELECT id, clave, nombre, abreviatura FROM states")
        [municipality] = await connection.fetch("SELECT id, estado_id, clave, nombre, localities FROM municipalities")
        known, other, empty = await connection.fetch("SELECT * FROM localities ORDER BY position")
    assert tuple(state) == (1, "01", "Aguascalientes", "Ags.")
    assert tuple(municipality) == (1001, 1, "001", "Aguascalientes", 3)
    # A population of none is known: it comes before one that isn't.
    for row, position, prominence, one in ((known, 1, 1, place), (other, 2, 3, other_place), (empty, 3, 2, deserted)):
        added = {"position": position, "folded": one.nombre.lower(), "prominence": prominence}
        expected = {**record_of(one), "release_id": known["release_id"], **added}
        del expected["cvegeo"]  # it is the id
        assert dict(row) == expected


async def test_import_of_a_next_release_reports_what_changed(seeded_database: str, tmp_path: Path) -> None:
    places = many(132)
    changed = [
        replace(places[0], nombre="Renamed"),
        replace(places[1], latitud="21.5"),
        replace(places[2], nombre="Renamed and moved", longitud="-100.5"),
        replace(places[3], latitud="-", longitud="-"),  # a place that was known and is no longer
        replace(places[4], altitud="1", poblacion="7"),  # neither a name nor a place
        *places[9:],  # four are gone
        Place("010019997", "Added"),
        Place("010019999", "Withdrawn", estatus="Baja"),
    ]
    path = write_catalogue(tmp_path / "catun_localidad_2020-02.csv", changed)
    path.write_bytes(path.read_bytes() + b"Fuente: INEGI\r\n")
    report = await import_into(seeded_database, path)
    comparison = report.comparison
    assert (comparison.previous, comparison.added, comparison.removed) == ("2020-01", 1, 4)
    assert (comparison.renamed, comparison.relocated) == (2, 3)
    assert (report.withdrawn, report.localities) == (1, 129)
    assert report.rejected == [Rejected(Position("line", 132), f"it has 1 values, but the header has {len(HEADER)}")]
    release, rows = await read_release(seeded_database)
    assert (release.name, rows) == ("2020-02", rows_of(changed[:-1]))


async def test_import_leaves_older_releases_readable(
    seeded_database: str, next_catalogue: Path, places: list[Place]
) -> None:
    before = await read_release(seeded_database)
    await import_into(seeded_database, next_catalogue)
    assert (await read_release(seeded_database))[0].name == "2020-02"
    assert await read_release(seeded_database, "2020-01") == before
    assert before[1] == rows_of(places)


async def test_import_from_an_address_is_that_of_the_file(seeded_database: str, next_catalogue: Path) -> None:
    with served(next_catalogue) as address:
        await import_into(seeded_database, address)
    release, _ = await read_release(seeded_database)
    assert (release.name, release.source) == ("2020-02", "catun_localidad_2020-02.csv")


async def test_import_under_a_name_of_its_own_takes_that(seeded_database: str, next_catalogue: Path) -> None:
    await import_into(seeded_database, next_catalogue, release="2020.02_b-1")
    assert (await read_release(seeded_database))[0].name == "2020.02_b-1"


async def test_import_watched_is_told_each_step_once_in_order(seeded_database: str, large_catalogue: Path) -> None:
    steps: list[ImportStep] = []
    observer = Observer(steps.append)
    report = await import_watched(seeded_database, large_catalogue, observer)
    assert steps == [*UNPUBLISHED, ImportStep.DONE]
    rows = report.localities
    assert rows > 5000
    assert observer.expected == {ImportStep.READ: rows, ImportStep.COPY: rows}
    amounts = [*[5000] * (rows // 5000), rows % 5000]
    assert observer.amounts == {ImportStep.READ: amounts, ImportStep.COPY: amounts}


async def test_release_is_published_when_its_loading_is_over(seeded_database: str, next_catalogue: Path) -> None:
    """Not when its transaction began: what a cache got meanwhile would be taken for newer."""
    began: dict[ImportStep, datetime] = {}

    def note(step: ImportStep) -> None:
        began[step] = datetime.now(UTC)

    await import_watched(seeded_database, next_catalogue, Observer(note))
    async with connected(seeded_database) as connection:
        published_at = await connection.fetchval("SELECT published_at FROM releases WHERE name = '2020-02'")
    assert began[ImportStep.PUBLISH] <= published_at <= began[ImportStep.DONE]


async def test_partition_of_a_release_has_the_keys_of_its_parent_and_no_more(seeded_database: str) -> None:
    photo = await photograph(seeded_database)
    partition = "localities_r1"
    assert (partition, b"r", True, "FOR VALUES IN (1)") in photo["relations"]
    found = {name: definition for table, name, definition, _ in photo["constraints"] if table == partition}
    assert {name: definition for name, definition in found.items() if not name.endswith("_not_null")} == {
        f"{partition}_pkey": "PRIMARY KEY (release_id, id)",
        f"{partition}_release_id_position_key": 'UNIQUE (release_id, "position")',
        "localities_release_id_municipio_id_fkey": "FOREIGN KEY (release_id, municipio_id)"
        " REFERENCES municipalities(release_id, id)",
    }


_CATALOGUES = st.lists(
    st.dictionaries(
        st.integers(1, 12), st.tuples(st.sampled_from("ABC"), st.sampled_from(["1.5", "2.5", "-"])), min_size=1
    ),
    min_size=2,
    max_size=4,
)


def model(old: dict[int, tuple[str, str]], new: dict[int, tuple[str, str]]) -> tuple[int, int, int, int]:
    """Compare two catalogues: added, removed, renamed, relocated."""
    both = old.keys() & new.keys()
    return (
        len(new.keys() - old.keys()),
        len(old.keys() - new.keys()),
        sum(old[key][0] != new[key][0] for key in both),
        sum(old[key][1] != new[key][1] for key in both),
    )


@pytest.mark.tail
@settings(max_examples=15, deadline=None)
@given(_CATALOGUES)
def test_report_of_any_series_of_imports_is_what_plain_python_counts(
    server: str, migrated: str, tmp_path_factory: pytest.TempPathFactory, series: list[dict[int, tuple[str, str]]]
) -> None:
    path = tmp_path_factory.getbasetemp() / "series.csv"

    async def run(url: str) -> None:
        previous: dict[int, tuple[str, str]] = {}
        for number, catalogue in enumerate(series):
            places = [Place(f"01001{key:04d}", name, latitud=place) for key, (name, place) in catalogue.items()]
            # A withdrawn row makes each file another one.
            write_catalogue(path, [*places, Place("010019999", f"{number}", estatus="Baja")])
            report = await import_into(url, path, release=f"r{number}", allow_shrink=True)
            found = report.comparison
            expected = model(previous, catalogue) if number else (0, 0, 0, 0)
            assert (found.added, found.removed, found.renamed, found.relocated) == expected
            assert (await read_release(url))[1] == rows_of(places)
            previous = catalogue

    with new_database(server, migrated) as url:
        in_thread(lambda: asyncio.run(run(url)))


# Nothing changed


async def test_dry_run_reports_and_changes_nothing(seeded_database: str, tmp_path: Path, places: list[Place]) -> None:
    path = write_catalogue(tmp_path / "catun_localidad_2020-02.csv", places[1:])
    before = await photograph(seeded_database)
    report = await import_into(seeded_database, path, dry_run=True)
    assert (report.release, report.localities, report.comparison.removed) == ("2020-02", 131, 1)
    await assert_nothing_left(seeded_database, before)
    await import_into(seeded_database, path)
    assert (await read_release(seeded_database))[0].name == "2020-02"


def of_estado(estado: str, count: int, clave: str = "01") -> list[Place]:
    return [Place(f"{clave}001{n:04d}", f"Lugar {n}", nom_ent=estado, nom_abr="") for n in range(1, count + 1)]


async def test_file_that_lacks_more_than_a_tenth_of_the_keys_is_refused_unless_told_to(
    database: str, tmp_path: Path
) -> None:
    """As many localities as before do not make up for those that are gone."""
    before, others = of_estado("Colima", 100, "06"), of_estado("Colima", 200, "06")[100:]
    await import_into(database, write_catalogue(tmp_path / "2020-01.csv", before))
    path = write_catalogue(tmp_path / "catun_localidad_2020-02.csv", [*before[11:], *others])
    photographed = await photograph(database)
    refusal = "The file lacks 11 of the 100 localities of release 2020-01, over 10%. If that is right, pass --allow-sh"
    for options in ({}, {"dry_run": True}):
        with pytest.raises(CatalogueError, match=refusal):
            await import_into(database, path, **options)
    await assert_nothing_left(database, photographed)
    report = await import_into(database, path, allow_shrink=True)
    assert (report.comparison.removed, report.localities) == (11, 189)
    assert report.losses == "The file lacks 11 of the 100 localities of release 2020-01, over 10%."


async def test_file_that_lacks_exactly_a_tenth_is_accepted(database: str, tmp_path: Path) -> None:
    places = of_estado("Colima", 100, "06")
    await import_into(database, write_catalogue(tmp_path / "2020-01.csv", places))
    report = await import_into(database, write_catalogue(tmp_path / "2020-02.csv", places[10:]))
    assert (report.comparison.removed, report.localities, report.losses) == (10, 90, None)


async def test_file_of_another_estado_is_refused_as_what_it_is(database: str, tmp_path: Path) -> None:
    await import_into(database, write_catalogue(tmp_path / "2020-01.csv", of_estado("Colima", 3, "06")))
    path = write_catalogue(tmp_path / "2020-02.csv", of_estado("Jalisco", 30, "14"))
    losses = "The file has only Jalisco: it lacks Colima, and 3 of the 3 localities of release 2020-01."
    with pytest.raises(CatalogueError) as refused:
        await import_into(database, path)
    assert str(refused.value) == f"{losses} If that is right, pass --allow-shrink."
    report = await import_into(database, path, allow_shrink=True)
    assert report.losses == losses


async def test_file_that_lacks_a_small_estado_is_refused(
    seeded_database: str, tmp_path: Path, places: list[Place]
) -> None:
    """Fewer than a tenth of the localities, but all of Zacatecas."""
    path = write_catalogue(tmp_path / "2020-02.csv", [one for one in places if one.nom_ent != "Zacatecas"])
    with pytest.raises(CatalogueError, match="The file has 9 estados: it lacks Zacatecas, and 1 of the 132 localities"):
        await import_into(seeded_database, path)


async def test_first_file_says_if_it_is_not_of_the_whole_country(database: str, tmp_path: Path) -> None:
    places = [one for clave in ("06", "14") for one in of_estado(f"Estado {clave}", 2, clave)]
    report = await import_into(database, write_catalogue(tmp_path / "2020-01.csv", places))
    assert report.losses == "The file has only Estado 06 and Estado 14; Mexico has 32 estados."
    every = [one for clave in range(1, 33) for one in of_estado(f"Estado {clave}", 2, f"{clave:02d}")]
    report = await import_into(database, write_catalogue(tmp_path / "2020-02.csv", every))
    assert report.losses is None


async def test_file_that_renames_more_than_a_tenth_is_refused_unless_told_to(database: str, tmp_path: Path) -> None:
    """Localities that are new don't make up for those that are renamed."""
    before, added = of_estado("Colima", 100, "06"), of_estado("Colima", 200, "06")[100:]
    await import_into(database, write_catalogue(tmp_path / "2020-01.csv", before))
    photographed = await photograph(database)

    def renamed(count: int) -> Path:
        places = [*(replace(place, nombre=f"El {place.nombre}") for place in before[:count]), *before[count:], *added]
        return write_catalogue(tmp_path / f"2020-{count}.csv", places)

    with pytest.raises(
        CatalogueError, match=r"renames 11 of the 100 localities that release 2020-01 .*--allow-renames\."
    ):
        await import_into(database, renamed(11), allow_renames=False)
    await assert_nothing_left(database, photographed)
    assert (await import_into(database, renamed(11), dry_run=True)).comparison.renamed == 11
    assert (await import_into(database, renamed(10), allow_renames=False)).comparison.renamed == 10


@pytest.mark.parametrize(
    ("name", "is_broken"),
    [
        *(
            ("Ánimas, Ñandú y Güémez".encode().decode(wrong), True)
            for wrong in ("latin-1", "cp850", "cp437", "mac_roman")
        ),
        ("El Cajón y Güémez".encode().decode("cp1252"), True),
        ("La Mar\N{LATIN CAPITAL LETTER A WITH TILDE}\N{SOFT HYPHEN}a", True),
        ("Güémez".encode("ascii", "replace").decode(), True),
        ("Güémez".encode("cp1252").decode(errors="replace"), True),
        *((trap.nombre, False) for trap in TRAPS),
        ("Ânimas", False),
        ("SÃO JOÃO", False),
    ],
)
def test_broken_letters_are_told_from_rare_ones(tmp_path: Path, name: str, *, is_broken: bool) -> None:
    """Those of a hundredth of the names may be the places' own."""
    places = of_estado("Colima", 98, "06")  # with the names of the estado and the municipio, a hundred
    for count in (1, 2):
        places[count - 1] = replace(places[count - 1], nombre=name)
        catalogue = read_catalogue(write_catalogue(tmp_path / f"{count}.csv", places))
        if is_broken and count == 2:
            with pytest.raises(CatalogueError) as refused:
                refuse_broken_letters(catalogue)
            sentence = f"2 of the 100 names in the file have broken letters, such as {name!r}: a program"
            assert str(refused.value).startswith(sentence)
        else:
            refuse_broken_letters(catalogue)


async def test_file_with_broken_letters_is_refused_unless_told_to(database: str, tmp_path: Path) -> None:
    path = write_catalogue(tmp_path / "2020-01.csv", of_estado("MÃ©xico", 3))
    before = await photograph(database)
    with pytest.raises(CatalogueError, match=r"1 of the 5 names .* as 'MÃ©xico': .* pass --allow-broken-letters\."):
        await import_into(database, path)
    await assert_nothing_left(database, before)
    assert (await import_into(database, path, allow_broken_letters=True)).localities == 3


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (
            {"release": "2020-01"},
            "Release 2020-01 is already published from another file: choose another name with --release.",
        ),
        ({"release": "demo"}, "Only the bundled catalogue can be named demo"),
        ({"release": ""}, "A release's name must begin with a letter or a digit"),
        ({"release": "../etc"}, "A release's name must begin with a letter or a digit"),
        ({"release": "-x"}, "A release's name must begin with a letter or a digit"),
        ({"release": "a b"}, "A release's name must begin with a letter or a digit"),
        ({"release": "año"}, "A release's name must begin with a letter or a digit"),
        ({"release": "2020-02\n"}, "A release's name must begin with a letter or a digit"),
        ({"release": "x" * 65}, "A release's name must begin with a letter or a digit"),
        ({"release": "a\0"}, "A release's name must begin with a letter or a digit"),
    ],
)
async def test_release_name_that_is_taken_or_bad_is_refused(
    seeded_database: str, next_catalogue: Path, options: dict[str, str], sentence: str
) -> None:
    before = await photograph(seeded_database)
    with pytest.raises(CatalogueError) as caught:
        await import_into(seeded_database, next_catalogue, **options)
    assert str(caught.value).startswith(sentence)
    await assert_nothing_left(seeded_database, before)


async def test_file_published_before_is_refused_under_another_name(seeded_database: str, small_catalogue: Path) -> None:
    before = await photograph(seeded_database)
    with pytest.raises(CatalogueError, match="This very file is already published, as release 2020-01"):
        await import_into(seeded_database, small_catalogue, release="other")
    with pytest.raises(CatalogueError, match="This very file is already published, as release 2020-01"):
        await import_into(seeded_database, small_catalogue)
    await assert_nothing_left(seeded_database, before)


async def test_name_of_another_release_is_told_before_that_the_file_is_published(
    seeded_database: str, small_catalogue: Path, next_catalogue: Path
) -> None:
    await import_into(seeded_database, next_catalogue)
    with pytest.raises(CatalogueError, match="Release 2020-02 is already published from another file"):
        await import_into(seeded_database, small_catalogue, release="2020-02")


async def test_demo_under_another_name_is_refused(seeded_database: str) -> None:
    before = await photograph(seeded_database)
    with pytest.raises(CatalogueError, match="Only the bundled catalogue can be named demo"):
        await import_into(seeded_database, "demo", release="2020-02")
    await assert_nothing_left(seeded_database, before)


@pytest.mark.parametrize(
    "content",
    [
        b"%PDF-1.7",
        b"PK\x03\x04 cut short",
        "\r\n".join(
            ['"CVE_ENT","NOM_ENT","CVE_MUN","NOM_MUN","CVE_LOC","NOM_LOC"', '"33","A","001","B","0001","C"', ""]
        ),
        "\r\n".join(['"CVE_ENT","NOM_ENT","CVE_MUN","NOM_MUN","CVE_LOC","NOM_LOC"', '"01","A","001","B","0001","C']),
        "\r\n".join(
            ['"CVE_ENT","NOM_ENT","CVE_MUN","NOM_MUN","CVE_LOC","NOM_LOC"', *['"01","A","001","B","0001","C"'] * 2]
        ),
    ],
    ids=["no catalogue", "cut zip", "estado 33", "cut short", "key twice"],
)
async def test_file_that_is_refused_changes_nothing(seeded_database: str, tmp_path: Path, content: bytes | str) -> None:
    path = tmp_path / "catun_localidad_2020-02.csv"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    before = await photograph(seeded_database)
    with pytest.raises(CatalogueError):
        await import_into(seeded_database, path, allow_shrink=True)
    await assert_nothing_left(seeded_database, before)


async def test_file_without_a_date_must_be_named(seeded_database: str, tmp_path: Path, places: list[Place]) -> None:
    path = write_catalogue(tmp_path / "localidades.csv", places[1:])
    with pytest.raises(CatalogueError, match="--release"):
        await import_into(seeded_database, path)
    assert (await import_into(seeded_database, path, release="2020-02")).release == "2020-02"


async def test_import_into_a_database_without_tables_says_what_to_do(
    empty_database: str, small_catalogue: Path
) -> None:
    with pytest.raises(ConfigurationError, match="The database has no tables yet: run `localidades-api migrate` first"):
        await import_into(empty_database, small_catalogue)


async def test_import_into_a_database_out_of_reach_says_so(small_catalogue: Path, tmp_path: Path) -> None:
    with pytest.raises(DatabaseUnavailableError, match="The database does not answer"):
        await import_into(f"postgresql://postgres@/nowhere?host={tmp_path}", small_catalogue)


async def test_import_leaves_the_cycle_collector_on_after_a_fault_too(database: str, tmp_path: Path) -> None:
    with pytest.raises(CatalogueError):
        await import_into(database, write_catalogue(tmp_path / "2020-01.csv", []))
    assert gc.isenabled()


# Two at once


class Held:
    """An import in a thread of its own, held where it begins a step until it is let go."""

    def __init__(self, url: str, source: Path, step: ImportStep) -> None:
        self._reached, self._let_go = Event(), Event()
        self._step = step
        self.outcome: ImportReport | LocalidadesError | None = None
        self._thread = Thread(target=self._run, args=(url, source))

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._reached.wait(30), self.outcome
        return self

    def __exit__(self, *_: object) -> None:
        self.finish()

    def finish(self) -> None:
        """Let it go, and wait for its end."""
        self._let_go.set()
        self._thread.join()

    def _run(self, url: str, source: Path) -> None:
        try:
            self.outcome = asyncio.run(import_watched(url, source, Observer(self._hold)))
        except LocalidadesError as error:
            self.outcome = error
        finally:
            self._reached.set()

    def _hold(self, step: ImportStep) -> None:
        if step is self._step:
            self._reached.set()
            assert self._let_go.wait(60)


@pytest.mark.parametrize("step", UNPUBLISHED)
async def test_second_import_at_once_is_refused_and_the_first_goes_on(
    seeded_database: str, next_catalogue: Path, large_catalogue: Path, step: ImportStep
) -> None:
    with Held(seeded_database, next_catalogue, step) as first:
        with pytest.raises(ImportRunningError, match="Another import is running"):
            await import_into(seeded_database, large_catalogue)
        first.finish()
        assert isinstance(first.outcome, ImportReport)
    assert (await read_release(seeded_database))[0].name == "2020-02"


async def test_import_at_once_into_another_database_of_the_server_goes_on(
    server: str, seeded: str, seeded_database: str, next_catalogue: Path
) -> None:
    with new_database(server, seeded) as other, Held(seeded_database, next_catalogue, ImportStep.PUBLISH):
        assert (await import_into(other, next_catalogue)).release == "2020-02"


# Readers meanwhile


@pytest.mark.parametrize("step", [*UNPUBLISHED, ImportStep.DONE])
async def test_readers_at_each_step_see_one_whole_release_without_waiting(
    seeded_database: str, next_catalogue: Path, places: list[Place], step: ImportStep
) -> None:
    """A reader gives up after two seconds: while the import is held, any lock in its way would fail it."""
    old = await read_release(seeded_database)
    with Held(seeded_database, next_catalogue, step):
        seen = await read_release(seeded_database)
        assert await read_release(seeded_database, "2020-01") == old
    new = await read_release(seeded_database)
    assert (new[0].name, new[1]) == ("2020-02", rows_of([replace(places[0], nombre="New"), *places[1:]]))
    assert seen == (new if step is ImportStep.DONE else old)


@pytest.mark.parametrize("step", UNPUBLISHED)
async def test_import_locks_no_table_against_readers(
    seeded_database: str, next_catalogue: Path, step: ImportStep
) -> None:
    tables = "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p')"
    async with connected(seeded_database) as reader:
        with Held(seeded_database, next_catalogue, step):
            await reader.execute("SET lock_timeout = '50ms'")
            for (table,) in await reader.fetch(tables):
                await reader.execute(f'SELECT FROM "{table}" LIMIT 1')


async def test_readers_during_a_publication_never_see_a_mixture(
    seeded_database: str, large_catalogue: Path, places: list[Place], plenty: list[Place]
) -> None:
    expected = {"2020-01": rows_of(places), "2020-03": rows_of(plenty)}
    running = asyncio.create_task(asyncio.to_thread(asyncio.run, import_into(seeded_database, large_catalogue)))
    names = []
    while not running.done():
        release, rows = await read_release(seeded_database)
        names.append(release.name)
        assert rows == expected[release.name]
    await running
    assert names == sorted(names)
    assert (await read_release(seeded_database))[0].name == "2020-03"


async def test_reader_in_a_transaction_keeps_its_release_and_holds_nobody_up(
    seeded_database: str, next_catalogue: Path
) -> None:
    statement = (
        "SELECT r.name, l.id, l.nombre FROM current_release JOIN releases r ON r.id = release_id"
        " JOIN localities l USING (release_id) ORDER BY l.position"
    )
    async with connected(seeded_database) as connection:
        async with connection.transaction(isolation="repeatable_read", readonly=True):
            before = await connection.fetch(statement)
            assert (await import_into(seeded_database, next_catalogue)).release == "2020-02"
            assert await connection.fetch(statement) == before
        assert (await connection.fetch(statement))[0]["name"] == "2020-02"


# Killed


@pytest.mark.tail
@pytest.mark.parametrize(
    "moment", [*(step.name for step in ImportStep if step not in {ImportStep.DONE, ImportStep.NAMES}), "amid COPY"]
)
async def test_import_killed_leaves_the_old_release_and_the_next_import_working(
    seeded_database: str, large_catalogue: Path, places: list[Place], plenty: list[Place], moment: str
) -> None:
    before = await photograph(seeded_database)
    if moment == "FETCH":
        with served(large_catalogue) as address:
            kill_import(seeded_database, address, moment)
    else:
        kill_import(seeded_database, str(large_catalogue), moment)
    release, rows = await read_release(seeded_database)
    assert (release.name, rows) == ("2020-01", rows_of(places))
    await assert_nothing_left(seeded_database, before)
    await import_into(seeded_database, large_catalogue)
    release, rows = await read_release(seeded_database)
    assert (release.name, rows) == ("2020-03", rows_of(plenty))


async def test_import_killed_once_it_is_published_has_published_the_whole(
    seeded_database: str, large_catalogue: Path, plenty: list[Place], places: list[Place]
) -> None:
    kill_import(seeded_database, str(large_catalogue), ImportStep.DONE.name)
    release, rows = await read_release(seeded_database)
    assert (release.name, rows) == ("dead", rows_of(plenty))
    assert (await read_release(seeded_database, "2020-01"))[1] == rows_of(places)


async def test_import_killed_amid_a_statement_is_noticed_by_the_server(
    seeded_database: str, large_catalogue: Path
) -> None:
    """A server looks at a client's socket between statements; the import asks it to look in the middle too."""
    before = await photograph(seeded_database)
    async with connected(seeded_database) as other:
        name = await other.fetchval("SELECT current_database()")
        await other.execute(f'ALTER DATABASE "{name}" SET client_connection_check_interval = 0')
        async with other.transaction():
            await other.execute("LOCK TABLE municipalities IN ROW EXCLUSIVE MODE")  # the import's foreign key waits
            with start_import(seeded_database, str(large_catalogue), "never") as importer:

                async def is_waiting() -> bool:
                    assert importer.poll() is None, importer.communicate()
                    return bool(await other.fetchval(SOMEBODY_WAITS))

                await eventually_async(is_waiting, within=60)
                importer.kill()
            await assert_nothing_left(seeded_database, before, seconds=5)


def start_import(url: str, source: str, moment: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", IMPORTER, url, source, moment],
        env=os.environ | {"PYTHONPATH": str(ROOT / "src")},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def kill_import(url: str, source: str, moment: str) -> None:
    with start_import(url, source, moment) as importer:
        output = importer.communicate(timeout=60)
    assert importer.returncode == -signal.SIGKILL, output


@pytest.mark.tail
@pytest.mark.parametrize("moment", [*UNPUBLISHED, "amid COPY"])
async def test_connection_ended_by_the_server_at_each_step_changes_nothing(
    seeded_database: str, large_catalogue: Path, moment: ImportStep | str
) -> None:
    before = await photograph(seeded_database)

    def terminate(step: ImportStep) -> None:
        if moment in {step, "amid COPY"}:
            in_thread(lambda: asyncio.run(end_importer(seeded_database)))

    observer = Observer(terminate, amid_copy=moment == "amid COPY")
    with pytest.raises(DatabaseUnavailableError):
        await import_watched(seeded_database, large_catalogue, observer)
    await assert_nothing_left(seeded_database, before)
    await import_into(seeded_database, large_catalogue)
    assert (await read_release(seeded_database))[0].name == "2020-03"


async def end_importer(url: str) -> None:
    """End the session that holds the import's lock, and wait until it has."""
    async with connected(url) as connection:
        ended = await connection.fetch(
            "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity"
            " WHERE pid IN (SELECT pid FROM pg_locks WHERE locktype = 'advisory') AND datname = current_database()"
        )
        assert [tuple(row) for row in ended] == [(True,)]


@pytest.mark.parametrize("step", UNPUBLISHED)
async def test_fault_of_the_observer_at_each_step_changes_nothing(
    seeded_database: str, next_catalogue: Path, step: ImportStep
) -> None:
    """As a Ctrl-C does, which is raised wherever the program happens to be."""
    before = await photograph(seeded_database)

    def interrupt(begun: ImportStep) -> None:
        if begun is step:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        in_thread(lambda: asyncio.run(import_watched(seeded_database, next_catalogue, Observer(interrupt))))
    await assert_nothing_left(seeded_database, before)


async def test_import_without_a_watcher_is_silent(
    seeded_database: str, large_catalogue: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    database = Database.for_writing(seeded_database)
    try:
        await import_catalogue(database, str(large_catalogue), Silent())
    finally:
        await database.dispose()
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("longer", [0.5, None], ids=["a while", "for good"])
async def test_rows_are_marked_as_seen_by_all_once_what_began_before_the_import_has_ended(
    seeded_database: str, next_catalogue: Path, longer: float | None
) -> None:
    """Else each row that a search finds by an index is looked up, until autovacuum comes by."""
    reader, watcher = await asyncpg.connect(seeded_database), await asyncpg.connect(seeded_database)
    try:
        await reader.execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT FROM releases")
        importing = asyncio.create_task(import_into(seeded_database, next_catalogue))
        await eventually_async(lambda: watcher.fetchval("SELECT count(*) = 2 FROM releases"))
        if longer is not None:
            await asyncio.sleep(longer)
            await reader.execute("COMMIT")
        async with asyncio.timeout(10):
            await importing
        marked = await watcher.fetchval(
            "SELECT relallvisible = relpages FROM pg_class"
            " WHERE relname = (SELECT 'localities_r' || release_id FROM current_release)"
        )
        assert marked is (longer is not None)
    finally:
        await reader.close()
        await watcher.close()
