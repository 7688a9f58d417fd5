"""The description of an extension, a folder of `localidades_api.extensions`, for `create_app`."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, NamedTuple

from fastapi import APIRouter, Request
from sqlalchemy import Row, TextClause

from localidades_api.api.problems import PageOf
from localidades_api.bulk.answers import Point
from localidades_api.catalogue.mercator import Box
from localidades_api.catalogue.schemas import Release
from localidades_api.database.pool import Database

OPENAPI = ("{base}/openapi.json", "application/json")
DOCS = "{base}/docs"


class Edition(NamedTuple):
    """An edition of the outlines: `tag` is the value of `Outlines.edition`, `ids` has keys with an outline."""

    name: str
    tag: str
    ids: Sequence[int]


class Outlines(NamedTuple):
    """The outlines of municipios and estados that an extension has, for those that show them."""

    edition: TextClause  # SQL for the name of their edition, a dot, and what changes with them; null without any
    find_geometries: Callable[[Database, Sequence[int]], Awaitable[Mapping[int, bytes]]]  # GeoJSON by key
    find_touched: Callable[[Database, Box], Awaitable[Mapping[int, bool]]]  # whether each outline touches a box
    get_edition: Callable[[Database], Awaitable[Edition | None]]
    # The municipio at each point, a latitude and a longitude, as a row that begins with its key, None if it is in none.
    find_municipios: Callable[[Database, Edition, Release, Sequence[Point]], Awaitable[Sequence[Row[Any]]]]


class Extension(NamedTuple):
    """A router, and its entries in the documents of the service.

    In addresses, `{base}` is replaced by that of the service.
    """

    router: APIRouter
    path: str = ""  # of its addresses, unless they are below /api/census; crawlers leave them out
    definition: tuple[str, str] | None = OPENAPI  # for programs: address and media type
    documentation: str = DOCS  # for people
    link: str = ""  # the words of a link to `path`, if /openapi.json does not describe it
    summary: str = ""  # a line of /llms.txt
    problem_pages: Mapping[str, PageOf] = {}  # what describes the problems of a path, if pages of others do not fit
    tags: tuple[dict[str, str], ...] = ()  # of its operations in /openapi.json, with their descriptions
    outlines: Outlines | None = None


def outlines_of(request: Request) -> Outlines | None:
    """Return the outlines that the application's extensions have, if one has any."""
    extensions: Sequence[Extension] = request.app.state.extensions
    return next((one.outlines for one in extensions if one.outlines), None)
