"""What an extension, a folder of `localidades_api.extensions`, tells `create_app` of itself."""

from collections.abc import Mapping
from typing import NamedTuple

from fastapi import APIRouter

from localidades_api.api.problems import PageOf

OPENAPI = ("{base}/openapi.json", "application/json")
DOCS = "{base}/docs"


class Extension(NamedTuple):
    """A router, and what the documents of the service say of it.

    In the addresses, `{base}` stands for that of the service.
    """

    router: APIRouter
    path: str  # of its addresses, which crawlers leave out
    definition: tuple[str, str] | None = OPENAPI  # for programs: address and media type
    documentation: str = DOCS  # for people
    link: str = ""  # the words of a link to `path`, if /openapi.json does not describe it
    summary: str = ""  # a line of /llms.txt
    problem_pages: Mapping[str, PageOf] = {}  # what describes the problems of a path, if pages of others do not fit
    tags: tuple[dict[str, str], ...] = ()  # of its operations in /openapi.json, with their descriptions
