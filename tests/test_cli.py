"""The command line, run as a user runs it."""

import os
import re
import signal
import socket
import subprocess
import time
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qs, quote, unquote, urlsplit

import asyncpg
import pytest
from typer.testing import CliRunner

from localidades_api import __version__
from localidades_api.cli import app
from localidades_api.database import Database, Dsn
from localidades_api.errors import ConfigurationError
from localidades_api.settings import PREFIX
from tests.catalogue import TRAPS, write_catalogue
from tests.wire import COMMAND, ROOT, ask, await_end_of_group, environment, run, serving

NOWHERE = "postgresql://someone:s3cr3t@127.0.0.1:1/x"


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    returncode: int
    stdout: str
    stderr: str


def here(*arguments: str, url: str | None = None, **settings: str) -> Ended:
    """Run a command within this process: where an interpreter of its own would only take time."""
    variables: dict[str, str | None] = {"COLUMNS": "200", "NO_COLOR": "1", "DATABASE_URL": url, **settings}
    result = CliRunner().invoke(app, arguments, env=variables)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return Ended(result.exit_code, result.stdout, result.stderr)


def assert_sentence(result: "Ended | subprocess.CompletedProcess[str]", *words: str) -> None:
    """Check that a command ended with 1 and said why in one line, without a traceback or a password."""
    assert result.returncode == 1, result
    lines = [line for line in result.stderr.splitlines() if line.startswith("error: ")]
    assert len(lines) == 1, result.stderr
    for word in words:
        assert word in lines[0]
    assert "Traceback" not in result.stderr + result.stdout
    assert "s3cr3t" not in result.stderr + result.stdout
    assert result.stdout == ""


# -- What it says of itself


def test_help_lists_the_commands() -> None:
    result = here("--help")
    assert result.returncode == 0
    for command in ("serve", "import", "releases", "openapi"):
        assert re.search(rf"^\W*{command}\s+\w", result.stdout, re.MULTILINE)


@pytest.mark.parametrize("command", ["serve", "import", "releases", "openapi"])
def test_help_of_a_command_tells_its_options(command: str) -> None:
    result = here(command, "--help")
    assert result.returncode == 0
    options = {"serve": ["--host", "--port", "--workers"], "import": ["--release", "--dry-run", "--allow-shrink"]}
    for option in options.get(command, []):
        assert option in result.stdout


def test_version_is_that_of_the_package() -> None:
    result = here("--version")
    assert (result.returncode, result.stdout) == (0, f"{__version__}\n")


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("frob",),
        ("serve", "--frob"),
        ("serve", "--port", "x"),
        ("serve", "--port", "65536"),
        ("serve", "--workers", "0"),
        ("import",),
        ("import", "a", "b"),
        ("releases", "x"),
    ],
)
def test_usage_error_ends_with_2(arguments: tuple[str, ...]) -> None:
    result = here(*arguments)
    assert result.returncode == 2
    assert "Usage:" in result.stderr + result.stdout
    assert "Traceback" not in result.stderr


# -- Settings


@pytest.mark.parametrize(
    "url",
    ["mysql://u:s3cr3t@h/d", "sqlite:///s3cr3t", "u:s3cr3t@h/d", "http://u:s3cr3t@h/", "postgresqlx://u:s3cr3t@h/d"],
)
@pytest.mark.parametrize("arguments", [("releases",), ("import", "demo")])
def test_address_of_no_postgres_is_refused_without_its_password(url: str, arguments: tuple[str, ...]) -> None:
    assert_sentence(here(*arguments, url=url), "DATABASE_URL", "postgresql://user:password@host:5432/database")


def test_serve_with_an_address_of_no_postgres_is_refused_without_its_password() -> None:
    assert_sentence(run("serve", "--port", "0", env=environment("mysql://u:s3cr3t@h/d")), "DATABASE_URL")


def test_variable_that_is_unknown_is_named_with_the_known_ones() -> None:
    assert_sentence(
        here("releases", url=NOWHERE, LOCALIDADES_POOLSIZE="3"),
        "LOCALIDADES_POOLSIZE",
        "LOCALIDADES_POOL_SIZE",
    )


@pytest.mark.parametrize(
    ("name", "value"),
    [("POOL_SIZE", "0"), ("POOL_SIZE", "s3cr3t"), ("DATABASE_TIMEOUT", "-1"), ("RELEASE_POLL", "nan")],
)
def test_variable_that_is_wrong_is_named_without_its_value(name: str, value: str) -> None:
    result = here("releases", url=NOWHERE, **{PREFIX + name: value})
    assert_sentence(result, PREFIX + name)
    assert f"{PREFIX}{name}: Input should be" in result.stderr


def test_variable_that_is_empty_counts_as_unset(seeded: str) -> None:
    assert here("releases", url=seeded, LOCALIDADES_POOL_SIZE="").returncode == 0


# -- releases, import


def test_releases_are_listed_with_a_star_at_the_current_one(seeded: str) -> None:
    result = here("releases", url=seeded)
    assert result.returncode == 0, result.stderr
    (line,) = [line for line in result.stdout.splitlines() if "2020-01 " in line]
    assert line.startswith("*")
    assert "132" in line
    assert "catun_localidad_2020-01.csv" in line


def test_releases_of_a_database_out_of_reach_is_a_sentence() -> None:
    assert_sentence(here("releases", url=NOWHERE), "The database does not answer.")


def test_releases_of_a_database_without_tables_is_a_sentence(empty_database: str) -> None:
    assert_sentence(here("releases", url=empty_database))


def test_import_into_a_database_without_tables_is_a_sentence(empty_database: str, small_catalogue: Path) -> None:
    assert_sentence(here("import", str(small_catalogue), url=empty_database))


@pytest.mark.parametrize("arguments", [(), ("--dry-run",)])
def test_import_of_a_file_that_is_not_there_is_a_sentence(database: str, arguments: tuple[str, ...]) -> None:
    assert_sentence(here("import", "/nowhere/catun_localidad_2021-01.csv", *arguments, url=database), "/nowhere")


def test_import_into_a_database_out_of_reach_is_a_sentence(small_catalogue: Path) -> None:
    assert_sentence(here("import", str(small_catalogue), url=NOWHERE), "The database does not answer.")


def test_import_as_dry_run_reports_and_changes_nothing(seeded_database: str, tmp_path: Path) -> None:
    source = write_catalogue(tmp_path / "catun_localidad_2021-01.csv", TRAPS)
    result = run("import", str(source), "--dry-run", "--allow-shrink", env=environment(seeded_database))
    assert result.returncode == 0, result.stderr
    assert result.stdout == ""
    assert "would publish release 2021-01 in " in result.stderr
    assert f": {len(TRAPS)} localities in " in result.stderr
    assert "compared with 2020-01: 0 added, 117 removed, 0 renamed, 0 relocated" in result.stderr
    assert "0 rows rejected, 0 withdrawn localities left out" in result.stderr
    listed = here("releases", url=seeded_database).stdout
    assert "2020-01" in listed
    assert "2021-01" not in listed


def test_import_publishes_and_says_so(database: str, small_catalogue: Path) -> None:
    result = here("import", str(small_catalogue), "--release", "2020-02", url=database)
    assert result.returncode == 0, result.stderr
    assert "published release 2020-02 in " in result.stderr
    assert "2020-02" in here("releases", url=database).stdout


# -- serve


def test_serve_on_a_taken_port_says_so(seeded: str) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as holder:
        port = str(holder.getsockname()[1])
        assert_sentence(run("serve", "--port", port, env=environment(seeded)), port, "--port")


def test_serve_on_an_address_that_is_not_ours_says_so(seeded: str) -> None:
    assert_sentence(run("serve", "--host", "192.0.2.1", env=environment(seeded)), "192.0.2.1")


def test_serve_prints_where_to_look_and_ends_at_sigterm(seeded_database: str) -> None:
    with serving(seeded_database) as live:
        printed = live.output.read_text()
        for line in (
            f"localidades-api {__version__}",
            "release  2020-01",
            f"list     {live.base}/api/census/localidades/",
            f"browse   {live.base}/api/census/localidades/?format=api",
            f"docs     {live.base}/docs",
        ):
            assert line in printed
        for path in re.findall(rf"{live.base}(\S+)", printed):
            assert ask(live.base, path).status == 200
        live.process.send_signal(signal.SIGTERM)
        assert live.process.wait(30) == 0
        assert "Traceback" not in live.output.read_text()


def test_serve_ends_at_ctrl_c(seeded_database: str) -> None:
    with serving(seeded_database) as live:
        live.process.send_signal(signal.SIGINT)
        assert live.process.wait(30) in {0, 130}
        assert "Traceback" not in live.output.read_text()


def test_serve_without_a_database_in_reach_answers_503_and_stays() -> None:
    assert_serves_503(NOWHERE)


def test_serve_on_a_database_without_tables_answers_503_and_stays(empty_database: str) -> None:
    assert_serves_503(empty_database)


def assert_serves_503(url: str) -> None:
    port = free_port()
    process = subprocess.Popen(
        [*COMMAND, "serve", "--port", str(port)],
        env=environment(url),
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        deadline = time.monotonic() + 30
        status = None
        while status is None and process.poll() is None and time.monotonic() < deadline:
            with suppress(OSError, ValueError, IndexError):
                status = ask(f"http://127.0.0.1:{port}", "/api/census/localidades/").status
            time.sleep(0.05)
        assert status == 503
        process.terminate()
        assert process.wait(30) == 0
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def free_port() -> int:
    with closing(socket.create_server(("127.0.0.1", 0))) as probe:
        port: int = probe.getsockname()[1]
        return port


def assert_free(port: int) -> None:
    with closing(socket.create_server(("127.0.0.1", port))):
        pass


def test_serve_with_two_workers_answers_and_leaves_nothing_when_its_supervisor_is_killed(seeded_database: str) -> None:
    with serving(seeded_database, "--workers", "2") as live:
        started = len(re.findall(r"Started server process", live.output.read_text()))
        answers = [ask(live.base, "/api/census/localidades/?page=2") for _ in range(20)]
        assert {answer.status for answer in answers} == {200}
        assert started >= 1
        os.kill(live.process.pid, signal.SIGKILL)
        assert live.process.wait(30) == -signal.SIGKILL
        await_end_of_group(live.process.pid)
        port = urlsplit(live.base).port
        assert port is not None
        assert_free(port)


# -- DATABASE_URL


@pytest.mark.parametrize(
    ("url", "netloc", "options"),
    [
        ("postgres://u:p@h/d", "u:p@h", {}),
        ("postgresql://u:p@h/d", "u:p@h", {}),
        ("postgresql+asyncpg://u:p@h/d", "u:p@h", {}),
        ("postgresql+psycopg2://u:p@h/d", "u:p@h", {}),
        ("postgresql+psycopg://u:p@h:5433/d", "u:p@h:5433", {}),
        ("postgres+asyncpg://u@h/d", "u@h", {}),
        ("  postgresql://u:p@h/d\n", "u:p@h", {}),
        ("postgresql://u:p%40ss%2Fw%3A@h/d", "u:p%40ss%2Fw%3A@h", {}),
        ("postgresql://u@[::1]:5432/d", "u@[::1]:5432", {}),
        ("postgresql://u@h/d?sslmode=require", "u@h", {"sslmode": "require"}),
        ("postgresql://u@h/d?ssl=require", "u@h", {"sslmode": "require"}),
        ("postgresql://u@h/d?application_name=mine", "u@h", {"application_name": "mine"}),
        ("postgresql://u@h/d?options=-c%20search_path%3Dx", "u@h", {"options": "-c search_path=x"}),
        ("postgresql://u@h/d?channel_binding=require&sslmode=require", "u@h", {"sslmode": "require"}),
        ("postgresql://u@h/d?pgbouncer=true&connection_limit=1&schema=public", "u@h", {}),
        ("postgresql://u@a:1,b:2/d", "u@a:1,b:2", {}),
        ("postgresql://u@/d?host=a:1&host=b:2", "u@", {"host": "a:1,b:2"}),
        (
            "postgresql://u@/d?host=a:1&host=b:2&target_session_attrs=prefer-standby",
            "u@",
            {"host": "a:1,b:2", "target_session_attrs": "prefer-standby"},
        ),
        ("postgresql://u@/d?host=/run/postgresql&port=5432", "u@", {"host": "/run/postgresql", "port": "5432"}),
    ],
)
def test_address_in_any_spelling_is_read(url: str, netloc: str, options: dict[str, str]) -> None:
    parts = urlsplit(Dsn.parse(url).address)
    assert (parts.scheme, parts.netloc, parts.path) == ("postgresql", netloc, "/d")
    expected = {"application_name": "localidades-api"} | options
    assert parse_qs(parts.query, strict_parsing=True) == {name: [value] for name, value in expected.items()}


@pytest.mark.parametrize(
    ("query", "seconds"),
    [("", None), ("?connect_timeout=3", 3.0), ("?timeout=2.5", 2.5), ("?connect_timeout=0", None)],
)
def test_address_with_a_timeout_is_read(query: str, seconds: float | None) -> None:
    dsn = Dsn.parse(f"postgresql://u@h/d{query}")
    assert dsn.connect_timeout == seconds
    assert "timeout" not in dsn.address


@pytest.mark.parametrize("url", ["", "x", "mysql://u:s3cr3t@h/d", "://s3cr3t", "postgresql://h/d?timeout=s3cr3t"])
def test_address_that_cannot_be_read_is_refused_without_its_content(url: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        Dsn.parse(url)
    assert "DATABASE_URL" in str(caught.value)
    assert "s3cr3t" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


def socket_folder(url: str) -> str:
    return unquote(parse_qs(urlsplit(url).query)["host"][0])


@pytest.fixture
def spelled(seeded: str) -> dict[str, str]:
    """Lend the parts of the address of the tests' server."""
    parts = urlsplit(seeded)
    return {
        "user": parts.username or "",
        "name": parts.path.lstrip("/"),
        "folder": quote(socket_folder(seeded), safe=""),
        "port": parse_qs(parts.query).get("port", ["5432"])[0],
    }


@pytest.mark.parametrize(
    "spelling",
    [
        "postgresql://{user}@/{name}?host={folder}&port={port}",
        "postgres://{user}@/{name}?host={folder}&port={port}",
        "postgresql+asyncpg://{user}@/{name}?host={folder}&port={port}",
        "postgresql+psycopg2://{user}@/{name}?host={folder}&port={port}",
        "postgresql://{user}:p%40ss@/{name}?host={folder}&port={port}",
        "postgresql://{user}@{folder}:{port}/{name}",
        "postgresql:///{name}?user={user}&host={folder}&port={port}",
        "postgresql://{user}@/{name}?host={folder}&port={port}&sslmode=prefer",
        "postgresql://{user}@/{name}?host={folder}&port={port}&ssl=disable",
        "postgresql://{user}@/{name}?host={folder}&port={port}&channel_binding=prefer&gssencmode=disable",
        "postgresql://{user}@/{name}?host={folder}&port={port}&connect_timeout=5",
        "postgresql://{user}@/{name}?host={folder}&port={port}&application_name=mine",
        "postgresql://{user}@/{name}?host={folder}&port={port}&options=-c%20search_path%3Dpublic",
        "postgresql://{user}@/{name}?host=/nowhere&host={folder}&port={port}",
        "postgresql://{user}@/{name}?host=/nowhere,{folder}&port={port},{port}",
        "postgresql://{user}@%2Fnowhere:5432,{folder}:{port}/{name}",
        "postgresql://{user}@127.0.0.1:1,{folder}:{port}/{name}?target_session_attrs=any",
    ],
)
async def test_address_in_any_spelling_connects(spelled: dict[str, str], spelling: str) -> None:
    url = spelling.format_map(spelled)
    connection = await asyncpg.connect(Dsn.parse(url).address, timeout=10)
    try:
        assert await connection.fetchval("SELECT current_database()") == spelled["name"]
        expected = "mine" if "application_name" in url else "localidades-api"
        assert await connection.fetchval("SHOW application_name") == expected
        if "options" in url:
            assert await connection.fetchval("SHOW search_path") == "public"
    finally:
        await connection.close()


async def test_pool_for_reading_cannot_write(seeded: str) -> None:
    database = Database.for_reading(seeded, pool_size=1, timeout=5)
    try:
        async with database.engine.connect() as connection:
            for setting, value in (("default_transaction_read_only", "on"), ("statement_timeout", "5s")):
                assert (await connection.exec_driver_sql(f"SHOW {setting}")).scalar_one() == value
    finally:
        await database.dispose()


def test_command_takes_sqlalchemys_spelling(seeded: str) -> None:
    url = seeded.replace("postgresql://", "postgresql+asyncpg://")
    assert "2020-01" in here("releases", url=url).stdout
