"""Matches the rows of a file to places, with the database that `serve` uses or by querying a running service."""

import asyncio
import os
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from http import HTTPStatus
from itertools import islice
from pathlib import Path
from secrets import token_hex
from shutil import copyfileobj, copymode
from tempfile import TemporaryFile
from typing import IO, Any, Self

import httpx
import typer
from pydantic import TypeAdapter, ValidationError
from pydantic_core import from_json, to_json

from localidades_api.bulk.answers import describe_problem, match_row, with_note
from localidades_api.bulk.columns import in_language, match_columns
from localidades_api.bulk.readers import XLSX, MediaType, reader
from localidades_api.bulk.rows import ROLES, Answer, Row
from localidades_api.bulk.writers import writer
from localidades_api.catalogue.columns import MATCHED_BY_DEFAULT
from localidades_api.catalogue.filters import MatchedFields, split_fields
from localidades_api.catalogue.keys import PlaceKind
from localidades_api.catalogue.messages import describe_fault
from localidades_api.catalogue.schemas import Match
from localidades_api.cli.console import console, show_progress, writing
from localidades_api.cli.database import ready_database
from localidades_api.cli.service import Service
from localidades_api.client import BUSY, Backoff
from localidades_api.database.pool import Database
from localidades_api.errors import OutputError, ServiceError
from localidades_api.files.kinds import START, describe_kind
from localidades_api.http.paths import MATCH
from localidades_api.importer.source import interruptible
from localidades_api.languages.translators import LANGUAGES, Language
from localidades_api.name_indexes.open_indexes import NameIndexes
from localidades_api.names.index import NameIndex
from localidades_api.names.weights import SURE
from localidades_api.observability.progress import Counting, Step, StepProgress
from localidades_api.releases.tracker import ReleaseTracker
from localidades_api.settings import read_settings

_STDIO = "-"
_FORMATS: Mapping[str, MediaType] = {
    ".csv": "text/csv",
    ".tsv": "text/csv",
    ".txt": "text/csv",
    ".ndjson": "application/x-ndjson",
    ".jsonl": "application/x-ndjson",
    ".json": "application/json",
    ".xlsx": XLSX,
}
_BATCH_SIZE = 500  # rows; progress is updated and interruptions are checked after each batch
_INDEX_TIMEOUT = 600.0  # seconds; building the index of a whole catalogue takes ten
_OUTCOMES = ("exact", "sure", "ambiguous", "none", "problem")

_REMOTE_BATCH_SIZE = 1000  # rows in a request, which takes half a second
_TIMEOUT = 60.0  # seconds without a byte
_RETRY_TIMEOUT = 300.0  # seconds, once a service has responded: it may still be building its index of names
_MAX_ANSWER_BYTES = 16 * 1024  # for a row; five candidates and their faults take some 3 kB

_FIELDS = TypeAdapter[str](MatchedFields)

AnswerRows = Callable[[Sequence[Row]], Sequence[Answer]]


# -- The options


@dataclass(frozen=True, slots=True)
class MatchJob:
    """The options of a run. `source` and `output` are paths, or `-`; `columns` has the headers of columns by role.

    `fields` are the columns of the matched place to return.
    """

    source: str
    output: str
    columns: Mapping[str, str]
    force: bool = False
    sure: float = SURE
    sheet: str | None = None
    header_row: int | None = None
    lang: Language = LANGUAGES[0]
    kind: PlaceKind | None = None
    fields: Sequence[str] = MATCHED_BY_DEFAULT

    @classmethod
    def create(  # noqa: PLR0913  # an argument per option
        cls,
        source: str,
        output: str | None,
        columns: Mapping[str, str],
        *,
        force: bool,
        sure: float,
        sheet: str | None = None,
        header_row: int | None = None,
        lang: Language = LANGUAGES[0],
        kind: PlaceKind | None = None,
        fields: str = ",".join(MATCHED_BY_DEFAULT),
    ) -> Self:
        """Return a job; raise typer.BadParameter for options that would fail, or replace a file, at the end."""
        _check_source(source)
        chosen, to = _read_fields(fields), output or _default_output(source)
        job = cls(source, to, columns, force, sure, sheet, header_row, lang, kind, chosen)
        if job.output != _STDIO:
            _check_output(job, Path(job.output))
        return job

    @property
    def media_type(self) -> MediaType:
        """The media type of the source."""
        return "text/csv" if _is_stream(self.source) else _FORMATS[Path(self.source).suffix.lower()]

    @property
    def answer_type(self) -> MediaType:
        """The media type of the output."""
        suffix = Path(self.source if self.output == _STDIO else self.output).suffix.lower()
        if suffix == ".xlsx":
            return XLSX
        if self.media_type == "text/csv" or (
            self.media_type == XLSX and _FORMATS.get(suffix, "text/csv") == "text/csv"
        ):
            return "text/csv"
        return "application/x-ndjson"


def _is_stream(source: str) -> bool:
    """Return whether a source is stdin or a pipe, such as a shell's `<(...)`, which is read as CSV."""
    return source == _STDIO or Path(source).is_fifo()


def _default_output(source: str) -> str:
    """Return the default output for a source, such as `places.matched.csv` for `places.csv`."""
    if _is_stream(source):
        return _STDIO
    path = Path(source)
    suffix = ".ndjson" if path.suffix.lower() == ".json" else path.suffix
    return str(path.with_name(f"{path.stem}.matched{suffix}"))


def _read_fields(fields: str) -> list[str]:
    """Return the columns that an option names; raise typer.BadParameter for an unknown one."""
    try:
        return split_fields(_FIELDS.validate_python(fields))
    except ValidationError as error:
        raise typer.BadParameter(f"--fields: {describe_fault(error.errors()[0])}") from error


def _check_source(source: str) -> None:
    """Raise typer.BadParameter unless the source is a file of a known format."""
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
        hint = f": it is {kind}" if kind else ""
        raise typer.BadParameter(f"the name of {source} must end in one of {', '.join(_FORMATS)}{hint}")


def _check_output(job: MatchJob, output: Path) -> None:
    if not output.parent.is_dir():
        raise typer.BadParameter(f"there is no folder {output.parent}")
    if output.exists():
        if not output.is_file():
            raise typer.BadParameter(f"{output} is not a regular file: use --output - and redirect stdout")
        if job.source != _STDIO and output.samefile(job.source):
            raise typer.BadParameter("the file and --output are the same")
        if not job.force:
            raise typer.BadParameter(f"{output} exists: add --force to replace it")


# -- The output


@contextmanager
def _open_output(job: MatchJob) -> Iterator[Callable[[bytes], None]]:
    """Yield a function that writes to the output. A file gets its name at the end, once it is complete."""
    if job.output == _STDIO:
        yield _write_to_stdout
        return
    output = Path(job.output).resolve()
    draft = output.with_name(f".{output.name}.{token_hex(4)}.part")
    with ExitStack() as stack:
        stack.callback(draft.unlink, missing_ok=True)
        with _reporting_errors(job):
            file = stack.enter_context(draft.open("xb", buffering=0))

        def write(rows: bytes) -> None:
            rest = memoryview(rows)
            with _reporting_errors(job):
                while rest:
                    rest = rest[file.write(rest) :]

        yield write
        with _reporting_errors(job):
            os.fsync(file.fileno())  # before the rename, so that the output is complete even after a power failure
            if output.exists():
                if not job.force:
                    raise OutputError(f"{job.output} was created by another program: choose another --output.")
                copymode(output, draft)
            draft.replace(output)


def _write_to_stdout(rows: bytes) -> None:
    with writing():
        sys.stdout.buffer.write(rows)


@contextmanager
def _reporting_errors(job: MatchJob) -> Iterator[None]:
    """Translate OSError to OutputError."""
    try:
        yield
    except OSError as error:
        raise OutputError(f"{job.output} can't be written ({error.strerror}).") from error


# -- The rows


class MatchStep(Step):
    """The steps of matching a file."""

    OPEN = "opening the index of names"
    MATCH = "matching rows"


def match_file(job: MatchJob, answer: AnswerRows, batch_size: int, counting: Counting) -> Counter[str]:
    """Match every row, in batches, and count the outcomes.

    Raises UnreadableBodyError, OutputError and the errors of `answer`, and then leaves no file.
    """
    outcomes: Counter[str] = Counter()
    with interruptible() as raise_if_interrupted, _open_source(job.source) as file:
        rows = reader(job.media_type, file, ROLES.of_kind(job.kind), job.columns, job.sheet, job.header_row)
        for _ in rows.check():
            raise_if_interrupted()
        counting.expect(rows.count)
        target = writer(job.answer_type, rows, in_language(match_columns(job.fields), job.lang))
        coming = iter(rows)
        batch = list(islice(coming, batch_size))
        start = target.begin()
        with _open_output(job) as write:
            while batch:
                answers = answer(batch)
                outcomes.update(one["outcome"] for one in answers)
                write(start + b"".join(map(target.write, batch, answers)))
                start = b""
                counting.advance(len(batch))
                raise_if_interrupted()
                batch = list(islice(coming, batch_size))
            write(start + target.end())
    return outcomes


@contextmanager
def _open_source(source: str) -> Iterator[IO[bytes]]:
    """Open a source; copy it to a temporary file first if it can be read only once."""
    with ExitStack() as stack:
        file: IO[bytes] = sys.stdin.buffer if source == _STDIO else stack.enter_context(Path(source).open("rb"))
        if not file.seekable():
            pipe, file = file, stack.enter_context(TemporaryFile())
            copyfileobj(pipe, file)
            file.seek(0)
        yield file


def _match_and_report(job: MatchJob, answer: AnswerRows, batch_size: int, progress: StepProgress) -> None:
    """Match the rows of a file, and print a summary."""
    progress.begin(MatchStep.MATCH)
    began = time.perf_counter()
    outcomes = match_file(job, answer, batch_size, progress)
    seconds = time.perf_counter() - began
    rows = outcomes.total()
    lines = [
        f"matched {rows:,} rows in {seconds:.1f} s ({rows / max(seconds, 1e-6):,.0f}/s)",
        "  " + ", ".join(f"{outcomes[outcome]:,} {outcome}" for outcome in _OUTCOMES),
    ]
    if job.output != _STDIO:
        lines.append(f"  {job.output}")
    console.print("\n".join(lines), markup=False)


# -- With the database


def run_match(job: MatchJob, release: str | None) -> None:
    """Match the rows of a file with the names in the database."""

    async def run(database: str) -> None:
        with show_progress() as progress:
            progress.begin(MatchStep.OPEN)
            async with _open_index(database, release) as index:
                # This blocks the event loop, where nothing else runs: the index has everything that rows need.
                def answer(rows: Sequence[Row]) -> list[Answer]:
                    return [match_row(row, index, job.sure, job.fields) for row in rows]

                _match_and_report(job, answer, _BATCH_SIZE, progress)

    with ready_database(read_settings()) as url:
        asyncio.run(run(url))


@asynccontextmanager
async def _open_index(url: str, name: str | None) -> AsyncIterator[NameIndex]:
    """Open the index of a release (None is the current one), or build it; afterwards no database is needed."""
    database = Database.for_reading(url, pool_size=1, timeout=read_settings().database_timeout)
    releases = ReleaseTracker(database)
    indexes = NameIndexes(url, releases, _INDEX_TIMEOUT)
    try:
        release = await releases.current() if name is None else await releases.named(name)
        async with indexes.using(release) as index:
            yield index
    finally:
        await indexes.close()
        await database.dispose()


# -- With a service


def run_remote_match(job: MatchJob, url: str, release: str | None) -> None:
    """Match the rows of a file by asking a running service."""
    remote = RemoteMatcher(Service.parse(url, release), job.sure, job.kind, job.fields)
    with show_progress() as progress, remote as service:
        _match_and_report(job, service.answer, _REMOTE_BATCH_SIZE, progress)


class _BusyError(Exception):
    """The service can't answer now; `retry_after` is the value of the response's header, if any."""

    def __init__(self, reason: str, retry_after: str | None = None) -> None:
        super().__init__(reason)
        self.retry_after = retry_after


class RemoteMatcher:
    """Sends the matched columns of rows, and no others, to a service; keeps to the release of its first response."""

    def __init__(
        self,
        service: Service,
        sure: float,
        kind: PlaceKind | None = None,
        fields: Sequence[str] = MATCHED_BY_DEFAULT,
    ) -> None:
        self._service = service
        self._fields = fields
        options = {
            "sure": None if sure == SURE else f"{sure:g}",
            "kind": kind,
            "fields": None if list(fields) == list(MATCHED_BY_DEFAULT) else ",".join(fields),
        }
        self._options = {name: value for name, value in options.items() if value is not None}
        self._client = service.connect(_TIMEOUT)
        self._has_responded = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()

    def answer(self, rows: Sequence[Row]) -> list[Answer]:
        """Return the answers to rows; raise ServiceError if the service fails, or is busy for minutes."""
        readable = [row for row in rows if row.problem is None]
        answers = iter(self._send(readable) if readable else [])
        return [
            describe_problem(row.problem, self._fields) if row.problem is not None else with_note(next(answers), row)
            for row in rows
        ]

    def _send(self, rows: Sequence[Row]) -> list[Answer]:
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
            lines = _read(response, rows * _MAX_ANSWER_BYTES).splitlines()
        if len(lines) != rows:
            raise _BusyError("its response is incomplete")
        try:
            answers = [self._read_answer(line) for line in lines]
        except ValidationError as error:
            raise ServiceError("The service's answers do not match the API's schema: check --url.") from error
        self._pin(response.headers.get("catalogue-release"))
        return answers

    def _read_answer(self, line: bytes) -> Answer:
        """Return an answer with the members that were sent; raise ValidationError if it does not match the schema."""
        Match.model_validate_json(line, strict=True)
        answer: dict[str, Any] = from_json(line)
        if any(set(self._fields) - place.keys() for place in (answer, *answer["candidates"])):
            raise ServiceError("The service does not return columns of the place: it runs an older version.")
        del answer["sent"]
        return answer

    def _pin(self, release: str | None) -> None:
        """Keep to the release of the first response; raise ServiceError for a response with another one."""
        if self._service.release is None:
            self._service = replace(self._service, release=release)
        elif release not in {None, self._service.release}:
            raise ServiceError("The service ignores `release` and answers with another release.")

    @staticmethod
    def _check(response: httpx.Response) -> None:
        """Raise _BusyError for a temporary failure, and ServiceError for any other."""
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
            raise ServiceError("The service's response is too long for this number of rows: check --url.")
    return bytes(body)
