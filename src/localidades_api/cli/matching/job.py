"""The options of a match: paths, columns, and whether to resume an earlier run."""

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import typer

from localidades_api.bulk.readers import MediaType
from localidades_api.importer.file_kinds import START, describe_kind
from localidades_api.names.certainty import SURE

STDIO = "-"
# Answers to a JSON document are NDJSON: half of a document can't be resumed.
FORMATS: Mapping[str, MediaType] = {
    ".csv": "text/csv",
    ".tsv": "text/csv",
    ".txt": "text/csv",
    ".ndjson": "application/x-ndjson",
    ".jsonl": "application/x-ndjson",
    ".json": "application/json",
}


@dataclass(frozen=True, slots=True)
class MatchJob:
    """What is to be read and written: paths, or `-` for stdin and stdout; `named` has the columns by role."""

    source: str
    output: str
    named: Mapping[str, str]
    resume: bool = False
    force: bool = False
    sure: float = SURE

    @property
    def media_type(self) -> MediaType:
        """The format of the source."""
        return "text/csv" if is_stream(self.source) else FORMATS[Path(self.source).suffix.lower()]

    def command(self, *more: str) -> str:
        """Return the command that resumes this one, for a shell."""
        columns = [word for role, header in self.named.items() for word in (f"--{role}", header)]
        sure = () if self.sure == SURE else ("--sure", f"{self.sure:g}")
        words = ("localidades-api", "match", self.source, "--output", self.output, *columns, *sure, *more, "--resume")
        return shlex.join(words)


def is_stream(source: str) -> bool:
    """Return whether a source is stdin or a pipe, such as a shell's `<(...)`: CSV without a name of its own."""
    return source == STDIO or Path(source).is_fifo()


def default_output(source: str) -> str:
    """Return the path of the answers to a file: `places.matched.csv` beside `places.csv`."""
    if is_stream(source):
        return STDIO
    path = Path(source)
    suffix = ".ndjson" if path.suffix.lower() == ".json" else path.suffix
    return str(path.with_name(f"{path.stem}.matched{suffix}"))


def check(job: MatchJob) -> None:
    """Raise typer.BadParameter for what would fail, or replace a file, after a long time."""
    if job.resume and job.force:
        raise typer.BadParameter("--resume continues the output, --force replaces it: choose one")
    if job.output != STDIO:
        _check_output(job, Path(job.output))


def check_source(source: str) -> None:
    """Raise typer.BadParameter for a source that is no file of rows."""
    if is_stream(source):
        return
    path = Path(source)
    if not source:
        raise typer.BadParameter("the path of the file is empty")
    if path.is_dir():
        raise typer.BadParameter(f"{source} is a folder: give a file in it")
    if not path.is_file():
        raise typer.BadParameter(f"there is no file {source}")
    if path.suffix.lower() not in FORMATS:
        with path.open("rb") as file:
            kind = describe_kind(file.read(START))
        remedy = f": it is {kind}" if kind else ""
        raise typer.BadParameter(f"the name of {source} must end in one of {', '.join(FORMATS)}{remedy}")


def _check_output(job: MatchJob, output: Path) -> None:
    if not output.parent.is_dir():
        raise typer.BadParameter(f"there is no folder {output.parent}")
    if output.exists():
        if job.source != STDIO and output.samefile(job.source):
            raise typer.BadParameter("the file and --output are the same")
        if not (job.resume or job.force):
            raise typer.BadParameter(f"{output} exists: add --resume to continue it, or --force to replace it")
