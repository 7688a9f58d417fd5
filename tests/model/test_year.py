"""A year of a service within minutes: nothing that it uses grows."""

import asyncio
import os
import re
import shutil
import signal
from collections.abc import AsyncIterator, Iterable
from pathlib import Path
from typing import NamedTuple

import httpx
import pytest
from alembic import command

from localidades_api.database.embedded_postgres.data_directory import make_cluster
from tests.model.catalogues import COUNT, places_of
from tests.support.application import import_into, publish_again, retire_all_but
from tests.support.catalogue import Place, write_catalogue
from tests.support.postgres import alembic_config, execute
from tests.support.servers import FAST, Installation, Server, make_private, running
from tests.support.waiting import eventually_async
from tests.support.wire import LOCALIDADES, Live, serving, workers_of

pytestmark = [pytest.mark.tail, pytest.mark.timeout(1200)]

MONTHS = 12
WORKERS = 2
KEPT = 4  # releases
MAX_FOLDERS = 6  # of indexes
READER = "year_reader"
THIRD = 4  # months
_GRACE = 2.0  # seconds for readers of a retired release


class Usage(NamedTuple):
    """Resources that the service uses at the end of a month."""

    releases: int
    partitions: int
    connections: int
    index_folders: int
    cache_files: int
    descriptors: int
    megabytes: float


@pytest.fixture
async def postgres(installation: Installation, server_folder: Path) -> AsyncIterator[Server]:
    """Yield a server with tables, which asks the service for its password."""
    make_private(folder := server_folder / "year", installation.account)
    server = Server(installation, make_cluster(installation.binaries, folder, installation.account))
    access = "127.0.0.1/32 scram-sha-256\nhost all all 127.0.0.1/32 trust\n"
    await asyncio.to_thread((server.cluster / "pg_hba.conf").write_text, f"host all {READER} {access}")
    async with running(server):
        await asyncio.to_thread(command.upgrade, alembic_config(server.url()), "head")
        execute(server.url(), f"CREATE ROLE {READER} LOGIN", f"GRANT pg_read_all_data TO {READER}")
        yield server


def change_password(server: Server, passwords: Path, month: int) -> None:
    """Change the password of the service, and end its connections."""
    passwords.write_text(f"*:*:*:{READER}:secret-{month}\n")
    passwords.chmod(0o600)
    end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'localidades-api'"
    execute(server.url(), f"ALTER ROLE {READER} PASSWORD 'secret-{month}'", end)


async def test_nothing_grows_in_a_year(postgres: Server, tmp_path: Path) -> None:
    """Import twice a month, go back once, retire, restart workers and Postgres, lose indexes, and change passwords."""
    cache, passwords = tmp_path / "cache", tmp_path / "passwords"
    change_password(postgres, passwords, 0)
    months: list[Usage] = []
    settings = {"LOCALIDADES_RELEASE_POLL": "0.2", "LOCALIDADES_CACHE_DIR": str(cache), "PGPASSFILE": str(passwords)}
    url = postgres.url().replace("postgres@", f"{READER}@")
    with serving(url, "--workers", str(WORKERS), probe="/livez", **settings) as live:
        for month in range(1, MONTHS + 1):
            await _live_through(month, postgres, live, tmp_path)
            months.append(await _measure(postgres, live, cache))
        log = live.output.read_text()
    assert "Traceback" not in log, log
    assert (months[-1].releases, months[-1].partitions) == (KEPT, KEPT)
    assert max(month.index_folders for month in months) <= MAX_FOLDERS
    # Restarts free memory and files, so the highest months of either third are compared.
    for name, tolerance in (("connections", 2), ("cache_files", 0), ("descriptors", 4), ("megabytes", 25)):
        first, last = ([getattr(month, name) for month in third] for third in (months[:THIRD], months[-THIRD:]))
        assert max(last) <= max(first) + tolerance, (name, months)


async def _live_through(month: int, postgres: Server, live: Live, folder: Path) -> None:
    url = postgres.url()
    async with httpx.AsyncClient(base_url=live.base, timeout=30) as client:
        for half in (0, 1):
            number = 2 * month + half
            release = f"2026-{month:02d}-{half}"
            own = Place(f"01001{9000 + number}", f"Nuevo {number}", nom_ent="Estado 01", nom_mun="Municipio 001")
            source = write_catalogue(folder / f"{release}.csv", [*places_of(number % COUNT), own])
            await import_into(url, source, release=release, allow_shrink=True)
            await _await_current(client, release)
            await _read(client)
        await publish_again(url, f"2026-{month:02d}-0")
        await _await_current(client, f"2026-{month:02d}-0")
        await publish_again(url, f"2026-{month:02d}-1")
        await retire_all_but(url, KEPT, grace=_GRACE)
    if month % 3 == 0:
        await _replace_workers(live)
    if month % 4 == 0:
        shutil.rmtree(folder / "cache")
        await _replace_workers(live)
    if month % 5 == 0:
        os.kill(workers_of(live)[-1], signal.SIGKILL)
    if month % 6 == 0:  # a minor version of Postgres
        await postgres.stop(FAST)
        await postgres.start()
    if month % 3 == 1:
        change_password(postgres, folder / "passwords", month)
    async with httpx.AsyncClient(base_url=live.base, timeout=30) as client:
        await _await_current(client, f"2026-{month:02d}-1")
        await _read(client)


async def _await_current(client: httpx.AsyncClient, release: str) -> None:
    async def is_current() -> bool:
        try:
            answers = [await client.get(f"{LOCALIDADES}suggest/?q=a") for _ in range(6)]
        except httpx.TransportError:  # of a worker that has gone
            return False
        return all(one.is_success and one.headers["catalogue-release"] == release for one in answers)

    await eventually_async(is_current)


async def _read(client: httpx.AsyncClient) -> None:
    targets = ["", "?page=2", "?search=arroyo", "?estado_id=2", "download/?format=csv", "download/?format=parquet",
               "nearest/?lat=20&lon=-103", "suggest/?q=la"]  # fmt: skip
    for target in targets * 3:
        assert (await client.get(LOCALIDADES + target)).is_success, target


async def _replace_workers(live: Live) -> None:
    before = len(workers_of(live))
    live.process.send_signal(signal.SIGHUP)
    await eventually_async(lambda: len(workers_of(live)) >= before + WORKERS)


async def _measure(server: Server, live: Live, cache: Path) -> Usage:
    await eventually_async(lambda: len(_processes(workers_of(live))) == WORKERS)  # the former ones have gone
    tables = "SELECT count(*) FROM pg_class WHERE relkind = 'r' AND relname ~ '^localities_r[0-9]+$'"
    entries = await asyncio.to_thread(lambda: list(cache.rglob("*")))
    workers = _processes(workers_of(live))
    return Usage(
        releases=(await server.fetch("SELECT count(*) FROM releases"))[0][0],
        partitions=(await server.fetch(tables))[0][0],
        connections=await server.service_connections(),
        index_folders=sum(entry.is_dir() and entry.parent.name.startswith("names-") for entry in entries),
        cache_files=len(entries),
        descriptors=sum(len(os.listdir(worker / "fd")) for worker in workers),  # noqa: PTH208  # faster to count
        megabytes=sum(_resident_megabytes(worker) for worker in workers),
    )


def _processes(pids: Iterable[int]) -> list[Path]:
    """Return the folders in /proc of the processes that are alive."""
    return [folder for folder in (Path(f"/proc/{pid}") for pid in pids) if (folder / "fd").exists()]


def _resident_megabytes(process: Path) -> float:
    """Return a process's own memory in MB: without the files that it maps."""
    found = re.search(r"^RssAnon:\s+(\d+) kB$", (process / "status").read_text(), re.MULTILINE)
    return int(found[1]) / 1000 if found else 0  # it ends at this moment
