"""Builds the responses for resources of a release: representation, conditional requests, pagination, HTML.

At its end are the responses that routes declare for the OpenAPI document.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import Any, Self
from urllib.parse import urlencode

from fastapi import Request
from pydantic import BaseModel
from pydantic_core import from_json
from starlette.responses import Response

from localidades_api.api.params import (
    ChangesQuery,
    LocalitiesQuery,
    LocalityQuery,
    MunicipalitiesQuery,
    PagedQuery,
    ReleaseQuery,
    ReleasesQuery,
    RepresentationQuery,
    StatesQuery,
    parameters_of,
)
from localidades_api.api.problems import problem_document
from localidades_api.api.public_address import public_url, public_variant
from localidades_api.api.redirects import with_query
from localidades_api.api.route_table import allowed_methods
from localidades_api.api.services import Services
from localidades_api.catalogue.pagination import (
    MAX_HTML_PAGE_SIZE,
    PAGE_SIZE,
    Paging,
    neighbours,
    page_of_first_record,
)
from localidades_api.catalogue.schemas import (
    GoneProblem,
    InvalidPageProblem,
    InvalidParametersProblem,
    NotAcceptableProblem,
    Problem,
    Release,
    UnsupportedMediaTypeProblem,
)
from localidades_api.errors import (
    DatabaseUnavailableError,
    GoneError,
    InvalidPageError,
    InvalidParametersError,
    LocalidadesError,
    NotAcceptableError,
    NotFoundError,
    StatusError,
    UnsupportedMediaTypeError,
)
from localidades_api.html.renderer import FORMATS, HTML, JSON, Renderer, View, select_renderer
from localidades_api.http.caching import CACHE_CONTROL, EarlyResponse, check_modified, freshness_headers
from localidades_api.http.documents import respond_with_document
from localidades_api.http.headers import VARY_BY_CODING, VARY_BY_LANGUAGE, VARY_BY_TYPE, link_header
from localidades_api.http.negotiation import CODINGS, choose_coding, compress
from localidades_api.http.paths import is_census, root_of
from localidades_api.languages.accept_language import preferred_language
from localidades_api.languages.translators import Language
from localidades_api.names.index import NameIndex


@dataclass(frozen=True, slots=True)
class ResponseBuilder:
    """Builds the response to one request, from a release and in one representation.

    `pinned` is the release that the request names. `variant` is added to the ETag of a response that depends on more
    than its release, `page_variant` to that of an HTML page that does. `is_immutable` says whether the request names
    all releases that the response depends on. `current` is the current release if an HTML page is of another one.
    """

    request: Request
    query: ReleaseQuery | ReleasesQuery | ChangesQuery
    renderer: Renderer
    release: Release
    pinned: str | None = None
    language: Language = "en"
    variant: str = ""
    page_variant: str = ""
    is_immutable: bool = False
    current: str | None = None

    @classmethod
    async def begin(
        cls,
        request: Request,
        query: ReleaseQuery | ReleasesQuery,
        services: Services,
        *,
        by_name: bool = False,
    ) -> Self:
        """Choose the representation and the release; raise NotAcceptableError or NotFoundError if there is none.

        Raises EarlyResponse for an HTML page with too many records, whichever list it is of, and
        InvalidParametersError for one of some columns.
        """
        renderer = select_renderer(query.format, request.headers)
        name = query.release if isinstance(query, ReleaseQuery) else None
        release = await services.release(name, by_name=by_name)
        builder = cls.of(request, query, renderer, release, name)
        if name is None or not builder.wants_html:
            return builder
        current = (await services.release(None)).name
        return replace(builder, current=None if current == name else current)

    @classmethod
    def of(
        cls,
        request: Request,
        query: ReleaseQuery | ReleasesQuery | ChangesQuery,
        renderer: Renderer,
        release: Release,
        pinned: str | None,
    ) -> Self:
        """Build from a representation and a release that are known; raise as `begin` does."""
        language = query.lang or preferred_language(request.headers)
        builder = cls(request, query, renderer, release, pinned, language, is_immutable=pinned is not None)
        if builder.wants_html:
            _refuse_fields(query)
            _refuse_too_large(query)
        return builder

    @classmethod
    async def begin_record(cls, request: Request, query: ReleaseQuery, services: Services, id_: int) -> Self:
        """Begin the response with the record of a key, which may not exist; redirect a key with leading zeros.

        Its HTML page may show other releases.
        """
        if request.scope["path"].rstrip("/").rpartition("/")[2] != str(id_):
            raise EarlyResponse(HTTPStatus.PERMANENT_REDIRECT, {"Location": with_query(request, f"../{id_}/")})
        builder = replace(await cls.begin(request, query, services), page_variant=f".{services.releases.fingerprint}")
        builder.check_modified(exists=False)
        return builder

    def depending_on(self, names: NameIndex) -> Self:
        """Return a builder for results by name, which also depend on the names of earlier releases."""
        return replace(self, variant=f".{names.digest}", is_immutable=False)

    @property
    def wants_html(self) -> bool:
        """Whether the response is an HTML page."""
        return self.renderer is not JSON

    def check_modified(self, paging: Paging | None = None, *, exists: bool = True) -> None:
        """Raise EarlyResponse (304) if the client already has this representation: call it before what takes time.

        `answer` does so too. `exists` says whether the resource is known to exist.
        """
        if "if-none-match" in self.request.headers:
            check_modified(self.request.headers, self.headers(self.renderer.format, paging), exists=exists)

    @property
    def _is_long(self) -> bool:
        """Whether the response is a list of more records than by default; as JSON it is then compressed."""
        return isinstance(self.query, PagedQuery) and self.query.page_size > PAGE_SIZE

    @property
    def _coding(self) -> str | None:
        """The content coding of the response."""
        if not self._is_long or self.wants_html:
            return None
        return choose_coding(self.request.headers.getlist("accept-encoding"), CODINGS)

    def _representation(self, format_: str) -> str:
        """Name the representation for its ETag: all that a response depends on in addition to the release."""
        if format_ == "api":
            current = f".{self.current}" if self.current else ""
            return f"{format_}{self.variant}{self.page_variant}{current}.{self.language}{public_variant(self.request)}"
        coding = self._coding if format_ == JSON.format else None
        return f"{format_}{self.variant}" + (f".{coding}" if coding else "")

    def links(self, chosen: Mapping[str, str] | None = None) -> dict[str, str]:
        """Return the parameters that links of a list keep: the release of the response, and the filters."""
        return {"release": self.release.name, **(chosen or {})}

    def headers(self, format_: str, paging: Paging | None = None) -> dict[str, str]:
        """Return the headers that a 200 and its 304 share."""
        # HTML pages mention other releases, whichever they are of.
        is_pinned = self.is_immutable and format_ != "api"
        headers = dict(freshness_headers(self.release, self._representation(format_), pinned=is_pinned))
        if format_ == "api":
            headers |= VARY_BY_LANGUAGE
        elif format_ == JSON.format and self._is_long:
            headers |= VARY_BY_CODING
        if not is_census(self.request.scope):  # whose router does so for each answer
            headers["Vary"] = ", ".join(filter(None, [VARY_BY_TYPE["Vary"], headers.get("Vary")]))
        if paging:
            pinned = {"format": format_, **paging.parameters}
            if paging.page_size != PAGE_SIZE:
                pinned["page_size"] = str(paging.page_size)
            if format_ == "api" and self.query.lang:
                pinned["lang"] = self.query.lang
            headers["Link"] = link_header(self.request.scope["path"], pinned, paging.page, paging.total_pages)
        return headers

    def answer(
        self,
        template: str,
        title: str,
        content: Mapping[str, Any] | bytes,
        paging: Paging | None = None,
        **context: object,
    ) -> Response:
        """Return the response with a resource; `content` is the resource or its JSON. Raises EarlyResponse."""
        self.check_modified(paging)
        headers = {**self.headers(self.renderer.format, paging), **self.renderer.headers}
        if self.renderer is JSON and isinstance(content, bytes):
            return self._respond(content, headers)
        query = {name: value for name, value in sorted(parameters_of(self.query).items()) if name != "format"}
        asked = {name: value for name, value in query.items() if name != "lang"}
        if paging:
            context = {"page": paging.page, "neighbours": neighbours(paging.page, paging.total_pages), **context}
        view = View(
            template,
            title,
            from_json(content) if isinstance(content, bytes) else content,
            root=root_of(self.request.scope),
            public_url=public_url(self.request),
            target=f"{self.request.scope['path']}?{urlencode({**asked, 'format': 'json'})}",
            allow=allowed_methods(self.request.scope),
            headers=self.headers(JSON.format, paging),
            release=self.release,
            pinned=self.pinned,
            current=self.current,
            language=self.language,
            query=query,
            context=context,
        )
        return self._respond(self.renderer.render(view), headers)

    def _respond(self, body: bytes, headers: Mapping[str, str]) -> Response:
        if (coding := self._coding) is None:
            return Response(body, headers=headers)
        return Response(compress(body, coding), headers={**headers, "Content-Encoding": coding})


_WITH_FIELDS = LocalitiesQuery | LocalityQuery | MunicipalitiesQuery | StatesQuery


def _refuse_fields(query: BaseModel) -> None:
    """Raise InvalidParametersError if the query chooses the columns of an HTML page, which has its own."""
    if isinstance(query, _WITH_FIELDS) and query.fields is not None:
        raise InvalidParametersError(
            [("fields", "An HTML page has columns of its own: leave this parameter out, or add `format=json`.")]
        )


def _refuse_too_large(query: BaseModel) -> None:
    """Redirect, by a relative address, if the query selects more records than an HTML page shows.

    Temporarily, since the address still returns JSON.
    """
    if isinstance(query, PagedQuery) and query.page_size > MAX_HTML_PAGE_SIZE:
        page = page_of_first_record(query.page, query.page_size, MAX_HTML_PAGE_SIZE)
        smaller = {"page": str(page), "page_size": str(MAX_HTML_PAGE_SIZE)}
        location = f"?{urlencode({**parameters_of(query), **smaller})}"
        raise EarlyResponse(HTTPStatus.TEMPORARY_REDIRECT, {"Location": location})


def envelope(paging: Paging, results: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the envelope of one page of a list."""
    return {"quantity": paging.quantity, "total_pages": paging.total_pages, "results": list(results)}


def answer_without_release(
    request: Request,
    query: RepresentationQuery,
    template: str,
    title: str,
    content: Any,  # noqa: ANN401  # as JSON
    pinned: str | None = None,
) -> Response:
    """Answer with content that depends on no release, as an HTML page or JSON; the page's links keep a `pinned` one."""
    renderer = select_renderer(query.format, request.headers)
    view = View(
        template,
        title,
        content,
        root=root_of(request.scope),
        public_url=public_url(request),
        target=f"{request.scope['path']}?format=json",
        pinned=pinned,
        language=query.lang or preferred_language(request.headers),
        query={name: value for name, value in (("release", pinned), ("lang", query.lang)) if value},
    )
    vary = "Accept, Accept-Language" if renderer is HTML else "Accept"
    headers = {"Cache-Control": CACHE_CONTROL, "Vary": vary, **renderer.headers}
    return respond_with_document(request.headers, renderer.render(view), headers)


# -- What routes declare

Responses = dict[int | str, dict[str, Any]]


def header(description: str, example: str) -> dict[str, Any]:
    """Declare a header of a response."""
    return {"description": description, "schema": {"type": "string"}, "example": example}


_MODELS: Mapping[type[LocalidadesError], type[Problem]] = {  # of errors whose problems have further members
    GoneError: GoneProblem,
    InvalidPageError: InvalidPageProblem,
    InvalidParametersError: InvalidParametersProblem,
    NotAcceptableError: NotAcceptableProblem,
    UnsupportedMediaTypeError: UnsupportedMediaTypeProblem,
}


def problem(error: LocalidadesError, description: str, model: type[Problem] | None = None) -> dict[str, Any]:
    """Declare a response with a problem; that of `error` is the example, and its type chooses the model."""
    content = {JSON.problem_type: {"example": problem_document(error)}}
    return {"model": model or _MODELS.get(type(error), Problem), "description": description, "content": content}


UNAUTHORIZED: Responses = {401: problem(StatusError(401, "Not authenticated", None), "The request has no valid key.")}

_HOW_LONG = "How long caches may keep the response."
OF_RELEASE = {"Catalogue-Release": header("The release that the response comes from.", "2018-09")}
_FRESHNESS = {
    **OF_RELEASE,
    "ETag": header("Changes when the release changes or the service is upgraded.", '"2018-09.json.0123456789ab"'),
    "Last-Modified": header("When the release was published.", "Fri, 28 Sep 2018 10:12:00 GMT"),
    "Cache-Control": header(_HOW_LONG, CACHE_CONTROL),
}
_LINK = header(
    "The pages `first`, `prev`, `next` and `last` of the same release (RFC 8288).",
    '</api/census/localidades/?page=2&format=json&release=2018-09>; rel="next"',
)

ERRORS: Responses = {
    422: problem(
        InvalidParametersError([("page", "A page number is a whole number from 1, written with the digits 0 to 9.")]),
        "A parameter is unknown, repeated or out of range.",
    ),
    503: {
        **problem(
            DatabaseUnavailableError(),
            "No catalogue is published yet, the database does not answer, or the service is at capacity.",
        ),
        "headers": {"Retry-After": header("Seconds to wait before trying again.", "5")},
    },
}
NEGOTIATED: Responses = {
    **ERRORS,
    404: problem(NotFoundError("There is no such release."), "There is no such release."),
    406: problem(
        NotAcceptableError(list(FORMATS)),
        "The resource has no representation that the Accept header allows.",
    ),
}
CACHEABLE: Responses = {
    **NEGOTIATED,
    200: {"headers": _FRESHNESS},
    304: {"description": "The client already has this response (If-None-Match).", "headers": _FRESHNESS},
}
LISTED: Responses = {
    **{status: {**CACHEABLE[status], "headers": {**_FRESHNESS, "Link": _LINK}} for status in (200, 304)},
    307: {
        "description": f"Redirects to a smaller page: an HTML page has at most {MAX_HTML_PAGE_SIZE} records.",
        "headers": {"Location": header("The relative address of the smaller page.", "?page=1&page_size=100")},
    },
    404: problem(InvalidPageError(6088), "The page is past the last one, or the release does not exist."),
}
REVALIDATED: Responses = {200: {"headers": {"Cache-Control": header(_HOW_LONG, "no-cache")}}}
NO_KEY: Responses = {
    308: {
        "description": "Redirects to the key without its leading zero.",
        "headers": {"Location": header("The relative address with the key's canonical spelling.", "../10010001/")},
    },
    404: problem(
        NotFoundError("Neither this release nor an earlier one has this key."),
        "Neither this release nor an earlier one has the key, or the release does not exist.",
    ),
    410: problem(GoneError("2012-06", 10010002), "An earlier release had the key, and this one does not."),
}
