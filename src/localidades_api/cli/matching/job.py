"""The options of a match: paths, columns, and whether to resume an earlier run."""

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import typer

from localidades_api.bulk.reading import MediaType
from localidades_api.search.certainty import SURE

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
        return "text/csv" if self.source == STDIO else FORMATS[Path(self.source).suffix.lower()]

    def command(self, *more: str) -> str:
        """Return the command that resumes this one, for a shell."""
        columns = [word for role, header in self.named.items() for word in (f"--{role}", header)]
        sure = () if self.sure == SURE else ("--sure", f"{self.sure:g}")
        words = ("localidades-api", "match", self.source, "--output", self.output, *columns, *sure, *more, "--resume")
        return shlex.join(words)


def default_output(source: str) -> str:
    """Return the path of the answers to a file: `places.matched.csv` beside `places.csv`."""
    if source == STDIO:
        return STDIO
    path = Path(source)
    suffix = ".ndjson" if path.suffix.lower() == ".json" else path.suffix
    return str(path.with_name(f"{path.stem}.matched{suffix}"))


def check(job: MatchJob) -> None:
    """Raise typer.BadParameter for what would fail, or replace a file, after a long time."""
    if job.source != STDIO:
        if not Path(job.source).is_file():
            raise typer.BadParameter(f"there is no file {job.source}")
        if Path(job.source).suffix.lower() not in FORMATS:
            raise typer.BadParameter(f"the name of {job.source} must end in one of {', '.join(FORMATS)}")
    if job.resume and job.force:
        raise typer.BadParameter("--resume continues the output, --force replaces it: choose one")
    if job.output != STDIO:
        _check_output(job, Path(job.output))


def _check_output(job: MatchJob, output: Path) -> None:
    if not output.parent.is_dir():
        raise typer.BadParameter(f"there is no folder {output.parent}")
    if output.exists():
        if job.source != STDIO and output.samefile(job.source):
            raise typer.BadParameter("the file and --output are the same")
        if not (job.resume or job.force):
            raise typer.BadParameter(f"{output} exists: add --resume to continue it, or --force to replace it")
