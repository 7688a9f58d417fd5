"""The command line, run as a user runs it."""

import json
import os
import pty
import re
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
import termios
import time
import zipfile
from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path
from urllib.parse import parse_qs, quote, unquote, urlsplit

import asyncpg
import httpx
import pytest
import typer

from localidades_api import __version__
from localidades_api.cli.exit_codes import errors_as_sentences
from localidades_api.database.dsn import Dsn
from localidades_api.database.pool import Database
from localidades_api.importer.run import import_catalogue
from localidades_api.observability.progress import ImportStep, Step
from localidades_api.settings import PREFIX
from tests.support.application import import_file
from tests.support.catalogue import TRAPS, many, write_catalogue
from tests.support.commands import assert_error, invoke
from tests.support.postgres import execute, locked
from tests.support.waiting import PATIENCE
from tests.support.wire import (
    COMMAND,
    NULL,
    ROOT,
    ask,
    await_end_of_group,
    environment,
    run,
    serving,
    start_command,
)

COMMANDS = (
    "serve", "migrate", "import", "releases", "releases publish", "releases retire", "roles", "verify", "match",
    "export", "mcp", "openapi",
)  # fmt: skip
NOWHERE = "postgresql://someone:s3cr3t@127.0.0.1:1/x"


# -- Help


def test_help_lists_the_commands() -> None:
    result = invoke("--help")
    assert result.returncode == 0
    for command in COMMANDS:
        if " " not in command:
            assert re.search(rf"^\W*{command}\s+\w", result.stdout, re.MULTILINE)


def test_version_is_printed() -> None:
    result = invoke("--version")
    assert (result.returncode, result.stdout) == (0, f"{__version__}\n")


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("imprt",),
        ("serve", "--frob"),
        ("serve", "--port"),
        ("serve", "--port", "x"),
        ("serve", "--workers", "0"),
        ("migrate", "head"),
        ("import",),
        ("releases", "x"),
        ("releases", "retire"),
    ],
)
def test_usage_error_ends_with_2(arguments: tuple[str, ...]) -> None:
    result = invoke(*arguments)
    assert (result.returncode, result.stdout) == (2, "")
    assert "Traceback" not in result.stderr
    if arguments:
        (line,) = result.stderr.splitlines()
        assert re.fullmatch(
            r"error: .+[;?] [sS]ee `\S+( serve| migrate| import| releases| releases retire)? --help`\.", line
        )
    else:
        assert result.stderr == invoke("--help").stdout


def options_of(command: str) -> set[str]:
    return set(re.findall(r"--[a-z-]+", invoke(*command.split(), "--help").stdout.partition("Examples:")[0]))


@pytest.mark.parametrize("command", COMMANDS)
def test_examples_in_help_use_options_that_exist(command: str) -> None:
    result = invoke(*command.split(), "--help", COLUMNS="80")
    assert (result.returncode, result.stderr) == (0, "")
    _, _, examples = result.stdout.partition("\n  Examples:\n")
    assert examples
    for example in examples.splitlines():
        words = shlex.split(example.partition("|")[0])
        called = words[words.index("localidades-api") + 1 :]
        assert called[: len(command.split())] == command.split()
        assert {word for word in words if word.startswith("--")} <= options_of(command)


def test_exit_codes_in_help_match_the_docs() -> None:
    (table,) = re.findall(r"\| exit code .*?\n\n", (ROOT / "docs" / "reference" / "commands.md").read_text(), re.DOTALL)
    documented = re.findall(r"^\| ([0-9]+) \|", table, re.MULTILINE)
    _, _, codes = invoke("--help", COLUMNS="80").stdout.partition("\n  Exit codes:\n")
    assert re.findall(r"^ +([0-9]+)  ", codes, re.MULTILINE) == documented
    for command in COMMANDS:
        assert f"`{command}`" in table


def run_in_terminal(*arguments: str, env: Mapping[str, str], term: str = "xterm-256color") -> str:
    """Run a command on a pseudo-terminal of 80 columns; return its output."""
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (24, 80))
    variables = {name: value for name, value in env.items() if name not in {"COLUMNS", "LINES"}} | {"TERM": term}
    process = start_command(*arguments, streams=(theirs, theirs, theirs), env=variables)
    os.close(theirs)
    sent = b""
    with suppress(OSError):  # EIO, once the last process that held the terminal has ended
        while received := os.read(ours, 65536):
            sent += received
    os.close(ours)
    process.wait(PATIENCE)
    return sent.decode()


def test_colours_appear_only_on_a_terminal_that_allows_them() -> None:
    wished = {"NO_COLOR", "FORCE_COLOR", "GITHUB_ACTIONS", "PY_COLORS"}  # an empty one counts too
    env = {name: value for name, value in environment(NOWHERE).items() if name not in wished}
    arguments = ("import", "/nowhere")
    assert "\x1b[31m" in run_in_terminal(*arguments, env=env)
    assert "\x1b[31m" not in run_in_terminal(*arguments, env=env | {"NO_COLOR": "1"})
    assert "\x1b" not in run_in_terminal(*arguments, env=env, term="dumb")
    assert "\x1b" not in run(*arguments, env=env).stderr


def test_control_characters_in_errors_are_escaped(seeded: str) -> None:
    hostile = "/nowhere/\x1b[2J[/red]:smile:\n.zip"
    (said,) = invoke("import", hostile, url=seeded).stderr.splitlines()
    assert said.startswith("error: There is no file /nowhere/\\x1b[2J[/red]:smile: .zip: ")
    assert "\x1b[2J" not in run_in_terminal("import", hostile, env=environment(seeded))


# -- Completion


@pytest.fixture
def installed(tmp_path: Path) -> dict[str, str]:
    """Return the environment of a shell with `localidades-api` on its path and an empty home."""
    script = tmp_path / "bin" / "localidades-api"
    script.parent.mkdir()
    code = "import sys; sys.argv[0] = 'localidades-api'; from localidades_api.cli import app; app()"
    script.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -c {shlex.quote(code)} "$@"\n')
    script.chmod(0o755)
    return environment(PATH=f"{script.parent}{os.pathsep}{os.environ['PATH']}", HOME=str(tmp_path))


def in_bash(script: str, env: dict[str, str]) -> str:
    # A last command, so that bash stays the parent process, by which the shell is detected.
    result = subprocess.run(
        ["bash", "-c", f"{script}\ntrue"],  # noqa: S607  # whichever is installed
        env=env,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=True,
    )
    assert result.stderr == ""
    return result.stdout


def test_bash_completion_works_once_installed(installed: dict[str, str]) -> None:
    complete = """localidades-api --install-completion
        . ~/.bash_completions/localidades-api.sh
        COMP_WORDS=(localidades-api im); COMP_CWORD=1; _localidades_api_completion localidades-api
        echo "${COMPREPLY[@]}"
        COMP_WORDS=(localidades-api import --); COMP_CWORD=2; _localidades_api_completion localidades-api
        echo "${COMPREPLY[@]}" """
    *said, commands, options = in_bash(complete, installed).splitlines()
    assert "bash completion installed in " in said[0]
    assert "localidades-api.sh" in Path(installed["HOME"], ".bashrc").read_text()
    assert commands == "import"
    own = {"--release", "--sheet", "--dry-run", "--keep", "--keep-demo", "--reason", "--json"}
    own |= {"--allow-shrink", "--allow-renames", "--allow-broken-letters"}
    assert set(options.split()) == own | {"--help"}


def test_commands_that_read_end_with_the_timeout_of_the_database(seeded_database: str) -> None:
    completion = {"COMP_WORDS": "root releases retire 20", "COMP_CWORD": "3", "_ROOT_COMPLETE": "complete_bash"}
    began = time.monotonic()
    with locked(seeded_database, "releases, publications"):
        for arguments in (("releases",), ("releases", "--log")):
            assert_error(invoke(*arguments, url=seeded_database, LOCALIDADES_DATABASE_TIMEOUT="0.2"), "database")
        completed = invoke(url=seeded_database, LOCALIDADES_DATABASE_TIMEOUT="0.2", **completion)
    assert (completed.stdout.strip(), completed.stderr) == ("", "")
    assert time.monotonic() - began < 5


# -- Output


def end_of(arguments: Sequence[str], url: str | None, *, stdout: int, stderr: int | None = None) -> tuple[int, str]:
    """Run a command with these streams; return its exit code and its stderr, unless that is given."""
    with tempfile.TemporaryFile() as said, NULL.open() as stdin:
        streams = (stdin.fileno(), stdout, said.fileno() if stderr is None else stderr)
        ended = start_command(*arguments, streams=streams, env=environment(url)).wait(PATIENCE)
        said.seek(0)
        return ended, said.read().decode()


with_any_output = pytest.mark.parametrize(
    "arguments",
    [
        "--version",
        "--help",
        "releases --json",
        *(pytest.param(arguments, marks=pytest.mark.tail) for arguments in ("openapi", "serve --help", "releases")),
    ],
)
UNWRITTEN = r"error: The output can't be written \(.+\): send it somewhere else\.\n"


@with_any_output
def test_unwritable_output_is_explained(seeded: str, arguments: str) -> None:
    with Path("/dev/full").open("wb") as full:
        code, said = end_of(arguments.split(), seeded, stdout=full.fileno())
    assert code == 74
    assert re.fullmatch(UNWRITTEN, said)


def test_other_os_error_is_not_blamed_on_the_output(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    result = run("export", str(tmp_path / "file" / "new"))
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr == f"error: The system reports an error: File exists, {tmp_path}/file.\n"


def test_closed_output_is_explained(seeded: str) -> None:
    script = f"{shlex.join(COMMAND)} releases --json >&-"
    result = subprocess.run(
        ["/bin/sh", "-c", script], env=environment(seeded), cwd=ROOT, stderr=subprocess.PIPE, text=True, check=False
    )
    assert result.returncode == 74
    assert re.fullmatch(UNWRITTEN, result.stderr)


@with_any_output
def test_broken_pipe_is_silent(seeded: str, arguments: str) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        assert end_of(arguments.split(), seeded, stdout=writing) == (141, "")
    finally:
        os.close(writing)


UNBUFFERED = pytest.mark.parametrize("unbuffered", ["", "1"])  # as containers set it


@UNBUFFERED
def test_reader_may_leave_early(unbuffered: str) -> None:
    reading, writing = os.pipe()
    env = environment(PYTHONUNBUFFERED=unbuffered)
    with NULL.open() as stdin, tempfile.TemporaryFile() as said:
        streams = (stdin.fileno(), writing, said.fileno())
        process = start_command("openapi", streams=streams, env=env, command=COMMAND)
        os.close(writing)
        assert os.read(reading, 2) == b"{\n"
        os.close(reading)
        assert process.wait(PATIENCE) == 141
        said.seek(0)
        assert said.read() == b""


@UNBUFFERED
def test_partly_written_output_is_a_failure(unbuffered: str, tmp_path: Path) -> None:
    limited = f"trap '' XFSZ; ulimit -f 64; exec {shlex.join(COMMAND)} openapi >{shlex.quote(str(tmp_path / 'out'))}"
    env = environment(PYTHONUNBUFFERED=unbuffered)
    ended = subprocess.run(
        ["/bin/sh", "-c", limited], env=env, cwd=ROOT, stderr=subprocess.PIPE, text=True, check=False
    )
    assert ended.returncode == 74
    assert re.fullmatch(UNWRITTEN, ended.stderr)


def test_import_publishes_even_if_its_output_fails(database: str, tmp_path: Path) -> None:
    first, second = (write_catalogue(tmp_path / f"catun_localidad_{2018 + n}-01.csv", many(130 + n)) for n in (2, 3))
    with Path("/dev/full").open("wb") as full, tempfile.TemporaryFile() as report:
        quiet = ("import", str(first), "--json")
        assert end_of(quiet, database, stdout=report.fileno(), stderr=full.fileno())[0] == 0
        report.seek(0)
        assert json.load(report)["published"]
        assert end_of(("import", str(second), "--json"), database, stdout=full.fileno())[0] == 74
    assert "2021-01" in invoke("releases", url=database).stdout


# -- In a fresh interpreter


def test_package_can_be_run_as_a_module() -> None:
    command = (sys.executable, "-m", "localidades_api")
    assert run("--version", command=command).stdout == run("--version").stdout
    refused = run("serve", "--nonsense", command=command)
    assert refused.returncode == 2
    assert refused.stderr == "error: No such option: --nonsense; see `python -m localidades_api serve --help`.\n"


def test_commands_work_in_a_fresh_interpreter(
    seeded_database: str, live_server: str, small_catalogue: Path, tmp_path: Path
) -> None:
    """Other tests fork a process with the modules loaded. `releases`, `serve` and `mcp` have other tests."""
    rows = tmp_path / "rows.csv"
    rows.write_text("nombre\nAguascalientes\n")
    env = environment(seeded_database, PYTHONIOENCODING="ascii")  # an ASCII locale must work too
    for arguments in (
        ("migrate",),
        ("verify", str(small_catalogue), "--url", live_server),
        ("match", str(rows)),
        ("openapi",),
    ):
        ended = run(*arguments, env=env, command=COMMAND)
        assert ended.returncode == 0, ended.stderr
        assert arguments != ("openapi",) or json.loads(ended.stdout)
    nowhere = environment(NOWHERE)
    assert_error(run("roles", env=nowhere, command=COMMAND), "The database does not answer")
    assert_error(run("export", str(tmp_path / "files"), env=nowhere, command=COMMAND), "The database does not answer")
    assert_error(run("import", "/nowhere/año.zip", env=env, command=COMMAND), r"/nowhere/a\xf1o.zip")


def test_serve_in_a_fresh_interpreter_prints_addresses_and_ends_at_sigterm(seeded_database: str) -> None:
    with serving(seeded_database, command=COMMAND) as live:
        printed = live.output.read_text()
        for line in (
            f"localidades-api {__version__}",
            "release  2020-01",
            f"list     {live.base}/api/census/localidades/",
            f"site     {live.base}/",
            f"docs     {live.base}/docs",
        ):
            assert line in printed
        assert "data " not in printed, "it is the operator's"
        for address in re.findall(rf"{live.base}\S+", printed):
            assert httpx.get(address, follow_redirects=True).status_code == 200
        live.process.send_signal(signal.SIGTERM)
        assert live.process.wait(PATIENCE) == 0
        assert "Traceback" not in live.output.read_text()


def test_bug_is_reported_without_its_data(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(typer.Exit) as caught, errors_as_sentences():
        int("s3cr3t")
    assert caught.value.exit_code == 1
    said = capsys.readouterr().err
    assert re.fullmatch(
        r"error: This is a bug in localidades-api \(ValueError in test_cli\.py:[0-9]+\): please report it\.\n", said
    )


@pytest.mark.timeout(20)  # a bug would be an endless loop
def test_circular_causes_are_reported(capsys: pytest.CaptureFixture[str]) -> None:
    first, second = KeyError("s3cr3t"), ValueError("s3cr3t")
    first.__cause__, second.__context__ = second, first
    with pytest.raises(typer.Exit) as caught, errors_as_sentences():
        raise first
    assert (caught.value.exit_code, "This is a bug" in capsys.readouterr().err) == (1, True)


# -- Settings


@pytest.mark.parametrize("arguments", [("releases",), ("import", "demo")])
def test_url_of_another_database_is_refused_without_its_password(arguments: tuple[str, ...]) -> None:
    address = "postgresql://user:password@host:5432/database"
    assert_error(invoke(*arguments, url="mysql://u:s3cr3t@h/d"), "DATABASE_URL", address)


def test_unknown_variable_is_named_with_a_suggestion() -> None:
    assert_error(
        invoke("releases", url=NOWHERE, LOCALIDADES_POOLSIZE="3"),
        "LOCALIDADES_POOLSIZE",
        "LOCALIDADES_POOL_SIZE",
    )


@pytest.mark.parametrize(
    ("name", "value"),
    [("POOL_SIZE", "s3cr3t"), ("DATABASE_TIMEOUT", "-1")],
)
def test_bad_variable_is_named_without_its_value(name: str, value: str) -> None:
    result = invoke("releases", url=NOWHERE, **{PREFIX + name: value})
    assert_error(result, PREFIX + name)
    assert f"{PREFIX}{name}: Input should be" in result.stderr


def test_empty_variable_counts_as_unset(seeded: str) -> None:
    assert invoke("releases", url=seeded, LOCALIDADES_POOL_SIZE="").returncode == 0


# -- releases, import


def test_releases_are_listed_with_a_star_at_the_current_one(seeded_database: str, tmp_path: Path) -> None:
    import_file(seeded_database, write_catalogue(tmp_path / "catun_localidad_2021-01.csv", many(1_032)))
    execute(seeded_database, "UPDATE releases SET name = 'demo' WHERE name = '2020-01'")
    result = invoke("releases", url=seeded_database)
    assert result.returncode == 0, result.stderr
    head, *lines = (re.split("  +", line.rstrip()) for line in result.stdout.splitlines())
    assert head == ["", "release", "published", "localities", "municipios", "source"]
    assert [[*line[:2], line[3], line[5]] for line in lines] == [
        ["", "demo", "132", "generated"],
        ["*", "2021-01", "1,032", "catun_localidad_2021-01.csv"],
    ]


def test_unreachable_database_is_explained() -> None:
    assert_error(
        invoke("releases", url=NOWHERE),
        "The database does not answer: check that it is running and that DATABASE_URL is correct.",
    )


def test_database_without_tables_is_explained(empty_database: str) -> None:
    assert_error(invoke("releases", url=empty_database))


def test_dry_run_reports_and_changes_nothing(seeded_database: str, tmp_path: Path) -> None:
    source = write_catalogue(tmp_path / "catun_localidad_2021-01.csv", TRAPS)
    result = invoke("import", str(source), "--dry-run", "--allow-shrink", url=seeded_database)
    assert result.returncode == 0, result.stderr
    assert result.stdout == ""
    assert "would publish release 2021-01 in " in result.stderr
    assert f": {len(TRAPS)} localities in " in result.stderr
    assert "compared with 2020-01: 0 added, 117 removed, 0 renamed, 0 relocated, 0 updated" in result.stderr
    assert "The file has only Aguascalientes, Ciudad de México and Zacatecas: it lacks " in result.stderr
    assert "0 rows rejected, 0 withdrawn localities left out" in result.stderr
    listed = invoke("releases", url=seeded_database).stdout
    assert "2020-01" in listed
    assert "2021-01" not in listed


def test_import_reads_standard_input(database: str, small_catalogue: Path) -> None:
    """A pipe has no name with a date."""
    for options, status, said in (
        ((), 1, "error: The file's name has no date: name the release with --release, such as 2018-09."),
        (("--release", "2020-02"), 0, "published release 2020-02 in "),
    ):
        with small_catalogue.open() as stdin, tempfile.TemporaryFile() as output:
            streams = (stdin.fileno(), output.fileno(), output.fileno())
            importing = start_command("import", "-", *options, streams=streams, env=environment(database))
            assert importing.wait(PATIENCE) == status
            output.seek(0)
            assert said in output.read().decode()


def test_import_prints_one_json_document(seeded_database: str, tmp_path: Path) -> None:
    places = [*many(130), replace(TRAPS[1], cvegeo="010010999", ambito="X")]
    source = write_catalogue(tmp_path / "catun_localidad_2021-01.csv", places)
    expected = {
        "release": "2021-01",
        "published": False,
        "totals": {
            "estados": len({place.cvegeo[:2] for place in many(130)}),
            "municipios": len({place.cvegeo[:5] for place in many(130)}),
            "localidades": 130,
        },
        "compared_with": "2020-01",
        "changes": {"added": 0, "removed": 2, "renamed": 0, "relocated": 0, "updated": 0},
        "zeros_restored": False,
        "losses": None,
        "demo_retired": False,
        "kept": None,
        "withdrawn": 0,
        "rejected": [{"line": 132, "reason": "AMBITO is neither U nor R"}],
    }
    for options in (["--dry-run"], []):
        result = invoke("import", str(source), "--json", *options, url=seeded_database)
        assert result.returncode == 0, result.stderr
        report = json.loads(result.stdout)
        assert report.pop("seconds") > 0
        assert report == expected | {"published": not options}
        assert "publish release" not in result.stderr


def test_file_that_is_already_published_has_an_exit_code_of_its_own(
    seeded_database: str, small_catalogue: Path, tmp_path: Path
) -> None:
    said = "This very file is already published, as release 2020-01: there is nothing to do."
    for options in (), ("--release", "2021-01"), ("--dry-run", "--json"):
        result = invoke("import", str(small_catalogue), *options, url=seeded_database)
        assert (result.returncode, result.stdout, result.stderr.splitlines()[-1]) == (3, "", said)
    other = write_catalogue(tmp_path / "catun_localidad_2020-01.csv", many(131))
    assert_error(invoke("import", str(other), url=seeded_database), "Release 2020-01 is already published from another")
    assert invoke("import", str(other), "--release", "2020-02", url=seeded_database).returncode == 0
    result = invoke("import", str(small_catalogue), url=seeded_database)
    assert result.returncode == 3
    assert "make it the current one with `localidades-api releases publish 2020-01`" in result.stderr


def test_first_import_has_nothing_to_compare(database: str, small_catalogue: Path) -> None:
    report = json.loads(invoke("import", str(small_catalogue), "--json", url=database).stdout)
    assert (report["compared_with"], report["changes"]) == (None, None)
    assert report["losses"] == "The file has 10 estados; Mexico has 32 estados."


def test_refused_import_prints_no_json(seeded: str) -> None:
    assert_error(invoke("import", "/nowhere.zip", "--json", url=seeded), "There is no file")


def test_releases_as_json_equal_those_of_the_service(live_server: str, seeded: str) -> None:
    listed = json.loads(invoke("releases", "--json", url=seeded).stdout)
    assert list(listed) == ["releases"]
    assert listed["releases"] == json.loads(ask(live_server, "/api/census/releases/").body)["results"]


def test_progress_in_a_pipe_is_plain_lines(database: str, small_catalogue: Path) -> None:
    result = run("import", str(small_catalogue), "--dry-run", env=environment(database, FORCE_COLOR="1"))
    assert result.returncode == 0
    first, second, third, *_ = result.stderr.splitlines()
    assert (first, third) == ("reading rows", "copying rows")
    assert re.fullmatch(r"  132 rows \([0-9,]+/s\)", second)


def test_progress_bar_on_a_terminal_gives_way_to_the_report(database: str, small_catalogue: Path) -> None:
    shown = run_in_terminal("import", str(small_catalogue), env=environment(database))
    assert "publishing" in shown
    assert re.search(r"published release 2020-01 in .*\s*$", shown, re.DOTALL)


class Watching:
    """An observer that records expected and actual amounts by step."""

    def __init__(self) -> None:
        self.expected: dict[Step, list[int]] = {}
        self.amounts: dict[Step, int] = {}
        self._step: Step = ImportStep.FETCH

    def begin(self, step: Step) -> None:
        """Keep the step."""
        self._step = step

    def expect(self, amount: int) -> None:
        """Keep the amount."""
        self.expected.setdefault(self._step, []).append(amount)

    def advance(self, amount: int) -> None:
        """Add the amount up."""
        self.amounts[self._step] = self.amounts.get(self._step, 0) + amount


@pytest.mark.parametrize("packed", [False, True])
async def test_import_estimates_its_progress(database: str, tmp_path: Path, packed: bool) -> None:  # noqa: FBT001  # a case
    source = write_catalogue(tmp_path / "x.csv", many(9_900))
    if packed:
        with zipfile.ZipFile(tmp_path / "x.zip", "w", zipfile.ZIP_DEFLATED) as archive:
            archive.write(source, "x.csv")
        source = tmp_path / "x.zip"
    watching, pool = Watching(), Database.for_writing(database)
    try:
        await import_catalogue(pool, str(source), watching, release="2020-01", dry_run=True)
    finally:
        await pool.dispose()
    estimate, last = watching.expected[ImportStep.READ]
    assert abs(estimate - 9_900) < 600  # rows vary in length
    assert last in {9_900, 10_000}
    assert watching.expected[ImportStep.COPY] == [9_900]
    assert watching.amounts == {ImportStep.READ: 9_900, ImportStep.COPY: 9_900}


# -- serve


def test_port_in_use_suggests_another(seeded: str) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as holder:
        port = holder.getsockname()[1]
        refused = run("serve", "--port", str(port), env=environment(seeded))
        sentence = (
            f"Port {port} is in use. Choose another: `localidades-api serve --port {port + 1}`"
            f" (in a clone, `make run PORT={port + 1}`)."
        )
        assert_error(refused, sentence)
        variables = {"LOCALIDADES_MANAGEMENT_PORT": str(port)}
        refused = run("serve", "--port", "0", env=environment(seeded, **variables))
        assert_error(refused, f"port {port} ", "another LOCALIDADES_MANAGEMENT_PORT")


def test_foreign_host_address_is_refused(seeded: str) -> None:
    assert_error(run("serve", "--host", "192.0.2.1", env=environment(seeded)), "192.0.2.1", "--host")


def test_serve_ends_at_ctrl_c(seeded_database: str) -> None:
    with serving(seeded_database) as live:
        live.process.send_signal(signal.SIGINT)
        assert live.process.wait(PATIENCE) in {0, 130}
        assert "Traceback" not in live.output.read_text()


def test_serve_without_a_database_answers_503() -> None:
    with serving(NOWHERE, probe="/livez") as live:
        assert [ask(live.base, "/api/census/localidades/").status for _ in range(3)] == [503] * 3
        assert live.process.poll() is None


def test_killed_supervisor_leaves_no_workers(seeded_database: str) -> None:
    with serving(seeded_database, "--workers", "2") as live:
        assert [ask(live.base, "/api/census/localidades/?page=2").status for _ in range(20)] == [200] * 20
        os.kill(live.process.pid, signal.SIGKILL)
        assert live.process.wait(PATIENCE) == -signal.SIGKILL
        await_end_of_group(live.process.pid)
        with closing(socket.create_server(("127.0.0.1", urlsplit(live.base).port or 0))):
            pass  # the port is free


# -- DATABASE_URL


def socket_folder(url: str) -> str:
    return unquote(parse_qs(urlsplit(url).query)["host"][0])


@pytest.fixture
def spelled(seeded: str) -> dict[str, str]:
    """Return the parts of the URL of the tests' server."""
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
        "postgresql+asyncpg://{user}:p%40ss@/{name}?host={folder}&port={port}",
        "postgresql:///{name}?user={user}&host={folder}&port={port}&sslmode=prefer",
        "postgresql://{user}@/{name}?host={folder}&port={port}&channel_binding=prefer&gssencmode=disable",
        "postgresql://{user}@/{name}?host={folder}&port={port}&application_name=mine&ssl=disable&connect_timeout=5",
        "postgresql://{user}@/{name}?host={folder}&port={port}&options=-c%20search_path%3Dpublic",
        "postgresql://{user}@/{name}?host=/nowhere&host={folder}&port={port}",
        "postgresql://{user}@%2Fnowhere:5432,{folder}:{port}/{name}",
        "postgresql://{user}@127.0.0.1:1,{folder}:{port}/{name}?target_session_attrs=any",
    ],
)
async def test_database_url_in_unusual_spellings_connects(spelled: dict[str, str], spelling: str) -> None:
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
