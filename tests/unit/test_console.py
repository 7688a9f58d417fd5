"""The output of commands: reports, errors, tables, JSON and progress."""

import io
import json
from dataclasses import replace

import pytest
import typer
from rich.table import Table

from localidades_api.cli.console import print_json, print_table, print_text
from localidades_api.cli.exit_codes import errors_as_sentences
from localidades_api.cli.import_catalogue import print_report, report_as_object
from localidades_api.errors import (
    AlreadyPublishedError,
    CatalogueError,
    InsufficientMemoryError,
    OutputError,
    ReaderGoneError,
    UnreadableBodyError,
)
from localidades_api.importer.run import ImportReport
from localidades_api.importer.transform import Rejected
from localidades_api.observability import progress_display
from localidades_api.observability.progress import ImportStep
from localidades_api.observability.progress_display import StderrConsole, show_progress
from localidades_api.releases.comparison import Comparison

REPORT = ImportReport(
    release="2020-01", states=32, municipalities=2469, localities=304_400, withdrawn=1234,
    rejected=[Rejected(number, "no [bold]key[/bold]") for number in range(22)],
    comparison=Comparison("2019-01", 1000, 20, 3, 4, 5), demo_retired=True,
    losses="Much is missing.", seconds=12.345,
)  # fmt: skip


def test_report_has_all_that_an_import_did(capsys: pytest.CaptureFixture[str]) -> None:
    print_report(REPORT)
    assert capsys.readouterr().err.splitlines() == [
        "published release 2020-01 in 12.3 s: 304,400 localities in 2,469 municipios, 32 estados",
        "compared with 2019-01: 1,000 added, 20 removed, 3 renamed, 4 relocated, 5 updated",
        "Much is missing.",
        "the demo is retired because its places are invented; --keep-demo keeps it",
        "22 rows rejected, 1,234 withdrawn localities left out",
        *(f"  line {number}: no [bold]key[/bold]" for number in range(20)),
        "  and 2 more",
    ]


def test_report_of_a_dry_run_says_what_would_be_done(capsys: pytest.CaptureFixture[str]) -> None:
    nothing = replace(REPORT, losses=None, rejected=[], comparison=Comparison(None))
    print_report(nothing, dry_run=True)
    assert capsys.readouterr().err.splitlines() == [
        "would publish release 2020-01 in 12.3 s: 304,400 localities in 2,469 municipios, 32 estados",
        "the demo would be retired because its places are invented; --keep-demo keeps it",
        "0 rows rejected, 1,234 withdrawn localities left out",
    ]


def test_report_as_an_object_has_every_rejected_row() -> None:
    reported = report_as_object(REPORT, dry_run=False)
    assert reported == {
        "release": "2020-01", "published": True, "seconds": 12.345,
        "totals": {"estados": 32, "municipios": 2469, "localidades": 304_400}, "compared_with": "2019-01",
        "changes": {"added": 1000, "removed": 20, "renamed": 3, "relocated": 4, "updated": 5},
        "losses": "Much is missing.", "demo_retired": True, "withdrawn": 1234,
        "rejected": [{"line": number, "reason": "no [bold]key[/bold]"} for number in range(22)],
    }  # fmt: skip
    first = report_as_object(replace(REPORT, comparison=Comparison(None)), dry_run=True)
    assert (first["published"], first["compared_with"], first["changes"]) == (False, None, None)


def test_output_is_written_as_it_is(capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    print_text("ñ [bold]")
    print_json({"ñ": [1]})
    print_json({"ñ": [1]}, indent=2)
    table = Table("", "source", box=None, pad_edge=False)
    table.add_row("*", "x" * 150)
    print_table(table)
    written, said = capsysbinary.readouterr()
    text = f'ñ [bold]\n{{"ñ": [1]}}\n{json.dumps({"ñ": [1]}, indent=2, ensure_ascii=False)}\n'
    *head, above, row = written.decode().splitlines(keepends=True)
    assert ("".join(head), above.rstrip(), row, said) == (text, "   source", f"*  {'x' * 150}\n", b"")


@pytest.mark.parametrize(
    ("error", "code", "sentence"),
    [
        (CatalogueError("[bold] a\n\tb \x1b[31m"), 1, "error: [bold] a b \\x1b[31m\n"),
        (UnreadableBodyError("A row."), 2, "error: A row.\n"),
        (AlreadyPublishedError("2020-01", "do."), 3, "This very file is already published, as release 2020-01: do.\n"),
        (OutputError("The disk."), 74, "error: The disk.\n"),
        (ReaderGoneError("It has gone."), 141, ""),
        (KeyboardInterrupt(), 130, ""),
        (MemoryError(), 1, f"error: {InsufficientMemoryError()}\n"),
        (PermissionError(13, "Refused", "/x"), 1, "error: The system reports an error: Refused, /x.\n"),
        (OSError(13, "Refused"), 1, "error: The system reports an error: Refused.\n"),
    ],
)
def test_error_ends_a_command_with_its_code_and_sentence(
    capsys: pytest.CaptureFixture[str], error: BaseException, code: int, sentence: str
) -> None:
    with pytest.raises(typer.Exit) as ended, errors_as_sentences():
        raise error
    assert (ended.value.exit_code, capsys.readouterr().err) == (code, sentence)


# -- Progress


def test_progress_is_a_line_for_each_step_without_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    file = io.StringIO()
    monkeypatch.setattr(progress_display, "console", StderrConsole(file=file, highlight=False, soft_wrap=True))
    with show_progress() as progress:
        for step in (ImportStep.FETCH, ImportStep.READ):
            progress.begin(step)
            progress.expect(2_000_000)
            progress.advance(3)
    assert file.getvalue() == "fetching the file\nreading rows\n"
