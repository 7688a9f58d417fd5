"""What an extension, a folder of `localidades_api.extensions`, tells `create_app` of itself."""

from typing import NamedTuple

from fastapi import APIRouter

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
    tags: tuple[dict[str, str], ...] = ()  # of its operations in /openapi.json, with their descriptions
