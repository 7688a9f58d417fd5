"""A dump restored in another database gives identical responses."""

import os
import re
import subprocess
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from localidades_api.embedded_postgres import find_binaries
from tests.support.catalogue import many, write_catalogue
from tests.support.postgres import new_database
from tests.support.waiting import PATIENCE
from tests.support.wire import Answer, ask, await_names, environment, run, serving

pytestmark = pytest.mark.tail

LIST = "/api/census/localidades/"
TARGETS = (
    *(f"{LIST}?page={page}" for page in (1, 2, 3)),
    f"{LIST}?release=2019-01&page=2",
    f"{LIST}?search=ninguno",
    f"{LIST}10010001/",
    f"{LIST}download/?format=ndjson",
    f"{LIST}download/?format=geojson",
    "/api/census/estados/",
    "/api/census/municipios/",
    "/api/census/releases/",
    "/api/census/releases/2020-01/changes/?since=2019-01",
)


def tool(name: str) -> str:
    """Return a program of Postgres of the server's version, because older ones refuse it."""
    chosen = os.environ.get("LOCALIDADES_POSTGRES_BIN")
    return str(find_binaries(Path(chosen) if chosen else None) / name)


def libpq(url: str) -> str:
    """Return a URL as libpq takes it."""
    parts = urlsplit(url)
    asked = parse_qs(parts.query)
    return f"host={asked['host'][0]} port={asked['port'][0]} dbname={parts.path[1:]} user={parts.username}"


def answers(url: str) -> dict[str, Answer]:
    with serving(url) as live:
        await_names(live.base)
        found = {target: ask(live.base, target) for target in TARGETS}
    assert all(answer.status == 200 for answer in found.values())
    return {target: without_date(answer) for target, answer in found.items()}


def without_date(answer: Answer) -> Answer:
    return Answer(answer.status, [(name, value) for name, value in answer.headers if name != "date"], answer.body)


def test_restored_database_gives_identical_responses(server: str, migrated: str, tmp_path: Path) -> None:
    pg_dump, pg_restore = tool("pg_dump"), tool("pg_restore")
    dump = tmp_path / "localidades.dump"
    with new_database(server, migrated) as url, new_database(server) as other:
        for year, count in (("2019", 140), ("2020", 132)):
            path = write_catalogue(tmp_path / f"catun_localidad_{year}-01.csv", many(count))
            assert run("import", str(path), env=environment(url)).returncode == 0
        before = answers(url)
        subprocess.run([pg_dump, "--format=custom", f"--file={dump}", libpq(url)], check=True, timeout=PATIENCE)
        restore = [pg_restore, "--no-owner", "--exit-on-error", f"--dbname={libpq(other)}", str(dump)]
        subprocess.run(restore, check=True, timeout=PATIENCE)
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
