"""The command `match` on files of rows: output, refusals, and interrupted runs."""

import csv
import json
import os
import signal
import subprocess
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread

import httpx
import openpyxl
import pytest

from localidades_api.catalogue.columns import MATCHED
from tests.support.commands import invoke
from tests.support.http_server import Request, Response, http_server
from tests.support.machine import free_port
from tests.support.postgres import out_of_reach
from tests.support.waiting import PATIENCE, eventually
from tests.support.wire import COMMAND, NULL, ROOT, Process, environment, run, start_command

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


def write_rows(path: Path, rows: Iterable[Iterable[object]] = ROWS, delimiter: str = ",") -> Path:
    """Write a CSV file."""
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, delimiter=delimiter).writerows(rows)
    return path


def read_rows_of(path: Path) -> list[dict[str, str]]:
    """Read a CSV file."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file))


def match(url: str, *arguments: object, **settings: str) -> subprocess.CompletedProcess[str]:
    return run("match", *map(str, arguments), env=environment(url, COLUMNS="200", **settings))


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


def test_csv_gets_answer_columns(seeded: str, places: Path) -> None:
    ended = match(seeded, places)
    assert (ended.returncode, ended.stdout) == (0, "")
    found = read_rows_of(places.with_name("places.matched.csv"))
    assert [row["match_outcome"] for row in found] == OUTCOMES
    assert [tuple(row.values())[:4] for row in found] == list(ROWS[1:])
    assert found[0]["match_cvegeo"] == "010010001"
    assert found[0]["match_label"] == "Aguascalientes, Municipio 001, Aguascalientes"
    assert "010010002 Ninguno (0002), Municipio 001, Aguascalientes (49.9) | 0100" in found[1]["match_candidates"]
    assert found[3]["match_problem"] == "Its `nombre` is empty, and it has no key to go by."
    assert "matched 5 rows in " in ended.stderr
    assert "  1 exact, 1 sure, 1 ambiguous, 1 none, 1 problem\n" in ended.stderr
    assert ended.stderr.endswith("places.matched.csv\n")


def test_named_pipe_is_answered_on_stdout(seeded: str, places: Path) -> None:
    pipe = places.with_name("pipe")
    os.mkfifo(pipe)
    writing = Thread(target=pipe.write_bytes, args=(places.read_bytes(),))
    writing.start()
    ended = invoke("match", str(pipe), url=seeded)
    writing.join()
    assert (ended.returncode, len(ended.stdout.splitlines())) == (0, len(places.read_text().splitlines())), ended.stderr
    assert sorted(path.name for path in places.parent.iterdir()) == ["pipe", places.name]


def test_stdin_is_answered_on_stdout(seeded: str, places: Path) -> None:
    with places.open() as stdin, tempfile.TemporaryFile() as stdout, NULL.open("w") as stderr:
        streams = (stdin.fileno(), stdout.fileno(), stderr.fileno())
        assert start_command("match", "-", streams=streams, env=environment(seeded)).wait(PATIENCE) == 0
        stdout.seek(0)
        answered = stdout.read()
    match(seeded, places)
    assert answered == places.with_name("places.matched.csv").read_bytes()


@pytest.mark.parametrize(("suffix", "output"), [(".jsonl", ".jsonl"), (".json", ".ndjson")])
def test_objects_are_answered_as_lines(seeded: str, tmp_path: Path, suffix: str, output: str) -> None:
    rows = [{"nombre": "Aguascalientes", "folio": 7}, {"cvegeo": 10010001}, 5]
    lines = "".join(f"{json.dumps(row)}\n" for row in rows)
    source = tmp_path / f"places{suffix}"
    source.write_text(json.dumps({"rows": rows}) if suffix == ".json" else lines)
    assert match(seeded, source).returncode == 0
    written = (tmp_path / f"places.matched{output}").read_text()
    assert match(seeded, source, "--output", "-").stdout == written
    answers = [json.loads(line) for line in written.splitlines()]
    assert [(one["sent"], one["cvegeo"]) for one in answers] == [
        (rows[0], "010010001"),
        (rows[1], "010010001"),
        (5, None),
    ]


def write_workbook(path: Path) -> Path:
    workbook = openpyxl.Workbook()
    workbook.worksheets[0].append(["Notas"])
    sheet = workbook.create_sheet("Lugares")
    for row in ROWS:
        sheet.append([*row])
    workbook.save(path)
    return path


def test_workbook_gets_answer_columns(seeded: str, tmp_path: Path) -> None:
    source, output = write_workbook(tmp_path / "places.xlsx"), tmp_path / "found.xlsx"
    ended = match(seeded, source, "--sheet", "Lugares", "--output", output)
    assert (ended.returncode, ended.stdout) == (0, ""), ended.stderr
    answered = openpyxl.load_workbook(output)
    header, *rows = answered["Lugares"].iter_rows(values_only=True)
    found = [dict(zip(header, row, strict=True)) for row in rows]
    assert [row["match_outcome"] for row in found] == OUTCOMES
    assert (found[0]["match_cvegeo"], answered["Sheet"]["A1"].value) == ("010010001", "Notas")
    assert "\n  read the sheet “Lugares”, header in row 1\n" in ended.stderr


def test_extension_of_the_output_decides_its_format(seeded: str, tmp_path: Path, places: Path) -> None:
    source = write_workbook(tmp_path / "places.xlsx")
    match(seeded, source, "--sheet", "Lugares", "--output", tmp_path / "found.csv")
    assert [row["match_outcome"] for row in read_rows_of(tmp_path / "found.csv")] == OUTCOMES
    match(seeded, places, "--output", tmp_path / "found.XLSX")
    assert openpyxl.load_workbook(tmp_path / "found.XLSX").worksheets[0].max_row == len(ROWS)
    objects = tmp_path / "places.ndjson"
    objects.write_text(json.dumps({"Localidad": "AGUASCALIENTES", "Municipio": "Municipio 001", "Entidad": "Ags."}))
    for sent in (source, places, objects):
        sheet = ("--sheet", "Lugares") if sent is source else ()
        answered = {}
        for suffix in (".json", ".jsonl", ".tsv", ".xlsx"):
            answered[suffix] = tmp_path / f"{sent.suffix[1:]}{suffix}"
            ended = match(seeded, sent, *sheet, "--output", answered[suffix])
            assert ended.returncode == 0, ended.stderr
        [first, *_] = json.loads(answered[".json"].read_text())["results"]
        assert first == json.loads(answered[".jsonl"].read_text().splitlines()[0])
        assert (first["cvegeo"], first["sent"]["Localidad"]) == ("010010001", "AGUASCALIENTES")
        assert "match_cvegeo" in answered[".tsv"].read_text().splitlines()[0]
        assert openpyxl.load_workbook(answered[".xlsx"]).worksheets[-1].max_row >= 2


def test_columns_can_be_named(seeded: str, tmp_path: Path) -> None:
    source = write_rows(tmp_path / "a.tsv", [("nombre", "Lugar de origen"), ("Ana", "Aguascalientes")], delimiter="\t")
    more = ("--output", tmp_path / "b.tsv", "--release", "2020-01", "--sure", "0.9")  # it has no estado
    ended = match(seeded, source, "--nombre", "Lugar de origen", *more)
    assert ended.returncode == 0
    assert (tmp_path / "b.tsv").read_text().splitlines()[1].startswith("Ana\tAguascalientes\texact\t010010001\t")


DOUBTFUL = [("Localidad", "Municipio", "Entidad"), ("Rancho El Gero", "Municipio 001", "Ags.")]


@pytest.mark.parametrize(("options", "outcome"), [((), "ambiguous"), (("--sure", "0.9"), "sure")])
def test_certainty_option_applies_locally_and_at_a_service(
    seeded: str, live_server: str, tmp_path: Path, options: tuple[str, ...], outcome: str
) -> None:
    source = str(write_rows(tmp_path / "places.csv", DOUBTFUL))
    for to, url, place in (("here", seeded, ()), ("there", None, ("--url", live_server))):
        ended = invoke("match", source, "--output", str(tmp_path / f"{to}.csv"), *options, *place, url=url)
        assert ended.returncode == 0, ended.stderr
    [row] = read_rows_of(tmp_path / "here.csv")
    assert (row["match_outcome"], row["match_cvegeo"]) == (outcome, "010010009" if outcome == "sure" else "")
    assert (tmp_path / "there.csv").read_bytes() == (tmp_path / "here.csv").read_bytes()


def test_language_option_applies_locally_and_at_a_service(
    seeded: str, live_server: str, places: Path, tmp_path: Path
) -> None:
    for to, url, place in (("here", seeded, ()), ("there", None, ("--url", live_server))):
        ended = invoke("match", str(places), "--lang", "es", "--output", str(tmp_path / f"{to}.csv"), *place, url=url)
        assert ended.returncode == 0, ended.stderr
    found = read_rows_of(tmp_path / "here.csv")
    assert [row["Resultado"] for row in found] == [
        "idéntica",
        "por decidir",
        "con diferencias menores",
        "ilegible",
        "no encontrada",
    ]
    assert found[2]["Diferencias"].startswith("ortografía: aguascalintes → aguascalientes (-")
    assert found[3]["Observación"] == "La fila no tiene “nombre” ni clave."
    assert (tmp_path / "there.csv").read_bytes() == (tmp_path / "here.csv").read_bytes()


@pytest.mark.parametrize(
    ("suffix", "fields", "added"),
    [
        (".csv", (), {"nombre": "Aguascalientes", "municipio": "Municipio 001", "estado": "Aguascalientes"}),
        (".csv", ("--fields", "altitud,clave,ambito"), {"clave": "0001", "ambito": "U", "altitud": "1885"}),
        (".jsonl", ("--fields", "altitud,clave,ambito"), dict.fromkeys(("clave", "ambito", "altitud"))),
        (".xlsx", ("--fields", ",".join(MATCHED), "--sure", "0.9"), dict.fromkeys(MATCHED)),
    ],
)
def test_fields_are_the_same_locally_and_at_a_service(
    seeded: str, live_server: str, tmp_path: Path, suffix: str, fields: tuple[str, ...], added: dict[str, str | None]
) -> None:
    source, rows = tmp_path / f"places{suffix}", [dict(zip(ROWS[0], row, strict=True)) for row in ROWS[1:]]
    if suffix == ".xlsx":
        write_workbook(source)
    elif suffix == ".csv":
        write_rows(source)
    else:
        source.write_text("".join(f"{json.dumps(row)}\n" for row in [*rows, 5]))
    outputs = []
    for to, url, place in (("here", seeded, ()), ("there", None, ("--url", live_server))):
        outputs.append(tmp_path / f"{to}{suffix}")
        ended = invoke("match", str(source), "--output", str(outputs[-1]), *fields, *place, url=url)
        assert ended.returncode == 0, ended.stderr
    here, there = outputs
    if suffix == ".xlsx":
        assert values_of(here) == values_of(there)
        assert {f"match_{name}" for name in added} < set(values_of(here)[0])
    elif suffix == ".csv":
        assert there.read_bytes() == here.read_bytes()
        found = read_rows_of(here)
        assert [*found[0]][6 : 7 + len(added) + 1] == [
            "match_label",
            *(f"match_{name}" for name in added),
            "match_score",
        ]
        assert {name: found[0][f"match_{name}"] for name, value in added.items() if value} == {
            name: value for name, value in added.items() if value
        }
    else:
        answers, others = [[json.loads(line) for line in one.read_text().splitlines()] for one in outputs]
        assert answers == others
        assert [list(one) for one in answers] == [list(one) for one in others]
        for one in (*answers, *answers[1]["candidates"]):
            assert [name for name in one if name in MATCHED] == list(added)


def values_of(path: Path) -> list[tuple[object, ...]]:
    workbook = openpyxl.load_workbook(path)
    try:
        return list(workbook["Lugares"].iter_rows(values_only=True))
    finally:
        workbook.close()


@pytest.mark.parametrize("sure", ["1", "0.5", "x"])
def test_certainty_out_of_range_is_refused_by_name(places: Path, sure: str) -> None:
    ended = invoke("match", str(places), "--sure", sure)
    assert ended.returncode == 2
    assert "'--sure'" in ended.stderr
    assert not places.with_name("places.matched.csv").exists()


# -- Refusals


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        (
            "a.csv",
            b"Ana,27\n",
            "The first line names no column for `nombre`, or `cvegeo`, or `clave`, or `municipio`, or `estado`: begin ",
        ),
        ("a.csv", b"nombre\n" + b"x\n" * 600 + b'"open', "A quote in line 602 is never closed: "),
        ("a.json", b"[]", 'The JSON does not begin with {"rows": [: '),
        ("a.xlsx", b"", "The file is empty: "),
        ("a.xlsx", b"PK\x03\x04", "The workbook can't be read: "),
        ("a.ods", b"", "Invalid value: the name of "),
        ("a.csv.gz", b"\x1f\x8b\x08", "Invalid value: the name of "),
        *(
            pytest.param("a.csv", content, sentence, marks=pytest.mark.tail)
            for content, sentence in (
                (b"", "The file is empty: "),
                ("nombre\nx\n".encode("utf-16"), "The file is UTF-16: "),
                (b"PK\x03\x04\0\0", "The workbook can't be read: "),
                (b"nombre\n" + b"x" * 2**21, "A line is longer than 1 MB: "),
                (b'nombre\n"x\n', "A quote in line 2 is never closed: "),
            )
        ),
    ],
)
def test_unreadable_file_is_explained_without_output(
    seeded: str, tmp_path: Path, name: str, content: bytes, sentence: str
) -> None:
    (tmp_path / name).write_bytes(content)
    ended = invoke("match", str(tmp_path / name), url=seeded)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr.splitlines()[-1].startswith(f"error: {sentence}")
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_file_of_another_name_is_named_by_its_content(tmp_path: Path) -> None:
    workbook = write_workbook(tmp_path / "places.xlsx").rename(tmp_path / "places.xls")
    for path, hint in (
        (write_rows(tmp_path / "a.xls"), "text, so name it .csv"),
        (workbook, "an Excel workbook: name it .xlsx"),
    ):
        ended = invoke("match", str(path), COLUMNS="400")
        assert ended.returncode == 2
        assert f": it is {hint}" in ended.stderr


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("nowhere.csv",), "there is no file nowhere.csv"),
        (("",), "the path of the file is empty"),
        ((".",), ". is a folder: give a file in it"),
        (("places.csv", "--output", "places.csv", "--force"), "the file and --output are the same"),
        (("places.csv", "--output", "no/where.csv"), "there is no folder no"),
        (("places.csv", "--output", "other.csv"), "other.csv exists: add --force to replace it"),
        (("places.csv", "--output", "/dev/null", "--force"), "/dev/null is not a regular file: use --output - and"),
        *(
            (
                ("places.csv", "--output", name),
                f"the name of {name} must end in one of .csv, .tsv, .txt, .ndjson, .jsonl, .json, .xlsx; see",
            )
            for name in ("found.xls", "found.ods", "found", "found.csv.gz", ".csv")
        ),
        (
            ("places.csv", "--fields", "nombre,cvemun"),
            "--fields: Did you mean `cve_mun`? This parameter takes, separated by",
        ),
        (
            ("places.csv", "--fields", ""),
            "--fields: This parameter takes, separated by commas: nombre, municipio, estado,",
        ),
        (("places.csv", "--nombre", "Nombre"), "not have the header that was named for `nombre`"),
    ],
)
def test_nonsensical_arguments_change_nothing(
    seeded: str, places: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], sentence: str
) -> None:
    other = places.with_name("other.csv")
    other.write_bytes(before := b"folio,nota\n1,x")
    monkeypatch.chdir(places.parent)
    ended = invoke("match", *arguments, url=seeded)
    assert ended.returncode == 2
    assert sentence in ended.stderr.splitlines()[-1]
    assert other.read_bytes() == before
    assert sorted(path.name for path in places.parent.iterdir()) == ["other.csv", "places.csv"]


def test_unknown_release_is_refused(seeded: str, places: Path) -> None:
    ended = match(seeded, places, "--release", "1999-01")
    assert (ended.returncode, ended.stderr.splitlines()[-1]) == (1, "error: There is no such release.")


def test_unreachable_database_is_explained(server: str, seeded_database: str, places: Path) -> None:
    with out_of_reach(server, seeded_database):
        ended = match(seeded_database, places)
    assert ended.returncode == 1
    assert ended.stderr.splitlines()[-1].startswith("error: ")
    assert not places.with_name("places.matched.csv").exists()


def test_output_is_replaced_with_force_only(seeded: str, places: Path) -> None:
    output = places.with_name("places.matched.csv")
    output.write_text("old")
    assert match(seeded, places).returncode == 2
    assert output.read_text() == "old"
    output.chmod(0o600)
    assert match(seeded, places, "--force").returncode == 0
    assert len(read_rows_of(output)) == 5
    assert output.stat().st_mode & 0o777 == 0o600
    assert {path.name for path in places.parent.iterdir()} == {output.name, places.name}


def test_symlinked_output_stays_a_symlink(seeded: str, places: Path, tmp_path: Path) -> None:
    target = tmp_path / "elsewhere" / "answers.csv"
    target.parent.mkdir()
    output = tmp_path / "link.csv"
    output.symlink_to(target)
    assert invoke("match", str(places), "--output", str(output), url=seeded).returncode == 0
    assert output.is_symlink()
    assert len(read_rows_of(target)) == 5


def test_broken_pipe_ends_the_command(seeded: str, long_file: Path) -> None:
    reading, writing = os.pipe()
    with os.fdopen(reading) as answers, tempfile.TemporaryFile() as stderr, NULL.open() as stdin:
        streams = (stdin.fileno(), writing, stderr.fileno())
        process = start_command("match", str(long_file), "--output", "-", streams=streams, env=environment(seeded))
        os.close(writing)
        assert answers.readline().startswith("folio,nombre,municipio,match_outcome")
        answers.close()
        assert process.wait(PATIENCE) == 141
        stderr.seek(0)
        assert b"error" not in stderr.read()


# -- Interrupted runs


@contextmanager
def matching(url: str, *arguments: object) -> Iterator[Process]:
    """Start the command; yield its process and kill it at the end."""
    with NULL.open("r+") as null:
        streams = (null.fileno(), null.fileno(), null.fileno())
        process = start_command("match", *map(str, arguments), streams=streams, env=environment(url))
        try:
            yield process
        finally:
            process.kill()
            process.wait()


def drafts_in(folder: Path) -> list[Path]:
    return list(folder.glob(".*.part"))


@pytest.mark.tail
@pytest.mark.parametrize("suffix", [".csv", ".xlsx"])
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_interrupted_run_leaves_no_file(
    seeded: str, long_file: Path, tmp_path: Path, suffix: str, number: signal.Signals, code: int
) -> None:
    with matching(seeded, long_file, "--output", tmp_path / f"out put{suffix}") as process:
        eventually(lambda: drafts_in(tmp_path))
        process.send_signal(number)
        assert process.wait(PATIENCE) == code
    assert list(tmp_path.iterdir()) == []


@pytest.mark.tail
def test_killed_run_leaves_the_old_file(seeded: str, long_file: Path, tmp_path: Path) -> None:
    output = tmp_path / "out.csv"
    output.write_text("old")
    with matching(seeded, long_file, "--output", output, "--force") as process:
        eventually(lambda: drafts_in(tmp_path))
        process.send_signal(signal.SIGKILL)
        assert process.wait(PATIENCE) == -9
    assert output.read_text() == "old"


@pytest.mark.tail
def test_full_disk_leaves_no_file(seeded: str, long_file: Path, tmp_path: Path) -> None:
    output = tmp_path / "out.csv"
    limited = ["sh", "-c", 'ulimit -f 1000; exec "$@"', "sh", *COMMAND, "match", str(long_file)]  # blocks
    ended = subprocess.run(
        [*limited, "--output", str(output)], env=environment(seeded), cwd=ROOT, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert ended.returncode == 74, ended.stderr
    assert ended.stderr.splitlines()[-1] == f"error: {output} can't be written (File too large)."
    assert list(tmp_path.iterdir()) == []


# -- A running service


def test_service_is_sent_the_rows_of_the_sheet_and_the_header_that_are_named(live_server: str, tmp_path: Path) -> None:
    book = openpyxl.Workbook()
    for name, place in (("Otros", "Asientos"), ("Lugares", "Nadie")):
        sheet = book.create_sheet(name)
        for cell in ("nombre", "nombre", place):
            sheet.append([cell])
    book.save(tmp_path / "places.xlsx")
    sent: list[bytes] = []

    def respond(request: Request) -> Response:
        sent.append(request.body)
        headers = {"Content-Type": "application/x-ndjson", "Accept": "application/x-ndjson"}
        return Response(httpx.post(f"{live_server}{request.target}", content=request.body, headers=headers).content)

    with http_server(respond) as address:
        arguments = (str(tmp_path / "places.xlsx"), "--sheet", "Lugares", "--header-row", "2")
        ended = invoke("match", *arguments, "--url", address)
    assert ended.returncode == 0, ended.stderr
    assert [json.loads(line) for body in sent for line in body.splitlines()] == [{"nombre": "Nadie"}]


def test_service_and_local_index_give_equal_answers(
    live_server: str, seeded: str, places: Path, tmp_path: Path
) -> None:
    assert match(seeded, places).returncode == 0
    ended = run("match", str(places), "--url", live_server, "--output", str(tmp_path / "remote.csv"))
    assert ended.returncode == 0, ended.stderr
    assert (tmp_path / "remote.csv").read_bytes() == places.with_name("places.matched.csv").read_bytes()
    assert "matched 5 rows in " in ended.stderr


@pytest.mark.parametrize(
    ("url", "code", "sentence"),
    [
        ("http://127.0.0.1:1", 1, "The service at http://127.0.0.1:1 does not answer: [Errno 111] Connection refused."),
        ("ftp://example.org", 1, "--url must be the root address of a service, such as http://127.0.0.1:8000."),
        pytest.param(
            "{live}/nowhere",
            1,
            "The service answers 404, so it has no such release or matches no rows: check --url.",
            marks=pytest.mark.tail,
        ),
    ],
)
def test_other_service_is_refused(live_server: str, places: Path, url: str, code: int, sentence: str) -> None:
    ended = invoke("match", str(places), "--url", url.format(live=live_server))
    assert (ended.returncode, ended.stderr.splitlines()[-1]) == (code, f"error: {sentence}")
    assert not places.with_name("places.matched.csv").exists()


@pytest.mark.tail
def test_busy_or_broken_service_is_retried(live_server: str, places: Path) -> None:
    asked: list[Request] = []

    def respond(request: Request) -> Response:
        asked.append(request)
        if len(asked) == 1:
            return Response(status=503, headers={"Retry-After": "0"})
        answer = httpx.post(
            f"{live_server}{request.target}", content=request.body, headers={"Content-Type": "application/x-ndjson"}
        )
        headers = {"Catalogue-Release": answer.headers["catalogue-release"]}
        if len(asked) == 2:
            return Response(answer.content[:50], headers={**headers, "Content-Length": str(len(answer.content))})
        return Response(answer.content, headers=headers)

    with http_server(respond) as address:
        ended = run("match", str(places), "--url", address)
    assert ended.returncode == 0, ended.stderr
    assert [row["match_outcome"] for row in read_rows_of(places.with_name("places.matched.csv"))] == OUTCOMES
    assert len(asked) == 3
    assert ended.stderr.count(f"waiting up to 5 minutes for {address}: it answers 503\n") == 1
    assert b"folio" not in asked[-1].body


def test_wait_for_a_service_is_said_once(places: Path) -> None:
    coming = iter([Response(status=502, headers={"Retry-After": "0"})] * 2 + [Response(status=500)])
    with http_server(lambda _: next(coming)) as address:
        ended = invoke("match", str(places), "--url", address.replace("//", "//someone:s3cr3t@"))
    assert ended.stderr.splitlines()[-2:] == [
        f"waiting up to 5 minutes for {address}: it answers 502",
        "error: The service answers 500: check --url and the service's log.",
    ]


@pytest.mark.parametrize("command", ["match", "verify"])
def test_proxy_that_cannot_be_used_is_named(small_catalogue: Path, places: Path, command: str) -> None:
    arguments = (command, str(places if command == "match" else small_catalogue), "--url")
    settings = {"ALL_PROXY": "socks://someone:s3cr3t@proxy.example:1080", "HTTP_PROXY": "", "NO_PROXY": ""}
    ended = invoke(*arguments, "http://catalogue.example", **settings)
    assert ended.stderr.splitlines()[-1].startswith("error: ALL_PROXY must be the address of a proxy")
    assert "s3cr3t" not in ended.stderr
    assert "Connection refused" in invoke(*arguments, f"http://127.0.0.1:{free_port()}", **settings).stderr


def test_service_is_asked_for_one_release_throughout(live_server: str, tmp_path: Path) -> None:
    """The service may publish another between two requests."""
    rows, asked = write_rows(tmp_path / "rows.csv", [("nombre",), *[("Nada como esto",)] * 1001]), []

    def respond(request: Request) -> Response:
        asked.append(request.target)
        headers = {"Content-Type": "application/x-ndjson", "Accept": "application/x-ndjson"}
        answer = httpx.post(f"{live_server}{request.target}", content=request.body, headers=headers)
        return Response(answer.content, headers={"Catalogue-Release": answer.headers["catalogue-release"]})

    with http_server(respond) as address:
        assert invoke("match", str(rows), "--url", address).returncode == 0
    assert [target.partition("?")[2] for target in asked] == ["", "release=2020-01"]


# Without the columns of the place, and without those of a candidate.
OLD_ANSWER = (
    b'{"row":1,"sent":{},"outcome":"none","cvegeo":null,"id":null,"label":null,"score":0,"margin":null,"faults":[],'
    b'"candidates":[],"withdrawn":null,"problem":null}\n'
)
OLD_CANDIDATE = OLD_ANSWER.replace(b'{"row"', b'{"nombre":null,"municipio":null,"estado":null,"row"').replace(
    b'[],"w', b'[{"cvegeo":"010010001","id":10010001,"label":"Uno","score":0,"faults":[]}],"w'
)


@pytest.mark.parametrize(
    ("response", "sentence"),
    [
        (Response(OLD_ANSWER * 5), "The service does not return columns of the place: it runs an older version."),
        (
            Response(OLD_ANSWER.replace(b"0,", b'"0",') * 5),
            "The service's answers do not match the API's schema: check --url.",
        ),
        (Response(OLD_CANDIDATE * 5), "The service does not return columns of the place: it runs an older version."),
        (Response(b"hello\n" * 5), "The service's answers do not match the API's schema: check --url."),
        *(
            pytest.param(response, sentence, marks=pytest.mark.tail)
            for response, sentence in (
                (
                    Response(b"x" * 1_000_000),
                    "The service's response is too long for this number of rows: check --url.",
                ),
                (Response(status=500), "The service answers 500: check --url and the service's log."),
                (
                    Response(status=301, headers={"Location": "/"}),
                    "The service answers 301: check --url and the service's log.",
                ),
            )
        ),
    ],
)
def test_unexpected_answer_of_a_service_is_explained(places: Path, response: Response, sentence: str) -> None:
    with http_server(lambda _: response) as address:
        ended = invoke("match", str(places), "--url", address)
    assert (ended.returncode, ended.stderr.splitlines()[-1]) == (1, f"error: {sentence}")
    assert not places.with_name("places.matched.csv").exists()
