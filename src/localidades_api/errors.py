"""The errors of this package; `problems` turns them into answers and `cli` into exit codes.

A type that a response can carry has a `slug`, which identifies it and never changes (RFC 9457 §3.1.1), and says
what it means and what to do.
"""

from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import ClassVar

# The phrases of RFC 9110 §15, where those of Python 3.11 are older.
_PHRASES = {413: "Content Too Large", 414: "URI Too Long", 422: "Unprocessable Content"}


class LocalidadesError(Exception):
    """Root of the errors that this project raises on purpose; its text is for the user."""

    status: int = 500
    title: str = "Internal Server Error"
    slug: ClassVar[str] = "internal-error"
    text: ClassVar[str] = ""  # of an error that is raised without one
    meaning: ClassVar[str] = "An unexpected error occurred in the service; its log has the cause."
    remedy: ClassVar[str] = (
        "Try again later. If it keeps happening, give the operator the time and the `X-Request-Id` header."
    )

    def __init_subclass__(cls) -> None:
        cls.title = _PHRASES.get(cls.status) or HTTPStatus(cls.status).phrase

    def __init__(
        self, text: str = "", *, members: Mapping[str, object] | None = None, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(text or self.text)
        self.members = members or {}  # further members of the problem document (RFC 9457 §3.2)
        self.headers = headers or {}  # in addition to those of every answer

    @property
    def detail(self) -> str:
        """The sentence for the user, without anything that the user sent."""
        return str(self) or self.meaning


class CommandError(LocalidadesError):
    """Raised by commands only: no response carries it, so it has no problem type."""


class ConfigurationError(CommandError):
    """A setting can't be used."""


class EmbeddedPostgresError(CommandError):
    """The private Postgres can't be found or started."""


class CatalogueError(CommandError):
    """A catalogue is refused as a whole; nothing was changed."""


class AlreadyPublishedError(CatalogueError):
    """A catalogue is already published from the same file, as `release`; there is nothing to import."""

    def __init__(self, release: str, remedy: str) -> None:
        super().__init__(f"This very file is already published, as release {release}: {remedy}")
        self.release = release


class ImportRunningError(CommandError):
    """Another import, or the retirement of a release, is under way on this database."""

    text = "Another import is running on this database, or a release is being retired: wait for it to finish."


class InsufficientMemoryError(CommandError):
    """A catalogue needs more memory than the process may have."""

    text = (
        "There is not enough memory: reading INEGI's catalogue takes about 300 MB. Raise the limit, or run this on"
        " another machine."
    )


class IndexingError(CommandError):
    """The index of a release's names can't be built, so nothing was stored."""


class ReleaseError(CommandError):
    """A release can't become the current one, or can't be retired; nothing was changed."""


class OutputError(CommandError):
    """A command's output can't be written; the command's work is done."""


class ReaderGoneError(OutputError):
    """The reader of the output has gone, as `head` does, so the command says nothing more."""


class StatusError(LocalidadesError):
    """A status that says all there is: of a head that is too large, or of an HTTPException that an added route raised.

    It has no problem type.
    """

    slug = ""

    def __init__(self, status: int, text: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(text, headers=headers)
        self.status = status
        self.title = _PHRASES.get(status) or (HTTPStatus(status).phrase if status in set(HTTPStatus) else "Error")


class RequestError(LocalidadesError):
    """The request is at fault."""

    status = 400
    slug = "bad-request"
    meaning = "The request is malformed, and no other problem type describes how."
    remedy = "Compare it with the examples in the documentation."


class InvalidParametersError(RequestError):
    """Query parameters that are unknown, repeated, undecodable or out of their bounds.

    `faults` are pairs of a parameter's name and a sentence; neither holds what the client sent, except a
    name that is plain ASCII.
    """

    status = 422
    slug = "invalid-parameters"
    meaning = "A query parameter is unknown, repeated, not UTF-8, or out of range. The service never ignores one."
    remedy = "Fix what `errors` lists: each entry has the `parameter` and a `message` that says what it accepts."

    def __init__(self, faults: list[tuple[str, str]]) -> None:
        errors = [{"parameter": name, "message": message} for name, message in faults]
        self.faults = faults
        super().__init__("The query has invalid parameters; `errors` lists them.", members={"errors": errors})


class UnreadableBodyError(RequestError):
    """The rows can't be read any further; a single bad row is reported in its own result."""

    status = 422
    slug = "unreadable-body"
    meaning = "The rows can't be read: the header is missing, the format is another one, or a quote is never closed."
    remedy = "Do what `detail` says. Send CSV with a header, an object a line, or one document with `rows`."


class NotFoundError(RequestError):
    """The resource does not exist."""

    status = 404
    slug = "not-found"
    meaning = "Nothing exists at this address: the path, the key or the release is unknown."
    remedy = "Check the key. `/api/census/` links to the lists, and `/api/census/releases/` shows the releases."


class InvalidPageError(NotFoundError):
    """A page past the last one."""

    slug = "invalid-page"
    meaning = "The list has no page with this number."
    remedy = "Request a page from 1 to `total_pages`, or follow the links in the `Link` header."

    def __init__(self, total_pages: int) -> None:
        super().__init__("Invalid page.", members={"total_pages": total_pages})


class GoneError(RequestError):
    """A key of an earlier release; `successor` is the key of the place that replaced it, if that is known."""

    status = 410
    slug = "gone"
    meaning = "An earlier release had this key, but this one does not: INEGI has withdrawn it."
    remedy = "Use the key in `successor` if it is not null. To read the old record, set `release=` to `last_release`."

    def __init__(self, last_release: str, successor: int | None) -> None:
        told = " `successor` has replaced it." if successor is not None else ""
        super().__init__(
            f"This release does not have the key; `last_release` is the last one that had it.{told}",
            members={"last_release": last_release, "successor": successor},
        )
        self.last_release = last_release
        self.successor = successor


class MethodNotAllowedError(RequestError):
    """A method that the resource does not allow."""

    status = 405
    slug = "method-not-allowed"
    meaning = "The resource does not allow this method; nearly all resources are read-only."
    remedy = "Use a method that the `Allow` header names."

    def __init__(self, allow: str = "GET") -> None:
        method = allow.partition(",")[0]
        super().__init__(
            "This resource is read-only: use GET." if method == "GET" else f"Use {method} here.",
            headers={"Allow": allow},  # RFC 9110 §15.5.6
        )


class NotAcceptableError(RequestError):
    """No representation that the Accept header allows."""

    status = 406
    slug = "not-acceptable"
    meaning = "The resource has no representation that the Accept header allows."
    remedy = "Accept one of the media types in `available`, or set `format`, which overrides the header."

    def __init__(self, media_types: list[str], reason: str | None = None) -> None:
        text = reason or f"The Accept header allows none of: {', '.join(media_types)}."
        super().__init__(text, members={"available": media_types})


class RequestTimeoutError(RequestError):
    """A client began a request and did not finish it in time."""

    status = 408
    slug = "request-timeout"
    meaning = "The client began a request and did not finish it in time."
    remedy = "Send the whole request again on a new connection."


class ContentTooLargeError(RequestError):
    """A body, or the work that it asks for, is too large."""

    status = 413
    slug = "content-too-large"
    meaning = "The body of the request is larger than this resource takes, or asks for more than it answers at a time."
    remedy = "Send less at a time."

    def __init__(self, limit: int, of: str = "bytes") -> None:
        super().__init__(f"Send at most {limit:,} {of} at a time.")


class UnsupportedMediaTypeError(RequestError):
    """A body of a media type that the resource does not read."""

    status = 415
    slug = "unsupported-media-type"
    meaning = "The resource does not read bodies of this media type."
    remedy = "Send one of the media types in `supported`, and name it in the Content-Type header."

    def __init__(self, media_types: Sequence[str], *, is_form: bool = False) -> None:
        listed = ", ".join(media_types)
        body = "The body is a form: send the file alone, as `curl --data-binary @FILE` does. " if is_form else ""
        super().__init__(
            f"{body}Send one of these, named by Content-Type: {listed}.",
            members={"supported": list(media_types)},
            headers={"Accept-Post": listed},  # RFC 9110 §15.5.16 asks for such a header; W3C LDP §7.1
        )


class UnavailableError(LocalidadesError):
    """The service can't answer now but expects to soon."""

    status = 503
    slug = "unavailable"
    meaning = "The service can't answer right now, but expects to soon."
    remedy = "Try again after `Retry-After` seconds."
    retry_after: ClassVar[int] = 5  # seconds

    def __init__(self, text: str = "", *, members: Mapping[str, object] | None = None) -> None:
        super().__init__(text, members=members, headers={"Retry-After": str(self.retry_after)})


class OverloadedError(UnavailableError):
    """The process is at capacity."""

    slug = "overloaded"
    meaning = "The service is at capacity; cached pages are still served."
    remedy = "Try again after `Retry-After` seconds, wait longer each time, and send fewer requests at once."
    text = "The service is at capacity; try again later."
    retry_after = 1


class TransfersFullError(OverloadedError):
    """The maximum number of long transfers is under way; other requests are not refused."""

    slug = "transfers-full"
    meaning = "The service is sending as many files and answers to rows as it can; everything else is still served."
    remedy = "Send the request again after `Retry-After` seconds; lists and single records can be read meanwhile."
    text = "All places for files and rows are taken; everything else is still served."
    retry_after = 5


class ComparisonRunningError(UnavailableError):
    """A comparison of two releases outlasts the request; it continues, and its result is kept."""

    slug = "comparison-running"
    meaning = "The service is comparing two releases for the first time, which takes longer than one request may."
    remedy = "Try again after `Retry-After` seconds; the comparison continues, and its result is kept."
    text = "The releases are still being compared; try again shortly."


class SearchUnavailableError(UnavailableError):
    """The index of a release's names is being fetched, or can't be; the log has the reason."""

    slug = "search-unavailable"
    meaning = "The index of names that answers searches has not been fetched from the database yet, or is not in it."
    remedy = "Try again after `Retry-After` seconds; if that does not help, `localidades-api migrate` builds the index."
    text = "The index of names is not here yet; try again later. If it is missing, `localidades-api migrate` builds it."


class NoReleaseError(UnavailableError):
    """Nothing has been published yet."""

    slug = "no-release"
    meaning = "No catalogue has been published yet, so there is nothing to read."
    remedy = "Load one with `localidades-api import`, then try again."
    text = "No catalogue has been published yet."
    retry_after = 30


class DatabaseUnavailableError(UnavailableError):
    """The database is out of reach, refuses connections, or is too slow; its text is for the operator.

    `served` is for a probe: the release that is still served from memory.
    """

    slug = "database-unavailable"
    meaning = "The database is unreachable, refuses connections, or is too slow."
    remedy = "Try again after `Retry-After` seconds; cached pages are still served."

    def __init__(
        self,
        text: str = "The database does not answer: check that it is running and that DATABASE_URL is correct.",
        served: Mapping[str, object] | None = None,
        *,
        detail: str = "The database does not answer.",
        is_passing: bool = False,
        is_unforeseen: bool = False,
    ) -> None:
        super().__init__(text, members=served)
        self._detail = text if served is not None else detail  # only operators read probes
        self.is_unforeseen = is_unforeseen  # possibly a bug of this service: the log has a traceback
        self.is_passing = is_passing  # another connection may succeed

    @property
    def detail(self) -> str:
        """The sentence for clients, which names nothing of the inside."""
        return self._detail
