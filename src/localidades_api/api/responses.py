"""Responses with resources, as JSON or HTML."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Self
from urllib.parse import urlencode

from fastapi import Request
from pydantic_core import from_json, to_json
from starlette.datastructures import Headers
from starlette.responses import Response

from localidades_api.api.params import NegotiatedQuery, PagedQuery, ReleaseQuery, parameters_of
from localidades_api.api.public_address import public_url, public_variant
from localidades_api.api.redirects import with_query
from localidades_api.api.route_table import allowed_methods
from localidades_api.catalogue.pagination import MAX_HTML_PAGE_SIZE, PAGE_SIZE, Paging, neighbours, page_of_first_record
from localidades_api.catalogue.schemas import Release
from localidades_api.errors import InvalidParametersError
from localidades_api.html.languages.accept_language import preferred_language
from localidades_api.html.languages.translators import Language
from localidades_api.html.renderer import FORMATS, HTML, JSON, View
from localidades_api.http.conditional import EarlyResponse
from localidades_api.http.headers import link_header
from localidades_api.http.negotiation import CODINGS, accept_header, choose_media_type
from localidades_api.http.paths import is_census, root_of
from localidades_api.http.representation import Representation, respond_with_document
from localidades_api.names.index import NameIndex
from localidades_api.releases.tracker import ReleaseTracker


@dataclass(slots=True)
class ResponseBuilder:
    """Builds the response to one request, in one representation, from a release or without one.

    A route calls `begin`, reads its resource and returns `answer`. `check_modified` in between saves reading what the
    client has.
    """

    request: Request
    query: NegotiatedQuery
    format: str  # of the representation
    pinned: str | None  # the name of the release, if the request gives it
    is_immutable: bool = False  # the request names every release that the response depends on
    variant: str = ""  # of the ETag: what the response depends on in addition to its release
    _release: Release | None = None
    _releases: ReleaseTracker | None = None

    @classmethod
    async def begin(
        cls,
        request: Request,
        query: NegotiatedQuery,
        releases: ReleaseTracker,
        *,
        id_: int | None = None,
        name: str | None = None,
        formats: Mapping[str, str] = FORMATS,
    ) -> Self:
        """Choose the representation and the release; raise NotAcceptableError or NotFoundError if there is none.

        `id_` is the key of a record, which may not exist; one with leading zeros is redirected. `name` is that of a
        release in the path; without it, the query may have one. Raises EarlyResponse for an HTML page with too many
        records, and InvalidParametersError for one of some columns.
        """
        if id_ is not None and request.scope["path"].rstrip("/").rpartition("/")[2] != str(id_):
            raise EarlyResponse(HTTPStatus.PERMANENT_REDIRECT, {"Location": with_query(request, f"../{id_}/")})
        format_ = _choose_format(request, query, formats)
        pinned = query.release if isinstance(query, ReleaseQuery) else name
        release = await releases.get(pinned)
        if format_ == HTML.format:
            _refuse_on_a_page(query)
        return cls(request, query, format_, pinned, pinned is not None, _release=release, _releases=releases)

    @classmethod
    def without_release(cls, request: Request, query: NegotiatedQuery) -> Self:
        """Choose the representation of what depends on no release; raise NotAcceptableError if there is none.

        The links of a page keep to the release that the query names.
        """
        pinned = query.release if isinstance(query, ReleaseQuery) else None
        return cls(request, query, _choose_format(request, query), pinned)

    @property
    def release(self) -> Release:
        """The release, of a builder that has one."""
        assert self._release is not None  # noqa: S101  # a route knows whether its resource is of a release
        return self._release

    @property
    def wants_html(self) -> bool:
        """Whether the response is an HTML page."""
        return self.format == HTML.format

    def depend_on(self, names: NameIndex) -> None:
        """Say that results by name also depend on the names of earlier releases."""
        self.variant, self.is_immutable = f".{names.digest}", False

    @property
    def language(self) -> Language:
        """The language of the HTML page."""
        return self.query.lang or preferred_language(self.request.headers)

    def represent(self) -> Representation:
        """Return the representation of a resource that is neither JSON nor a page."""
        return self._represent(self.format, None)

    def check_modified(self, paging: Paging | None = None) -> None:
        """Raise EarlyResponse (304) if the client has this response: an optimization, before what takes time."""
        if "if-none-match" in self.request.headers:
            self._represent(self.format, paging).check_modified()

    @property
    def _current(self) -> str | None:
        """The current release if the request names another one."""
        served = self._releases.served if self._releases else None
        return served.name if self.pinned and served and served.name != self.pinned else None

    def _represent(self, format_: str, paging: Paging | None) -> Representation:
        """Return the representation in a format of the resource; JSON of more records than by default is compressed."""
        name, is_page = f"{format_}{self.variant}", format_ == HTML.format
        vary = [] if is_census(self.request.scope) else ["Accept"]  # whose router does so for each answer
        if is_page and self._releases:  # a page mentions other releases, whichever it is of
            current = f".{self._current}" if self._current else ""
            name += f".{self._releases.fingerprint}{current}.{self.language}{public_variant(self.request)}"
            vary.append("Accept-Language")
        paged = _paged(self.query)
        is_long = paged is not None and paged.page_size > PAGE_SIZE
        asked = Headers() if self.wants_html and not is_page else self.request.headers  # a page shows uncoded JSON
        return Representation.of(
            asked,
            self.release,
            name,
            codings=CODINGS if is_long and format_ == JSON.format else (),
            vary=vary,
            is_pinned=self.is_immutable and not is_page,
            more={"Link": self._link(format_, paging)} if paging else {},
        )

    def _link(self, format_: str, paging: Paging) -> str:
        """Return the links to other pages of the release, in a format of the resource."""
        kept = {"format": format_, **paging.parameters}
        if paging.page_size != PAGE_SIZE:
            kept["page_size"] = str(paging.page_size)
        if format_ == HTML.format and self.query.lang:
            kept["lang"] = self.query.lang
        return link_header(self.request.scope["path"], kept, paging.page, paging.total_pages)

    def answer(
        self,
        template: str,
        title: str,
        content: Mapping[str, Any] | bytes | None = None,
        paging: Paging | None = None,
        **context: object,
    ) -> Response:
        """Return the response with a resource; `content` is the resource or its JSON, None for what is only a page."""
        if self.wants_html:
            body, media = self._render(template, title, content, paging, context), HTML.headers
        else:
            body, media = content if isinstance(content, bytes) else to_json(content), JSON.headers
        if self._release is None:
            vary = ["Accept"] * (content is not None) + ["Accept-Language"] * self.wants_html
            return respond_with_document(self.request.headers, body, media, vary=vary)
        return self._represent(self.format, paging).respond(body, media)

    def _render(
        self,
        template: str,
        title: str,
        content: Mapping[str, Any] | bytes | None,
        paging: Paging | None,
        context: Mapping[str, object],
    ) -> bytes:
        request, path = self.request, self.request.scope["path"]
        query = {name: value for name, value in sorted(parameters_of(self.query).items()) if name != "format"}
        asked = {name: value for name, value in query.items() if name != "lang"}
        if paging:
            context = {"page": paging.page, "neighbours": neighbours(paging.page, paging.total_pages), **context}
        view = View(
            template,
            title,
            from_json(content) if isinstance(content, bytes) else content or {},
            root=root_of(request.scope),
            public_url=public_url(request),
            target=path if content is None else f"{path}?{urlencode({**asked, 'format': 'json'})}",
            allow=allowed_methods(request.scope),
            headers=self._represent(JSON.format, paging).headers if self._release else {},
            release=self._release,
            pinned=self.pinned,
            current=self._current,
            language=self.language,
            query=query,
            borders=self._releases.borders.rpartition(".")[0] if self._releases else "",
            context=context,
        )
        return HTML.render(view)


def _choose_format(request: Request, query: NegotiatedQuery, formats: Mapping[str, str] = FORMATS) -> str:
    return query.format or formats[choose_media_type(accept_header(request.headers), list(formats))]


def _paged(query: object) -> PagedQuery | None:
    return query if isinstance(query, PagedQuery) else None


def _refuse_on_a_page(query: NegotiatedQuery) -> None:
    """Refuse the columns that a query chooses of an HTML page, and redirect to one that shows fewer records.

    Temporarily and by a relative address, since the address still returns JSON.
    """
    if getattr(query, "fields", None) is not None:
        raise InvalidParametersError(
            [("fields", "An HTML page has columns of its own: leave this parameter out, or add `format=json`.")]
        )
    if (paged := _paged(query)) and paged.page_size > MAX_HTML_PAGE_SIZE:
        page = page_of_first_record(paged.page, paged.page_size, MAX_HTML_PAGE_SIZE)
        smaller = {"page": str(page), "page_size": str(MAX_HTML_PAGE_SIZE)}
        location = f"?{urlencode({**parameters_of(query), **smaller})}"
        raise EarlyResponse(HTTPStatus.TEMPORARY_REDIRECT, {"Location": location})


def envelope(paging: Paging, results: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the envelope of one page of a list."""
    return {"quantity": paging.quantity, "total_pages": paging.total_pages, "results": list(results)}
