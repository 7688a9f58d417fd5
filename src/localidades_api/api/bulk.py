"""Resources that take many rows in one request: names to match, and points to locate."""

from collections.abc import AsyncIterator, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from itertools import islice
from typing import IO, Annotated, Any, Literal, NamedTuple

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel, Field
from starlette.responses import Response
from typing_extensions import TypeAliasType

from localidades_api.api.declarations import ERRORS, NEGOTIATED, OF_RELEASE, header, problem
from localidades_api.api.extension import Borders, borders_of
from localidades_api.api.params import ReleaseParam
from localidades_api.api.services import DatabaseDep, ExchangeDep, NamesDep, ReleasesDep
from localidades_api.bulk.answer_columns import (
    MATCH_COLUMNS,
    NEAREST_COLUMNS,
    AnswerColumns,
    in_language,
    match_columns,
)
from localidades_api.bulk.answers import Point, answer_points, answer_sample, match_row
from localidades_api.bulk.columns import AnswerRows, Reading
from localidades_api.bulk.exchange import Answered, Answering, BulkResponse, Exchange, PreviewResponse, Read
from localidades_api.bulk.formats import XLSX, MediaType, reader
from localidades_api.bulk.input_rows import Row
from localidades_api.bulk.options import MatchOptions, MatchReadingOptions, ReadingOptions, WordingOptions
from localidades_api.bulk.own_municipio import area_matcher, judge_points
from localidades_api.bulk.readers import RowReader, for_a_while
from localidades_api.bulk.roles import POINTS
from localidades_api.bulk.workbook_writers import Summary
from localidades_api.bulk.writers import AnswerWriter, WithFile, writer
from localidades_api.caches.name_indexes import NameIndexes
from localidades_api.catalogue.columns import MATCHED
from localidades_api.catalogue.filters import Omittable, split_fields
from localidades_api.catalogue.locality import describe_near
from localidades_api.catalogue.messages import refuse_value, several_of, whole_number, with_message
from localidades_api.catalogue.schemas import (
    InvalidRowsProblem,
    MatchableRow,
    MatchPreview,
    MatchResults,
    NearestPlacesResults,
    PointRow,
    Release,
)
from localidades_api.database.pool import Database
from localidades_api.database.queries.nearest import find_nearest_to_each
from localidades_api.errors import (
    ContentTooLargeError,
    InvalidParametersError,
    RequestTimeoutError,
    UnsupportedMediaTypeError,
)
from localidades_api.http.body import MAX_SPOOLED
from localidades_api.http.negotiation import accept_header, choose_media_type
from localidades_api.releases.tracker import ReleaseTracker

router = APIRouter(prefix="/localidades", tags=["Matching"], responses=NEGOTIATED)

_MAX_POINTS = 100  # per statement, some 100 ms

_NAMES: dict[str, MediaType] = {
    "json": "application/json",
    "ndjson": "application/x-ndjson",
    "csv": "text/csv",
    "xlsx": XLSX,
}
_FORMS = frozenset({"multipart/form-data", "application/x-www-form-urlencoded"})  # what curl sends with -F and -d
_MEDIA_TYPES: dict[str, MediaType] = {
    **{media_type: media_type for media_type in _NAMES.values()},
    "application/ndjson": "application/x-ndjson",
    "application/jsonl": "application/x-ndjson",
    "text/tab-separated-values": "text/csv",
    "application/vnd.ms-excel": "text/csv",  # sent by browsers on Windows for a CSV file
}


_CHOOSABLE = (*MATCH_COLUMNS.cells, *MATCHED)
_CHOICE = "|".join(_CHOOSABLE)

FileFormat = TypeAliasType("FileFormat", Literal["csv", "xlsx"])
RowsFormat = TypeAliasType("RowsFormat", Literal["json", "ndjson", "csv", "xlsx"])  # has a name in generated clients


class AnswersQuery(WordingOptions):
    """The parameters that say how rows are answered."""

    format: Annotated[
        Omittable[RowsFormat],
        Field(
            description="Format of the answer, which overrides the Accept header; by default that of the body.",
            examples=["csv"],
        ),
    ] = None
    file: Annotated[
        Omittable[FileFormat],
        Field(
            description="Of an NDJSON answer: also the answers as a file, in lines whose `file` is a piece in base64.",
            examples=["xlsx"],
        ),
    ] = None
    release: ReleaseParam = None


class BulkQuery(ReadingOptions, AnswersQuery):
    """The parameters of a request of many rows."""


class MatchQuery(MatchOptions, BulkQuery):
    """The parameters of rows to be matched."""

    answer_columns: Annotated[
        Omittable[str],
        Field(
            max_length=2 * len(",".join(_CHOOSABLE)),
            description="Columns of the answer in CSV and workbooks, separated by commas: `outcome`, `cvegeo`, `label`,"
            " those in `fields`, `score`, `margin`, `faults`, `candidates`, `withdrawn` and `problem`; by default all.",
            examples=["outcome,cvegeo,label"],
            json_schema_extra={"pattern": f"^({_CHOICE})(,({_CHOICE}))*$"},
        ),
        several_of(_CHOOSABLE),
    ] = None
    summary: Annotated[
        bool,
        Field(
            description="Of a workbook: add a sheet with the release, the date, the credit, what holds for all rows,"
            " and how many have each outcome.",
            examples=[True],
        ),
        with_message(refuse_value("", ("true", "false"))),
    ] = False


class NearestToEachQuery(BulkQuery):
    """The parameters of many points."""

    limit: Annotated[
        int,
        Field(ge=1, le=20, description="Maximum number of places for each point.", examples=[1]),
        whole_number("Use a whole number from 1 to 20."),
    ] = 1


_OF_TABLE = {
    "Sheet-Name": header("Of a workbook: the sheet that was read, percent-encoded UTF-8.", "Visitas%202026"),
    "Header-Row": header("Of a workbook: the row of the sheet with the header, as Excel counts.", "6"),
    "Answer-Columns": header(
        "Of a table: the column, from 1, of each member of the answers.", "outcome=4, cvegeo=5, label=6"
    ),
}


def _rows_of(row: type[BaseModel]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {"rows": {"type": "array", "items": row.model_json_schema()}},
        "required": ["rows"],
        "additionalProperties": False,
    }


def described(
    row: type[BaseModel],
    answer: str = "The answers, in the order of the rows; as NDJSON, CSV or an Excel workbook if `format` or the body"
    " says so.",
    headers: Mapping[str, Any] = OF_RELEASE | _OF_TABLE,
) -> dict[str, Any]:
    """Return the OpenAPI description of the body and the answer.

    It names only JSON: generators of clients give up on a body in other formats, and an answer that may be text as well
    has a type that says nothing.
    """
    content = {"application/json": {"schema": _rows_of(row)}}
    responses = {
        200: {"description": answer, "headers": headers},
        408: problem(RequestTimeoutError(), "The body came too slowly."),
        413: problem(ContentTooLargeError(MAX_SPOOLED), "The body is larger than 1 GB."),
        415: problem(
            UnsupportedMediaTypeError(list(_NAMES.values())),
            "The body is neither JSON, NDJSON, CSV nor an Excel workbook (.xlsx).",
        ),
        422: ERRORS[422]
        | {"model": InvalidRowsProblem, "description": "The body can't be read as a whole, or a parameter is wrong."},
    }
    return {"openapi_extra": {"requestBody": {"required": True, "content": content}}, "responses": responses}


class Subject(NamedTuple):
    """A kind of rows: how they are read, and the columns of answers."""

    reading: Reading
    columns: AnswerColumns
    summary: Summary | None = None


@router.post("/match", include_in_schema=False)  # a redirect may lose the body
@router.post("/match/", summary="Match names to keys", response_model=MatchResults, **described(MatchableRow))
async def match_localities(
    exchange: ExchangeDep,
    query: Annotated[MatchQuery, Query()],
    releases: ReleasesDep,
    names: NamesDep,
    database: DatabaseDep,
) -> Response:
    """Find the locality that each row means: its key, how certain it is, and what differs.

    Send any number of rows as JSON (`{"rows": [...]}`), NDJSON, CSV with a header or an Excel workbook. The answers
    come in the same order, when you have sent all of them. A row that can't be read affects no other.
    """
    release = await releases.get(query.release)
    fields = split_fields(query.fields)
    columns = match_columns(fields, split_fields(query.answer_columns) or None)
    has_summary = query.summary and "outcome" in columns.cells  # which it counts
    reading = await _reading(query, names, releases, query.release)
    areas = reading.roles.areas
    summary = Summary(release.name, release.credit(query.lang), query.sure, areas) if has_summary else None
    subject = Subject(reading, columns, summary)
    answering = _matching(names, release, query.sure, fields, database, borders_of(exchange.request, releases))
    return respond(exchange, query, release, subject, answering)


@router.post("/match/preview", include_in_schema=False)  # a redirect may lose the body
@router.post(
    "/match/preview/",
    summary="Preview what is matched",
    response_model=MatchPreview,
    **described(MatchableRow, "What was understood of the rows.", {}),
)
async def preview_match(
    exchange: ExchangeDep, query: Annotated[MatchReadingOptions, Query()], releases: ReleasesDep, names: NamesDep
) -> Response:
    """Say what is understood of rows before they are matched: their table, its columns, and the first five rows.

    It takes the bodies of `match/` and reads them in the same way, and matches nothing.
    """
    headers = {"Content-Type": _NAMES["json"]}
    read = _read(exchange.request, await _reading(query, names, releases))
    return PreviewResponse(exchange, read, headers, _sampling(names, await releases.get(None)))


@router.post("/nearest", include_in_schema=False)  # a redirect may lose the body
@router.post(
    "/nearest/",
    summary="List the places nearest to many points",
    response_model=NearestPlacesResults,
    **described(PointRow),
)
async def list_nearest_to_each(
    exchange: ExchangeDep, query: Annotated[NearestToEachQuery, Query()], releases: ReleasesDep, database: DatabaseDep
) -> Response:
    """List the localities nearest to each of many points, sent like rows to be matched."""
    release = await releases.get(query.release)
    answering = _finding_nearest(database, release, query.limit)
    subject = Subject(query.reading(POINTS), NEAREST_COLUMNS)
    return respond(exchange, query, release, subject, answering)


async def _reading(
    query: MatchReadingOptions, names: NameIndexes, releases: ReleaseTracker, release: str | None = None
) -> Reading:
    """Return how rows are read; a municipio of all of them is one of the release."""
    if not query.municipio:
        return query.match_reading(None)
    async with names.using(await releases.get(release)) as index:
        return query.match_reading(index.areas)


def respond(
    exchange: Exchange,
    query: BulkQuery,
    release: Release,
    subject: Subject,
    answering: AbstractAsyncContextManager[Answering],
) -> Response:
    """Return the response that reads the rows of a request and answers them with `answering`."""
    request = exchange.request
    wanted = _NAMES[query.format] if query.format else _accepted(request, _media_type(request))
    if query.file and wanted != _NAMES["ndjson"]:
        raise InvalidParametersError([("file", "Only an NDJSON answer has a file beside it: add `format=ndjson`.")])

    def write(rows: RowReader) -> AnswerWriter:
        columns = in_language(subject.columns, query.lang)
        answers = writer(wanted, rows, columns, subject.summary)
        return WithFile(answers, writer(_NAMES[query.file], rows, columns, subject.summary)) if query.file else answers

    charset = "; charset=utf-8; header=present" if wanted == "text/csv" else ""
    headers = {"Content-Type": f"{wanted}{charset}", "Catalogue-Release": release.name}
    read = _read(request, subject.reading)
    return BulkResponse(exchange, read, headers, write, answering)


def _read(request: Request, reading: Reading) -> Read:
    """Return what makes the reader of a body."""
    sent = _media_type(request)

    def read(file: IO[bytes], sample: AnswerRows | None) -> RowReader:
        return reader(sent, file, reading._replace(answer=sample))

    return read


def _media_type(request: Request) -> MediaType:
    named = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if named not in _MEDIA_TYPES:
        raise UnsupportedMediaTypeError(list(_NAMES.values()), is_form=named in _FORMS)
    return _MEDIA_TYPES[named]


def _accepted(request: Request, sent: MediaType) -> MediaType:
    """Return the media type that the Accept header prefers; among equals the one that was sent."""
    offered = [sent, *(name for name in _NAMES.values() if name != sent)]
    return _MEDIA_TYPES[choose_media_type(accept_header(request.headers), offered)]


@asynccontextmanager
async def _matching(
    names: NameIndexes,
    release: Release,
    sure: float,
    fields: Collection[str],
    database: Database,
    borders: Borders | None,
) -> AsyncIterator[Answering]:
    async with names.using(release) as index:
        match, match_area = partial(match_row, index=index, sure=sure, fields=fields), area_matcher(index)
        judge = None
        if borders and (edition := await borders.get_edition(database)):
            find = partial(borders.find_municipios, database, edition, release)
            known = index.areas.municipios.keys() & edition.ids
            judge = partial(judge_points, find, known, match_area, match)

        async def answer_some(rows: Iterator[Row | None]) -> Answered:
            answered = [(row, match(row)) for row in for_a_while(rows)]
            return await judge(answered) if judge else answered

        yield Answering(answer_some, partial(answer_sample, index))


@asynccontextmanager
async def _sampling(names: NameIndexes, release: Release) -> AsyncIterator[AnswerRows]:
    async with names.using(release) as index:
        yield partial(answer_sample, index)


@asynccontextmanager
async def _finding_nearest(database: Database, release: Release, limit: int) -> AsyncIterator[Answering]:
    async def find(points: Sequence[Point]) -> list[list[dict[str, Any]]]:
        found = await find_nearest_to_each(database, release, points, limit) if points else []
        return [[describe_near(row) for row in rows] for rows in found]

    async def answer_some(rows: Iterator[Row | None]) -> Answered:
        return await answer_points(list(islice(for_a_while(rows), _MAX_POINTS)), find)

    yield Answering(answer_some)
