"""The command line, run as a user runs it."""

import json
import os
import re
import shlex
import signal
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import httpx
import pytest
import typer

from localidades_api import __version__
from localidades_api.cli.exit_codes import errors_as_sentences
from tests.support.application import import_file
from tests.support.catalogue import TRAPS, Place, many, write_catalogue
from tests.support.commands import assert_error, invoke
from tests.support.postgres import execute, locked
from tests.support.waiting import PATIENCE
from tests.support.wire import COMMAND, ask, environment, run, serving

COMMANDS = (
    "serve", "migrate", "import", "releases", "releases publish", "releases retire", "match", "mcp",
    "openapi",
)  # fmt: skip
NOWHERE = "postgresql://someone:s3cr3t@127.0.0.1:1/x"


# -- Help


@pytest.mark.parametrize(
    "arguments",
    [
        "", "imprt", "serve --frob", "serve --port", "serve --port x", "serve --workers 0", "migrate head", "import",
        "releases x", "releases retire",
    ],
)  # fmt: skip
def test_usage_error_ends_with_2(arguments: str) -> None:
    result = invoke(*arguments.split())
    assert (result.returncode, result.stdout) == (2, "")
    command = "( serve| migrate| import| releases| releases retire)?"
    line = rf"error: .+[;?] [sS]ee `\S+{command} --help`\.\n"
    assert re.fullmatch(line if arguments else re.escape(invoke("--help").stdout), result.stderr)


def test_examples_in_help_use_options_that_exist() -> None:
    for command in COMMANDS:
        described, _, examples = invoke(*command.split(), "--help", COLUMNS="80").stdout.partition("\n  Examples:\n")
        assert examples
        for example in examples.splitlines():
            words = shlex.split(example.partition("|")[0])
            called = words[words.index("localidades-api") + 1 :]
            assert called[: len(command.split())] == command.split()
            assert {word for word in words if word.startswith("--")} <= set(re.findall(r"--[a-z-]+", described))


# -- Output


UNWRITTEN = r"error: The output can't be written \(.+\): send it somewhere else\.\n"


@pytest.mark.parametrize("arguments", [["--help"], ["releases", "--json"]])
def test_output_that_cannot_be_written_is_explained_unless_the_reader_has_gone(
    seeded: str, arguments: Sequence[str]
) -> None:
    with Path("/dev/full").open("wb") as full:
        ended = run(*arguments, env=environment(seeded), stdout=full.fileno())
    assert (ended.returncode, bool(re.fullmatch(UNWRITTEN, ended.stderr))) == (74, True)
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "wb"):
        ended = run(*arguments, env=environment(seeded), stdout=writing)
    assert (ended.returncode, ended.stderr) == (141, "")


@pytest.mark.tail
@pytest.mark.parametrize("unbuffered", ["", "1"])  # as containers set it
@pytest.mark.parametrize(
    "script",
    ["trap '' XFSZ; ulimit -f 64; exec {command} openapi >{out}", "exec {command} --version >&-"],
    ids=["partly written", "closed"],
)
def test_output_that_is_lost_is_a_failure(unbuffered: str, script: str, tmp_path: Path) -> None:
    words = ["sh", "-c", script.format(command=shlex.join(COMMAND), out=shlex.quote(str(tmp_path / "out")))]
    ended = run(env=environment(PYTHONUNBUFFERED=unbuffered), command=words)
    assert (ended.returncode, bool(re.fullmatch(UNWRITTEN, ended.stderr))) == (74, True)


def test_import_publishes_even_if_its_output_fails(database: str, tmp_path: Path) -> None:
    first, second = (write_catalogue(tmp_path / f"catun_localidad_{2018 + n}-01.csv", many(130 + n)) for n in (2, 3))
    with Path("/dev/full").open("wb") as full:
        ended = run("import", str(first), "--json", env=environment(database), stderr=full.fileno())
        assert (ended.returncode, json.loads(ended.stdout)["published"]) == (0, True)
        ended = run("import", str(second), "--json", env=environment(database), stdout=full.fileno())
        assert ended.returncode == 74
    assert "2021-01" in invoke("releases", url=database).stdout


# -- In a fresh interpreter: other tests fork a process with the modules loaded


def test_package_can_be_run_as_a_module() -> None:
    command = (sys.executable, "-m", "localidades_api")
    assert run("--version", command=command).stdout == f"{__version__}\n"
    refused = run("serve", "--nonsense", command=command)
    assert refused.returncode == 2
    assert refused.stderr == "error: No such option: --nonsense; see `python -m localidades_api serve --help`.\n"


@pytest.mark.tail
def test_commands_work_in_a_fresh_interpreter(seeded_database: str, live_server: str, tmp_path: Path) -> None:
    """`releases`, `serve` and `mcp` have other tests."""
    rows = tmp_path / "rows.csv"
    rows.write_text("nombre\nAguascalientes\n")
    env = environment(seeded_database, PYTHONIOENCODING="ascii")  # an ASCII locale must work too
    for arguments in (["migrate"], ["match", str(rows), "--url", live_server]):
        ended = run(*arguments, env=env, command=COMMAND)
        assert ended.returncode == 0, ended.stderr
    assert_error(run("import", "/nowhere/año.zip", env=env, command=COMMAND), r"/nowhere/a\xf1o.zip")


def test_serve_in_a_fresh_interpreter_prints_addresses_and_ends_at_ctrl_c(seeded_database: str) -> None:
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
            assert httpx.get(address, follow_redirects=True, timeout=PATIENCE).status_code == 200
        live.process.send_signal(signal.SIGINT)
        assert live.process.wait(PATIENCE) in {0, 130}
        assert "Traceback" not in live.output.read_text()


def test_bug_is_reported_without_its_data(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(typer.Exit) as caught, errors_as_sentences():
        int("s3cr3t")
    assert caught.value.exit_code == 1
    sentence = r"error: This is a bug in localidades-api \(ValueError in test_cli\.py:[0-9]+\): please report it\.\n"
    assert re.fullmatch(sentence, capsys.readouterr().err)


# -- Settings, and the database


@pytest.mark.parametrize(
    ("url", "settings", "words"),
    [
        ("mysql://u:s3cr3t@h/d", {}, ["DATABASE_URL", "postgresql://user:password@host:5432/database"]),
        (NOWHERE, {"POOLSIZE": "3"}, ["LOCALIDADES_POOLSIZE", "LOCALIDADES_POOL_SIZE"]),
        (NOWHERE, {"POOL_SIZE": "s3cr3t"}, ["LOCALIDADES_POOL_SIZE: Input should be"]),
        (NOWHERE, {"POOL_SIZE": ""}, ["does not answer: check that it is running and that DATABASE_URL is correct."]),
    ],
)
def test_setting_is_refused_by_name_without_a_password(url: str, settings: dict[str, str], words: list[str]) -> None:
    variables = {f"LOCALIDADES_{name}": value for name, value in settings.items()}
    assert_error(invoke("releases", url=url, **variables), *words)


def test_database_without_tables_is_explained(empty_database: str) -> None:
    assert_error(invoke("releases", url=empty_database), "localidades-api migrate")


def test_commands_that_read_end_with_the_timeout_of_the_database(seeded_database: str) -> None:
    limit = {"LOCALIDADES_DATABASE_TIMEOUT": "0.2"}
    began = time.monotonic()
    with locked(seeded_database, "releases"):
        assert_error(invoke("releases", url=seeded_database, **limit), "database")
    assert time.monotonic() - began < 20  # seconds, which one command would take with the timeout of `invoke`


# -- releases, import


def test_releases_are_listed_with_a_star_at_the_current_one(seeded_database: str, tmp_path: Path) -> None:
    import_file(seeded_database, write_catalogue(tmp_path / "catun_localidad_2021-01.csv", many(1_032)))
    execute(seeded_database, "UPDATE releases SET name = 'demo' WHERE name = '2020-01'")
    listed = [re.split("  +", line.rstrip()) for line in invoke("releases", url=seeded_database).stdout.splitlines()]
    assert [[*line[:2], line[3], line[5]] for line in listed] == [
        ["", "release", "localities", "source"],
        ["", "demo", "132", "generated"],
        ["*", "2021-01", "1,032", "catun_localidad_2021-01.csv"],
    ]


def test_releases_as_json_equal_those_of_the_service(live_server: str, seeded: str) -> None:
    listed = json.loads(invoke("releases", "--json", url=seeded).stdout)
    assert listed == {"releases": json.loads(ask(live_server, "/api/census/releases/").body)["results"]}


def test_import_reads_standard_input(database: str, small_catalogue: Path) -> None:
    """A pipe has no name with a date."""
    for options, status, said in (
        ((), 1, "error: The file's name has no date: name the release with --release, such as 2018-09."),
        (("--release", "2020-02", "--dry-run", "--json"), 0, '"published": false, '),
        (("--release", "2020-02"), 0, "published release 2020-02 in "),
    ):
        with small_catalogue.open() as stdin:
            ended = run("import", "-", *options, env=environment(database), stdin=stdin.fileno())
        assert ended.returncode == status
        assert said in ended.stdout + ended.stderr


def test_import_prints_one_json_document(seeded_database: str, tmp_path: Path) -> None:
    withdrawn = Place("010019999", "Withdrawn", estatus="Baja")
    places = [*many(130), replace(TRAPS[1], cvegeo="010010999", ambito="X"), withdrawn]
    source = write_catalogue(tmp_path / "catun_localidad_2021-01.csv", places)
    keys = {place.cvegeo for place in many(130)}
    expected = {
        "release": "2021-01",
        "totals": {
            "estados": len({key[:2] for key in keys}),
            "municipios": len({key[:5] for key in keys}),
            "localidades": 130,
        },
        "compared_with": "2020-01",
        "changes": {"added": 0, "removed": 2, "renamed": 0, "relocated": 0, "updated": 0},
        "losses": None, "demo_retired": False, "withdrawn": 1,
        "rejected": [{"line": 132, "reason": "AMBITO is neither U nor R"}],
    }  # fmt: skip
    for options in (["--dry-run"], []):
        result = invoke("import", str(source), "--json", *options, url=seeded_database)
        assert result.returncode == 0, result.stderr
        report = json.loads(result.stdout)
        assert report.pop("seconds") > 0
        assert report == expected | {"published": not options}
        assert "publish release" not in result.stderr
    assert_error(invoke("import", "/nowhere.zip", "--json", url=seeded_database), "There is no file")  # and prints none


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


# -- serve


def test_serve_without_a_database_answers_503() -> None:
    with serving(NOWHERE, probe="/livez") as live:
        assert [ask(live.base, "/api/census/localidades/").status for _ in range(3)] == [503] * 3
        assert live.process.poll() is None
