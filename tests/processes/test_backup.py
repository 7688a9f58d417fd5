"""A dump restored in another database gives identical responses."""

import os
import re
import subprocess
from dataclasses import replace
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from localidades_api.database.embedded_postgres import find_binaries
from tests.support.catalogue import many, write_catalogue
from tests.support.postgres import new_database
from tests.support.waiting import PATIENCE
from tests.support.wire import LOCALIDADES, Answer, ask, await_names, environment, run, serving

pytestmark = pytest.mark.tail

TARGETS = (
    *(f"{LOCALIDADES}?page={page}" for page in (1, 2, 3)),
    f"{LOCALIDADES}?release=2019-01&page=2",
    f"{LOCALIDADES}?search=ninguno",
    f"{LOCALIDADES}10010001/",
    f"{LOCALIDADES}download/?format=ndjson",
    f"{LOCALIDADES}download/?format=geojson",
    "/api/census/estados/",
    "/api/census/municipios/",
    "/api/census/releases/",
    "/api/census/releases/2020-01/changes/?since=2019-01",
)


def run_tool(name: str, url: str, *options: str) -> None:
    """Run a program of Postgres of the server's version, because older ones refuse it."""
    chosen = os.environ.get("LOCALIDADES_POSTGRES_BIN")
    program = find_binaries(Path(chosen) if chosen else None) / name
    parts = urlsplit(url)
    asked = parse_qs(parts.query)
    address = f"host={asked['host'][0]} port={asked['port'][0]} dbname={parts.path[1:]} user={parts.username}"
    subprocess.run([str(program), f"--dbname={address}", *options], check=True, timeout=PATIENCE)


def answers(url: str) -> list[Answer]:
    with serving(url) as live:
        await_names(live.base)
        found = [ask(live.base, target) for target in TARGETS]
    assert [answer.status for answer in found] == [200] * len(TARGETS)
    return [
        replace(answer, headers=[(name, value) for name, value in answer.headers if name != "date"]) for answer in found
    ]


def test_restored_database_gives_identical_responses(server: str, migrated: str, tmp_path: Path) -> None:
    dump = tmp_path / "localidades.dump"
    with new_database(server, migrated) as url, new_database(server) as other:
        for year, count in (("2019", 140), ("2020", 132)):
            path = write_catalogue(tmp_path / f"catun_localidad_{year}-01.csv", many(count))
            assert run("import", str(path), env=environment(url)).returncode == 0
        before = answers(url)
        run_tool("pg_dump", url, "--format=custom", f"--file={dump}")
        run_tool("pg_restore", other, "--no-owner", "--exit-on-error", str(dump))
        assert answers(other) == before
        # It can be written to as before: roles, an import, and a retirement.
        roles = run("roles", "--reader", "backup_reader", "--importer", "backup_importer", env=environment(other))
        assert roles.returncode == 0, roles.stderr
        importer, reader = (other.replace("//postgres@", f"//backup_{role}@") for role in ("importer", "reader"))
        assert answers(reader) == before
        path = write_catalogue(tmp_path / "catun_localidad_2021-01.csv", many(150))
        for words in (("import", str(path)), ("releases", "retire", "2019-01")):
            ended = run(*words, env=environment(importer))
            assert ended.returncode == 0, ended.stderr
        with serving(reader) as live:
            listed = ask(live.base, "/api/census/releases/").body.decode()
        assert re.findall(r'"release":"([^"]+)"', listed) == ["2020-01", "2021-01"]
