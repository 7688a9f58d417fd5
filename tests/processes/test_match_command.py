"""The command `match` on files of rows: output, refusals, interrupted runs, and a service that answers."""

import csv
import json
import os
import subprocess
import tempfile
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path
from threading import Thread
from typing import Any

import openpyxl
import pytest

from localidades_api.catalogue.columns import MATCHED
from tests.support.commands import invoke
from tests.support.http_server import Response, answering
from tests.support.waiting import PATIENCE
from tests.support.wire import COMMAND, environment, run, start_command

ROWS = (
    ("folio", "Localidad", "Municipio", "Entidad"),
    ("007", "AGUASCALIENTES", "Municipio 001", "Ags."),
    ("008", "Ninguno", "Municipio 001", "Ags."),
    ("009", "Aguascalintes", "Municipio 001", "Ags."),
    ("010", "", "Municipio 001", "Ags."),
    ("011", "Nada como esto", "Municipio 001", "Ags."),
)
OUTCOMES = ["exact", "ambiguous", "sure", "problem", "none"]
LONG = 10_000  # rows: a few seconds of work


def write_rows(path: Path, rows: Iterable[Iterable[object]] = ROWS) -> Path:
    """Write a file in the format of its name."""
    if path.suffix == ".xlsx":
        workbook = openpyxl.Workbook()
        workbook.worksheets[0].append(["Notas"])
        sheet = workbook.create_sheet("Lugares")
        for row in rows:
            sheet.append([*row])
        workbook.save(path)
    elif path.suffix == ".jsonl":
        head, *others = rows
        path.write_text("".join(f"{json.dumps(dict(zip(head, row, strict=True)))}\n" for row in others))
    else:
        with path.open("w", encoding="utf-8", newline="") as file:
            csv.writer(file, delimiter="\t" if path.suffix == ".tsv" else ",").writerows(rows)
    return path


def read_rows(path: Path) -> list[dict[str, Any]]:
    """Read a file of answers in the format of its name."""
    if path.suffix.lower() == ".xlsx":
        head, *rows = openpyxl.load_workbook(path).worksheets[-1].iter_rows(values_only=True)
        return [dict(zip(map(str, head), row, strict=True)) for row in rows]
    text = path.read_text("utf-8-sig")
    if path.suffix == ".json":
        return [*json.loads(text)["results"]]
    if path.suffix == ".jsonl":
        return [json.loads(line) for line in text.splitlines()]
    return [*csv.DictReader(text.splitlines())]


def match(*arguments: object) -> "subprocess.CompletedProcess[str]":
    """Match a file, which must succeed."""
    ended = invoke("match", *map(str, arguments))
    assert ended.returncode == 0, ended.stderr
    return ended


@pytest.fixture(scope="session")
def here(small_catalogue: Path) -> tuple[str, str]:
    """Return the option that answers without a service."""
    return "--catalogue", str(small_catalogue)


@pytest.fixture
def places(tmp_path: Path) -> Path:
    """Return a file of five rows."""
    return write_rows(tmp_path / "places.csv")


@pytest.fixture(scope="module")
def long_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a file of rows that take some seconds, some with line breaks and quotes."""
    names = ("Aguascalientes", "Lugar 7", 'El "Güero",\nRancho', "Nada como esto")
    rows = ((number, names[number % 4], "Municipio 001") for number in range(LONG))
    return write_rows(tmp_path_factory.mktemp("long") / "long.csv", [("folio", "nombre", "municipio"), *rows])


def test_csv_gets_answer_columns(here: tuple[str, str], places: Path) -> None:
    ended = match(places, *here)
    rows = read_rows(places.with_name("places.matched.csv"))
    assert [row["match_outcome"] for row in rows] == OUTCOMES
    assert [tuple(row.values())[:4] for row in rows] == list(ROWS[1:])
    assert rows[0]["match_cvegeo"] == "010010001"
    assert rows[0]["match_label"] == "Aguascalientes, Municipio 001, Aguascalientes"
    assert "010010002 Ninguno (0002), Municipio 001, Aguascalientes (49.9) | 0100" in rows[1]["match_candidates"]
    assert rows[3]["match_problem"] == "Its `nombre` is empty, and it has no key to go by."
    assert ended.stdout == ""
    assert "matched 5 rows in " in ended.stderr
    assert "  1 exact, 1 sure, 1 ambiguous, 1 none, 1 problem\n" in ended.stderr
    assert ended.stderr.endswith("places.matched.csv\n")


def test_stdin_and_a_named_pipe_are_answered_on_stdout(here: tuple[str, str], places: Path) -> None:
    with places.open() as stdin:
        answered = run("match", "-", *here, env=environment(), stdin=stdin.fileno())
    assert answered.returncode == 0
    os.mkfifo(pipe := places.with_name("pipe"))
    writing = Thread(target=pipe.write_bytes, args=(places.read_bytes(),))
    writing.start()
    assert match(pipe, *here).stdout.splitlines() == answered.stdout.splitlines()
    writing.join()
    assert sorted(path.name for path in places.parent.iterdir()) == ["pipe", places.name]
    match(places, *here)
    assert answered.stdout.encode() == places.with_name("places.matched.csv").read_bytes()


def test_json_is_answered_as_lines(here: tuple[str, str], tmp_path: Path) -> None:
    sent = [{"nombre": "Aguascalientes", "folio": 7}, 5]
    source = tmp_path / "places.json"
    source.write_text(json.dumps({"rows": sent}))
    match(source, *here)
    written = (tmp_path / "places.matched.ndjson").read_text()
    assert [json.loads(line)["sent"] for line in written.splitlines()] == sent
    assert match(source, *here, "--output", "-").stdout == written


def test_extension_of_the_output_decides_its_format(here: tuple[str, str], tmp_path: Path) -> None:
    source = write_rows(tmp_path / "places.xlsx")
    for wanted in (".csv", ".XLSX", ".json", ".jsonl"):
        output = tmp_path / f"answers{wanted}"
        ended = match(source, *here, "--sheet", "Lugares", "--output", output)
        prefix = "" if wanted.startswith(".json") else "match_"
        rows = read_rows(output)
        assert [row[f"{prefix}outcome"] for row in rows] == OUTCOMES
        assert rows[0].get("sent", rows[0])["Localidad"] == "AGUASCALIENTES"
        assert "\n  read the sheet “Lugares”, header in row 1\n" in ended.stderr
    assert openpyxl.load_workbook(tmp_path / "answers.XLSX")["Sheet"]["A1"].value == "Notas"


def test_columns_can_be_named(here: tuple[str, str], tmp_path: Path) -> None:
    source = write_rows(tmp_path / "a.tsv", [("nombre", "Lugar de origen"), ("Ana", "Aguascalientes")])
    more = ("--output", tmp_path / "b.tsv", "--sure", "0.9")  # it has no estado
    match(source, *here, "--nombre", "Lugar de origen", *more)
    assert (tmp_path / "b.tsv").read_text().splitlines()[1].startswith("Ana\tAguascalientes\texact\t010010001\t")


@pytest.mark.parametrize(
    ("suffix", "options", "expected"),
    [
        (".csv", "--lang es", {"Resultado": "idéntica", "Clave INEGI (CVEGEO)": "010010001"}),
        (".csv", "--fields altitud,clave,ambito", {"match_clave": "0001", "match_altitud": "1885"}),
        (".jsonl", "--fields altitud,clave,ambito", {"clave": "0001", "ambito": "U", "altitud": 1885}),
        (".xlsx", f"--fields {','.join(MATCHED)} --sure 0.9", {f"match_{name}": None for name in MATCHED}),
    ],
)
def test_options_apply_with_a_file_and_at_a_service(
    here: tuple[str, str], live_server: str, tmp_path: Path, suffix: str, options: str, expected: dict[str, object]
) -> None:
    source = write_rows(tmp_path / f"places{suffix}", [*ROWS, ("012", "Rancho Gero", "Municipio 001", "Ags.")])
    outputs = []
    for to, place in (("here", here), ("there", ("--url", live_server))):
        outputs.append(tmp_path / f"{to}{suffix}")
        match(source, "--output", outputs[-1], *options.split(), *place)
    rows, others = [[[*row.items()] for row in read_rows(output)] for output in outputs]
    assert rows == others
    assert suffix == ".xlsx" or outputs[0].read_bytes() == outputs[1].read_bytes()
    first, doubtful = dict(rows[0]), dict(rows[-1])
    assert {name: first[name] if value else None for name, value in expected.items()} == expected
    is_sure = "--sure" in options
    outcome = doubtful.get("match_outcome", doubtful.get("outcome", doubtful.get("Resultado")))
    assert outcome == ("sure" if is_sure else "por decidir" if "es" in options.split() else "ambiguous")


def test_columns_are_found_by_their_cells_with_a_file_and_at_a_service(
    here: tuple[str, str], live_server: str, tmp_path: Path
) -> None:
    source = write_rows(tmp_path / "places.csv", [("n", "Paraje", "Su municipio", "Donde"), *ROWS[1:]])
    for place in (here, ("--url", live_server)):
        match(source, "--output", tmp_path / "answers.csv", "--force", *place)
        assert [row["match_outcome"] for row in read_rows(tmp_path / "answers.csv")] == OUTCOMES


def test_keys_typed_into_an_answer_are_chosen_with_a_file_and_at_a_service(
    here: tuple[str, str], live_server: str, tmp_path: Path
) -> None:
    answered = tmp_path / "answered.csv"
    match(write_rows(tmp_path / "places.csv"), "--output", answered, *here)
    header, *rows = csv.reader(answered.read_text().splitlines())
    for row, key in ((1, "10010002"), (4, "010010003"), (2, "x")):
        rows[row][header.index("match_cvegeo")] = key
    write_rows(answered, [header, *rows])
    for place in (here, ("--url", live_server)):
        output = tmp_path / f"{place[0]}.csv"
        ended = match(answered, "--output", output, *place)
        again = read_rows(output)
        assert [row["match_outcome"] for row in again] == ["exact", "chosen", "sure", "problem", "chosen"]
        assert [again[at]["match_cvegeo"] for at in (1, 4)] == ["010010002", "010010003"]
        assert again[2]["match_problem"] == "`x` is not the key of such a place: it was left out."
        assert "1 exact, 1 sure, 0 ambiguous, 0 none, 1 problem, 2 chosen\n" in ended.stderr


# -- Refusals


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("a.csv", b"nombre\n" + b"x\n" * 600 + b'"open', "A quote in line 602 is never closed: "),
        ("a.json", b"[]", 'The JSON does not begin with {"rows": [: '),
        ("a.xlsx", b"PK\x03\x04", "The workbook can't be read: "),
        ("a.csv.gz", b"\x1f\x8b\x08", "Invalid value: the name of "),
        ("a.xls", b"nombre\nx\n", "Invalid value: the name of a.xls must end in one of .csv, .tsv, .txt, .ndj"),
    ],
)
def test_unreadable_file_is_explained_without_output(
    here: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, content: bytes, sentence: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path(name).write_bytes(content)
    ended = invoke("match", name, *here, COLUMNS="400")
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr.splitlines()[-1].startswith(f"error: {sentence}")
    assert (": it is text, so name it .csv" in ended.stderr) == (name == "a.xls")
    assert [path.name for path in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["nowhere.csv"], "there is no file nowhere.csv"),
        (["."], "there is no file ;"),
        (["places.csv", "--output", "places.csv", "--force"], "the file and --output are the same"),
        (["places.csv", "--output", "no/where.csv"], "there is no folder no"),
        (["places.csv", "--output", "other.csv"], "other.csv exists: add --force to replace it"),
        (["places.csv", "--output", "/dev/null", "--force"], "/dev/null is not a regular file: use --output - and"),
        (["places.csv", "--fields", "nombre,cvemun"], "'--fields': Did you mean `cve_mun`? This parameter takes, se"),
        (["places.csv", "--nombre", "Nombre"], "not have the header that was named for `nombre`"),
        (["places.csv", "--municipio", "Municipo"], "and no municipio has this name."),
        (["places.csv", "--sure", "1"], "'--sure': Input should be less than or equal to 0.999; see"),
    ],
)
def test_nonsensical_arguments_change_nothing(
    here: tuple[str, str], places: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], sentence: str
) -> None:
    other = places.with_name("other.csv")
    other.write_bytes(before := b"folio,nota\n1,x")
    monkeypatch.chdir(places.parent)
    ended = invoke("match", *arguments, *here)
    assert ended.returncode == 2
    assert sentence in ended.stderr.splitlines()[-1]
    assert other.read_bytes() == before
    assert sorted(path.name for path in places.parent.iterdir()) == ["other.csv", "places.csv"]


def test_output_is_replaced_with_force_only(here: tuple[str, str], places: Path, tmp_path: Path) -> None:
    output = places.with_name("places.matched.csv")
    output.write_text("old")
    assert invoke("match", str(places), *here).returncode == 2
    assert output.read_text() == "old"
    output.chmod(0o600)
    match(places, *here, "--force")
    assert (len(read_rows(output)), output.stat().st_mode & 0o777) == (5, 0o600)
    assert {path.name for path in places.parent.iterdir()} == {output.name, places.name}
    target, link = tmp_path / "answers.csv", tmp_path / "link.csv"
    link.symlink_to(target)
    match(places, *here, "--output", link)
    assert (link.is_symlink(), len(read_rows(target))) == (True, 5)


def test_broken_pipe_ends_the_command(here: tuple[str, str], long_file: Path) -> None:
    reading, writing = os.pipe()
    with os.fdopen(reading) as answers, tempfile.TemporaryFile() as stderr:
        words = ("match", str(long_file), *here, "--output", "-")
        process = start_command(*words, env=environment(), stdout=writing, stderr=stderr.fileno())
        os.close(writing)
        assert answers.readline().startswith("folio,nombre,municipio,match_outcome")
        answers.close()
        assert process.wait(PATIENCE) == 141
        stderr.seek(0)
        assert b"error" not in stderr.read()


@pytest.mark.tail
def test_full_disk_leaves_no_file(here: tuple[str, str], long_file: Path, tmp_path: Path) -> None:
    output = tmp_path / "out.csv"
    limited = ("sh", "-c", 'ulimit -f 1000; exec "$@"', "sh", *COMMAND)  # blocks
    ended = run("match", str(long_file), *here, "--output", str(output), env=environment(), command=limited)
    assert ended.returncode == 74, ended.stderr
    assert ended.stderr.splitlines()[-1] == f"error: {output} can't be written (File too large)."
    assert list(tmp_path.iterdir()) == []


# -- A running service


def test_service_is_sent_the_rows_of_the_sheet_and_the_header_that_are_named(live_server: str, tmp_path: Path) -> None:
    source = write_rows(tmp_path / "places.xlsx", [["nombre"], ["nombre"], ["Nadie"]])
    with answering(then=live_server) as (address, asked):
        match(source, "--sheet", "Lugares", "--header-row", "2", "--url", address)
    assert [json.loads(line) for request in asked for line in request.body.splitlines()] == [{"nombre": "Nadie"}]


@pytest.mark.parametrize(
    ("areas", "code"), [("Municipo", 2), ("Municpio 001", 2), ("Localida", 2), ("Mpio", 0), ("Municipio 001", 0)]
)
def test_municipio_of_all_rows_is_one_of_the_service(
    here: tuple[str, str], live_server: str, tmp_path: Path, areas: str, code: int
) -> None:
    """The service says of an unknown one what the command says without it."""
    source = write_rows(tmp_path / "places.csv", [("Localidad", "Mpio.", "x"), ("Ninguno", "Municipio 001", "secret")])
    file, service = [
        invoke("match", str(source), "--municipio", areas, "--force", *place)
        for place in (here, ("--url", live_server))
    ]
    assert (file.returncode, service.returncode) == (code, code)
    assert code == 0 or file.stderr.splitlines()[-1] == service.stderr.splitlines()[-1]


def test_service_is_asked_for_one_release_throughout(live_server: str, tmp_path: Path) -> None:
    """The service may publish another between two requests."""
    rows = write_rows(tmp_path / "rows.csv", [("nombre",), *[("Nada como esto",)] * 1001])
    with answering(then=live_server) as (address, asked):
        match(rows, "--url", address)
    assert [request.target.partition("?")[2] for request in asked] == ["", "release=2020-01", "release=2020-01"]


def test_busy_or_broken_service_is_retried(live_server: str, places: Path) -> None:
    cut = Response(b'{"row":1,', headers={"Content-Length": "500", "Connection": "close"})
    busy = Response(status=503, headers={"Retry-After": "0"})
    with answering(busy, cut, busy, then=live_server) as (address, asked):
        ended = run("match", str(places), "--url", address.replace("//", "//someone:s3cr3t@"))
    assert [row["match_outcome"] for row in read_rows(places.with_name("places.matched.csv"))] == OUTCOMES
    assert len(asked) == 4
    assert ended.stderr.count(f"{address} answers 503: trying again for up to 300 seconds") == 1
    assert b"folio" not in asked[-1].body


ANOTHER = "The service's answers do not match the API's schema: check --url."
ANSWER = (
    b'{"row":1,"sent":{},"outcome":"none","cvegeo":null,"id":null,"label":null,"score":"0","margin":null,"faults":[],'
    b'"candidates":[],"withdrawn":null,"problem":null}\n'
)


@pytest.mark.parametrize(
    ("service", "sentence"),
    [
        (
            "http://127.0.0.1:1",
            "http://127.0.0.1:1 can't be reached: [Errno 111] Connection refused; check --url, or name INEGI's file"
            " with --catalogue.",
        ),
        ("http://127.0.0.1:port", "--url must be the root address of a service, such as http://127.0.0.1:8000."),
        (Response(status=404), "The service answers 404: check --url and the service's log."),
        (Response(ANSWER * 5), ANOTHER),
        (Response(b"hello\n" * 5), ANOTHER),
    ],
    ids=["away", "no address", "missing", "another type", "no JSON"],
)
def test_service_that_cannot_be_used_is_explained(places: Path, service: str | Response, sentence: str) -> None:
    with ExitStack() as stack:
        address = service if isinstance(service, str) else stack.enter_context(answering(service))[0]
        ended = invoke("match", str(places), "--url", address)
    assert (ended.returncode, ended.stderr.splitlines()[-1]) == (1, f"error: {sentence}")
    assert not places.with_name("places.matched.csv").exists()


def test_service_without_the_release_says_so(live_server: str, places: Path) -> None:
    ended = invoke("match", str(places), "--url", live_server, "--release", "1999-01")
    assert (ended.returncode, ended.stderr.splitlines()[-1]) == (1, "error: There is no such release.")
    assert [*places.parent.iterdir()] == [places]


def test_service_on_this_machine_is_asked_by_default(places: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("localidades_api.cli.commands._SERVICE", "http://127.0.0.1:1")
    assert "http://127.0.0.1:1 can't be reached" in invoke("match", str(places)).stderr
