"""Finds the keys of the places in a file, in the database that `serve` uses or by asking a running service."""

import asyncio
import os
import shlex
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager, closing, contextmanager, suppress
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from itertools import islice
from pathlib import Path
from shutil import copyfileobj
from tempfile import TemporaryFile
from typing import IO, Self

import httpx
import typer
from pydantic import ValidationError
from pydantic_core import to_json

from localidades_api.bulk.answers import describe_problem, match_row, with_note
from localidades_api.bulk.readers import XLSX, MediaType, reader
from localidades_api.bulk.rows import ROLES, Answer, Row
from localidades_api.bulk.writers import MATCH_COLUMNS, AnswerWriter, in_language, writer
from localidades_api.caches.names import NameIndexes
from localidades_api.catalogue.schemas import Match, Release
from localidades_api.cli.console import console, watch_import, writing
from localidades_api.cli.database import ready_database
from localidades_api.cli.service import Service
from localidades_api.client import BUSY, Backoff
from localidades_api.database.pool import Database
from localidades_api.database.queries import ReleasesRepository
from localidades_api.errors import AnswerFileError, OutputError, ServiceError
from localidades_api.html.i18n import LANGUAGES, Language
from localidades_api.http.paths import MATCH
from localidades_api.importer.file_kinds import START, describe_kind
from localidades_api.importer.source import interruptible
from localidades_api.names.certainty import SURE
from localidades_api.names.index import NameIndex
from localidades_api.observability.progress import Counting, Step
from localidades_api.releases.tracker import ReleaseTracker
from localidades_api.settings import read_settings

_STDIO = "-"
# Answers to a JSON document are NDJSON: half of a document can't be resumed.
_FORMATS: Mapping[str, MediaType] = {
    ".csv": "text/csv",
    ".tsv": "text/csv",
    ".txt": "text/csv",
    ".ndjson": "application/x-ndjson",
    ".jsonl": "application/x-ndjson",
    ".json": "application/json",
    ".xlsx": XLSX,
}
_NDJSON_START = b'{"sent":'
_BATCH_SIZE = 500  # rows: an interruption loses the work for this many at most
_INDEX_TIMEOUT = 600.0  # seconds; a whole catalogue takes ten
_OUTCOMES = ("exact", "sure", "ambiguous", "none", "problem")

_REMOTE_BATCH_SIZE = 1000  # rows of a request, which takes half a second
_TIMEOUT = 60.0  # seconds without a byte
_RETRY_TIMEOUT = 300.0  # seconds with a service that has responded before: its index of names may still be built
_MAX_ANSWER = 16 * 1024  # bytes for a row: five candidates with their faults have some 3 kB

Answering = Callable[[Sequence[Row]], Sequence[Answer]]


# -- The options


@dataclass(frozen=True, slots=True)
class MatchJob:
    """What is to be read and written: paths, or `-` for stdin and stdout; `named` has the columns by role."""

    source: str
    output: str
    named: Mapping[str, str]
    resume: bool = False
    force: bool = False
    sure: float = SURE
    sheet: str | None = None
    lang: Language = LANGUAGES[0]

    @classmethod
    def checked(  # the options of the command
        cls,
        source: str,
        output: str | None,
        named: Mapping[str, str],
        *,
        resume: bool,
        force: bool,
        sure: float,
        sheet: str | None = None,
        lang: Language = LANGUAGES[0],
    ) -> Self:
        """Return a job; raise typer.BadParameter for what would fail, or replace a file, after a long time."""
        _check_source(source)
        job = cls(source, output or _default_output(source), named, resume, force, sure, sheet, lang)
        if resume and force:
            raise typer.BadParameter("--resume continues the output, --force replaces it: choose one")
        if resume and job.answer_type == XLSX:
            raise typer.BadParameter("a workbook is written as a whole: use --force, or an --output that ends in .csv")
        if job.output != _STDIO:
            _check_output(job, Path(job.output))
        return job

    @property
    def media_type(self) -> MediaType:
        """The format of the source."""
        return "text/csv" if _is_stream(self.source) else _FORMATS[Path(self.source).suffix.lower()]

    @property
    def answer_type(self) -> MediaType:
        """The format of the answers."""
        suffix = Path(self.source if self.output == _STDIO else self.output).suffix.lower()
        if suffix == ".xlsx":
            return XLSX
        if self.media_type == "text/csv" or (
            self.media_type == XLSX and _FORMATS.get(suffix, "text/csv") == "text/csv"
        ):
            return "text/csv"
        return "application/x-ndjson"

    def command(self, *more: str) -> str:
        """Return the command that resumes this one, for a shell."""
        columns = [word for role, header in self.named.items() for word in (f"--{role}", header)]
        sure = () if self.sure == SURE else ("--sure", f"{self.sure:g}")
        sheet = () if self.sheet is None else ("--sheet", self.sheet)
        lang = () if self.lang == LANGUAGES[0] else ("--lang", self.lang)
        options = (*columns, *sheet, *sure, *lang, *more)
        words = ("localidades-api", "match", self.source, "--output", self.output, *options, "--resume")
        return shlex.join(words)


def _is_stream(source: str) -> bool:
    """Return whether a source is stdin or a pipe, such as a shell's `<(...)`: CSV without a name of its own."""
    return source == _STDIO or Path(source).is_fifo()


def _default_output(source: str) -> str:
    """Return the path of the answers to a file: `places.matched.csv` beside `places.csv`."""
    if _is_stream(source):
        return _STDIO
    path = Path(source)
    suffix = ".ndjson" if path.suffix.lower() == ".json" else path.suffix
    return str(path.with_name(f"{path.stem}.matched{suffix}"))


def _check_source(source: str) -> None:
    """Raise typer.BadParameter for a source that is no file of rows."""
    if _is_stream(source):
        return
    path = Path(source)
    if not source:
        raise typer.BadParameter("the path of the file is empty")
    if path.is_dir():
        raise typer.BadParameter(f"{source} is a folder: give a file in it")
    if not path.is_file():
        raise typer.BadParameter(f"there is no file {source}")
    if path.suffix.lower() not in _FORMATS:
        with path.open("rb") as file:
            kind = describe_kind(file.read(START))
        remedy = f": it is {kind}" if kind else ""
        raise typer.BadParameter(f"the name of {source} must end in one of {', '.join(_FORMATS)}{remedy}")


def _check_output(job: MatchJob, output: Path) -> None:
    if not output.parent.is_dir():
        raise typer.BadParameter(f"there is no folder {output.parent}")
    if output.exists():
        if job.source != _STDIO and output.samefile(job.source):
            raise typer.BadParameter("the file and --output are the same")
        if not (job.resume or job.force):
            resume = "" if job.answer_type == XLSX else "--resume to continue it, or "
            raise typer.BadParameter(f"{output} exists: add {resume}--force to replace it")


# -- The output


class AnswerFile:
    """A file of answers, which a later run can resume; it is created when the first answer is written."""

    def __init__(self, path: Path, *, replace: bool = False) -> None:
        self._path = path
        self._replace = replace
        self._descriptor: int | None = None
        self._whole = 0  # bytes

    def resume(self, *, is_csv: bool) -> int:
        """Open what an interrupted run has written; return how many rows it has, the header included."""
        records, self._whole = _count_records(self._path, is_csv=is_csv)
        self._descriptor = os.open(self._path, os.O_RDWR)
        os.ftruncate(self._descriptor, self._whole)
        os.lseek(self._descriptor, 0, os.SEEK_END)
        return records

    def may_begin_with(self, expected: bytes) -> bool:
        """Return whether the file begins with this, as far as it goes."""
        with self._path.open("rb") as file:
            return expected.startswith(file.read(len(expected)))

    def write(self, rows: bytes) -> None:
        """Write whole rows, all or none; raise OutputError if the file can't take them."""
        try:
            if self._descriptor is None:
                how = os.O_TRUNC if self._replace else os.O_EXCL
                self._descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT | how, 0o666)
            rest = memoryview(rows)
            while rest:
                rest = rest[os.write(self._descriptor, rest) :]
        except FileExistsError:
            raise AnswerFileError(f"{self._path} was created meanwhile: choose another --output.") from None
        except OSError as error:
            self._forget_part()
            raise OutputError(f"{self._path} can't be written ({error.strerror}).") from error
        except BaseException:  # Ctrl-C
            self._forget_part()
            raise
        self._whole += len(rows)

    def _forget_part(self) -> None:
        if self._descriptor is not None:
            with suppress(OSError):
                os.ftruncate(self._descriptor, self._whole)

    def discard(self) -> None:
        """Remove the file if this run has begun it."""
        if self._descriptor is not None:
            self._path.unlink(missing_ok=True)

    def close(self) -> None:
        """Close the file; raise OutputError if the system could not keep what was written."""
        if self._descriptor is not None:
            descriptor, self._descriptor = self._descriptor, None
            try:
                os.close(descriptor)
            except OSError as error:
                raise OutputError(f"{self._path} can't be written ({error.strerror}).") from error


class AnswerStream:
    """Answers on stdout."""

    def write(self, rows: bytes) -> None:
        """Write rows; raise OutputError or ReaderGoneError if they can't be written."""
        with writing():
            sys.stdout.buffer.write(rows)

    def discard(self) -> None:
        """Leave what was written."""

    def close(self) -> None:
        """Leave stdout open."""


def _count_records(path: Path, *, is_csv: bool) -> tuple[int, int]:
    """Return how many records of our own CSV or NDJSON are whole, and where the last of them ends.

    A record ends with its line; in CSV with the line that leaves no quotes open, as cells double each quote of theirs.
    """
    records = end = at = quotes = 0
    with path.open("rb") as file:
        for line in file:
            at += len(line)
            quotes += line.count(b'"') if is_csv else 0
            if quotes % 2 == 0 and line.endswith(b"\n"):
                records, end = records + 1, at
    return records, end


# -- The rows


class MatchStep(Step):
    """The steps of matching a file."""

    OPEN = "opening the index of names"
    MATCH = "matching rows"


@dataclass(slots=True)
class Tally:
    """The rows that are done: those that an earlier run had answered, and the others by outcome."""

    earlier: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)

    @property
    def rows(self) -> int:
        """The rows that stand in the output."""
        return self.earlier + self.outcomes.total()


def match_file(job: MatchJob, answer: Answering, at_once: int, tally: Tally, counting: Counting) -> None:
    """Answer every row, `at_once` at a time, and count them in `tally`.

    Raises UnreadableBodyError, AnswerFileError, OutputError, and what `answer` does. Rows in `tally` have been written.
    """
    answer_type = job.answer_type
    is_csv = answer_type == "text/csv"
    with (
        interruptible() as raise_if_interrupted,
        _open_source(job.source) as file,
        closing(_open_output(job)) as output,
        ExitStack() as stack,
    ):
        if answer_type == XLSX:
            stack.callback(output.discard)
        rows = reader(job.media_type, file, ROLES, job.named, job.sheet)
        for _ in rows.check():
            raise_if_interrupted()
        counting.expect(rows.count)
        target = writer(answer_type, rows, in_language(MATCH_COLUMNS, job.lang))
        coming = iter(rows)
        batch = list(islice(coming, at_once))
        tally.earlier, unwritten = _begin(job, target, output, is_csv=is_csv)
        read = 0
        while batch:
            read += len(batch)
            fresh = [row for row in batch if row.number > tally.earlier]
            answers = answer(fresh) if fresh else ()
            outcomes = tally.outcomes + Counter(one["outcome"] for one in answers)
            output.write(unwritten + b"".join(map(target.write, fresh, answers)))
            tally.outcomes, unwritten = outcomes, b""  # Ctrl-C finds a batch counted or not, never a part of it
            counting.advance(len(batch))
            raise_if_interrupted()
            batch = list(islice(coming, at_once))
        output.write(unwritten + target.end())
        stack.pop_all()
        if read < tally.earlier:
            raise AnswerFileError(f"{job.output} has more rows than {job.source}: it is the answer to another file.")


def _begin(
    job: MatchJob, target: AnswerWriter, output: AnswerFile | AnswerStream, *, is_csv: bool
) -> tuple[int, bytes]:
    """Return how many rows an earlier run has answered, and what is still to be written before the next."""
    start = target.begin()
    if not (job.resume and isinstance(output, AnswerFile) and Path(job.output).exists()):
        return 0, start
    if not output.may_begin_with(start or _NDJSON_START):
        raise AnswerFileError(
            f"{job.output} is not the answer to {job.source} with these columns: choose another --output."
        )
    records = output.resume(is_csv=is_csv)
    return max(records - is_csv, 0), b"" if records else start


@contextmanager
def _open_source(source: str) -> Iterator[IO[bytes]]:
    """Open a source; what can be read only once is copied to a temporary file first."""
    with ExitStack() as stack:
        file: IO[bytes] = sys.stdin.buffer if source == _STDIO else stack.enter_context(Path(source).open("rb"))
        if not file.seekable():
            pipe, file = file, stack.enter_context(TemporaryFile())
            copyfileobj(pipe, file)
            file.seek(0)
        yield file


def _open_output(job: MatchJob) -> AnswerFile | AnswerStream:
    return AnswerStream() if job.output == _STDIO else AnswerFile(Path(job.output), replace=job.force)


@contextmanager
def _reporting(job: MatchJob, pinned: Callable[[], Sequence[str]]) -> Iterator[Tally]:
    """Count rows, and say in the end what was done, or what was done so far and how to resume.

    `pinned` returns the options that match the rest like the rows before.
    """
    tally, began = Tally(), time.perf_counter()
    try:
        yield tally
    except BaseException as error:
        if job.output != _STDIO and job.answer_type != XLSX and tally.rows and not isinstance(error, AnswerFileError):
            console.print(
                f"{tally.rows:,} rows are answered in {job.output}; to go on: {job.command(*pinned())}", markup=False
            )
        raise
    seconds = time.perf_counter() - began
    done = tally.outcomes.total()
    lines = [f"matched {done:,} rows in {seconds:.1f} s ({done / max(seconds, 1e-6):,.0f}/s)"]
    if tally.earlier:
        lines[0] += f", {tally.earlier:,} were answered before"
    lines.append("  " + ", ".join(f"{tally.outcomes[outcome]:,} {outcome}" for outcome in _OUTCOMES))
    if job.output != _STDIO:
        lines.append(f"  {job.output}")
    console.print("\n".join(lines), markup=False)


# -- With the database


def run_match(job: MatchJob, release: str | None) -> None:
    """Match the rows of a file, and print a summary, or how to resume if it ends early."""

    async def run(database: str) -> None:
        with watch_import() as progress:
            progress.begin(MatchStep.OPEN)
            async with _open_index(database, release) as (served, index):
                progress.begin(MatchStep.MATCH)

                # Nothing of it awaits: all that the rows need is in the index.
                def answer(rows: Sequence[Row]) -> list[Answer]:
                    return [match_row(row, index, job.sure) for row in rows]

                with _reporting(job, lambda: ("--release", served.name)) as tally:
                    match_file(job, answer, _BATCH_SIZE, tally, progress)

    with ready_database(read_settings()) as url:
        asyncio.run(run(url))


@asynccontextmanager
async def _open_index(url: str, name: str | None) -> AsyncIterator[tuple[Release, NameIndex]]:
    """Lend the index of a release, or of the current one, built if need be; the database may go away meanwhile."""
    database = Database.for_reading(url, pool_size=1, timeout=read_settings().database_timeout)
    releases = ReleaseTracker(ReleasesRepository(database))
    indexes = NameIndexes(url, releases, _INDEX_TIMEOUT)
    try:
        release = await releases.current() if name is None else await releases.named(name)
        async with indexes.using(release) as index:
            yield release, index
    finally:
        await indexes.close()
        await database.dispose()


# -- With a service


def run_remote_match(job: MatchJob, url: str, release: str | None) -> None:
    """Match the rows of a file by asking a running service, and print a summary, or how to resume."""
    with watch_import() as progress, RemoteMatcher(Service.parse(url, release), job.sure) as service:
        progress.begin(MatchStep.MATCH)
        with _reporting(job, service.describe) as tally:
            match_file(job, service.answer, _REMOTE_BATCH_SIZE, tally, progress)


class _BusyError(Exception):
    """The service can't answer now; `retry_after` is what that header of its answer says, if there is one."""

    def __init__(self, why: str, retry_after: str | None = None) -> None:
        super().__init__(why)
        self.retry_after = retry_after


class RemoteMatcher:
    """Sends rows by their roles, and nothing else that is in them; stays with the release of the first answer."""

    def __init__(self, service: Service, sure: float) -> None:
        self._service = service
        self._options = {} if sure == SURE else {"sure": f"{sure:g}"}
        self._client = service.connect(_TIMEOUT)
        self._has_responded = False

    def describe(self) -> list[str]:
        """Return the options with which a command asks the same service and release."""
        release = self._service.release
        return ["--url", self._service.root, *(["--release", release] if release else [])]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()

    def answer(self, rows: Sequence[Row]) -> list[Answer]:
        """Return the answers to rows; raise ServiceError if the service has none, or not for minutes."""
        readable = [row for row in rows if row.problem is None]
        answers = iter(self._ask(readable) if readable else [])
        return [
            describe_problem(row.problem) if row.problem is not None else with_note(next(answers), row) for row in rows
        ]

    def _ask(self, rows: Sequence[Row]) -> list[Answer]:
        body = b"".join(to_json(row.cells) + b"\n" for row in rows)
        backoff: Backoff | None = None
        while True:
            try:
                return self._post(body, len(rows))
            except _BusyError as error:
                if backoff is None and self._has_responded:
                    backoff = Backoff(_RETRY_TIMEOUT)
                    console.print(f"waiting for the service: {error}", markup=False)
                pause = backoff.next(error.retry_after) if backoff else None
                if pause is None:
                    raise ServiceError(f"The service at {self._service.root} does not answer: {error}.") from error
                time.sleep(pause)

    def _post(self, body: bytes, rows: int) -> list[Answer]:
        headers = {"Content-Type": "application/x-ndjson", "Accept": "application/x-ndjson"}
        address = self._service.at(MATCH, **self._options)
        with _busy_if_unreachable(), self._client.stream("POST", address, content=body, headers=headers) as response:
            self._has_responded = True
            self._check(response)
            lines = _read(response, rows * _MAX_ANSWER).splitlines()
        if len(lines) != rows:
            raise _BusyError("its answer ends too early")
        try:
            answers: list[Answer] = [Match.model_validate_json(line).model_dump(exclude={"sent"}) for line in lines]
        except ValidationError as error:
            raise ServiceError("The service's answers do not match the API's schema: check --url.") from error
        self._pin(response.headers.get("catalogue-release"))
        return answers

    def _pin(self, release: str | None) -> None:
        """Stay with the release of an answer; raise ServiceError if it is not the one that was asked for."""
        if self._service.release is None:
            self._service = replace(self._service, release=release)
        elif release not in {None, self._service.release}:
            raise ServiceError("The service ignores `release` and answers with another one.")

    @staticmethod
    def _check(response: httpx.Response) -> None:
        """Raise _BusyError for a failure that may pass, and ServiceError for any other."""
        status = response.status_code
        if status in BUSY:
            raise _BusyError(f"it answers {status}", response.headers.get("retry-after"))
        if status == HTTPStatus.NOT_FOUND:
            raise ServiceError("The service answers 404, so it has no such release or matches no rows: check --url.")
        if status != HTTPStatus.OK:
            raise ServiceError(f"The service answers {status}: check --url and the service's log.")


@contextmanager
def _busy_if_unreachable() -> Iterator[None]:
    try:
        yield
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise _BusyError(str(error) or type(error).__name__) from error


def _read(response: httpx.Response, limit: int) -> bytes:
    body = bytearray()
    for chunk in response.iter_raw():
        body += chunk
        if len(body) > limit:
            raise ServiceError("The service's answer is longer than any to so many rows: check --url.")
    return bytes(body)
