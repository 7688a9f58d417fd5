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
from localidades_api.releases.tracker import ReleaseTracker


class Edition(NamedTuple):
    """An edition of borders: `tag` is the value of `Borders.edition`, `ids` has the keys whose borders there are."""

    name: str
    tag: str
    ids: Sequence[int]


class Borders(NamedTuple):
    """The borders of municipios and estados that an extension has, for pages, layers and matches."""

    edition: TextClause  # SQL for the name of their edition, a dot, and what changes with them; null without any
    address: str  # of a municipio's as GeoJSON, relative to /api/census/, with `{id}`
    at: str  # of the municipio at a point, likewise
    find_geometries: Callable[[Database, Sequence[int]], Awaitable[Mapping[int, bytes]]]  # GeoJSON by key
    find_touched: Callable[[Database, Box], Awaitable[Mapping[int, bool]]]  # whether each touches a box
    get_edition: Callable[[Database], Awaitable[Edition | None]]
    # The municipio at each point, a latitude and a longitude, as a row that begins with its key, None if it is in none.
    find_municipios: Callable[[Database, Edition, Release, Sequence[Point]], Awaitable[Sequence[Row[Any]]]]


class Extension(NamedTuple):
    """A router, and its entries in the documents of the service."""

    router: APIRouter
    path: str = ""  # of its addresses, unless they are below /api/census; crawlers leave them out
    link: str = ""  # the words of a link to `path`, if /openapi.json does not describe it
    problem_pages: Mapping[str, PageOf] = {}  # what describes the problems of a path, if pages of others do not fit
    tags: tuple[dict[str, str], ...] = ()  # of its operations in /openapi.json, with their descriptions
    front_page: str = ""  # the template of a section of the front page
    municipios: str = ""  # the address of their layer as GeoJSON, for the map
    borders: Borders | None = None


def extensions_of(request: Request) -> Sequence[Extension]:
    """Return the extensions of the application."""
    extensions: Sequence[Extension] = request.app.state.extensions
    return extensions


def borders_of(request: Request, releases: ReleaseTracker) -> Borders | None:
    """Return the borders that an extension has, if any are imported."""
    borders = (extension.borders for extension in extensions_of(request) if extension.borders)
    return next(borders, None) if releases.borders else None


async def find_border(
    request: Request, releases: ReleaseTracker, database: Database, municipio_id: int
) -> bytes | None:
    """Return the border of a municipio as GeoJSON; None if there is none."""
    borders = borders_of(request, releases)
    return (await borders.find_geometries(database, [municipio_id])).get(municipio_id) if borders else None
