"""What can go wrong, as types; `problems` turns them into answers and `cli` into exit codes.

A type that can be answered has a `slug`, by which clients know it and which never changes (RFC 9457 §3.1.1), and says
in two sentences what it means and what to do.

LocalidadesError                 500
├── CommandError                 what only a command can meet; no request is answered with it
│   ├── ConfigurationError       a setting that can't be used
│   ├── WorkerError              a worker process that can't start
│   ├── EmbeddedPostgresError    the private Postgres can't be found or started
│   ├── CatalogueError           a file that can't be imported; nothing was changed
│   ├── ImportRunningError       another import, or a retirement, holds the lock
│   ├── PublicationError         a release that can't become the current one; nothing was changed
│   ├── InsufficientMemoryError  more is read than the process may hold
│   ├── UncertainPublicationError the connection was lost in the middle of a publication
│   ├── RetirementError          a release that can't be retired; nothing was changed
│   ├── RoleError                a role that can't be given its rights; nothing was changed
│   ├── UncheckableError         a service that can't be compared with a file
│   └── OutputError              what a command says can't be written
│       └── ReaderGoneError      nobody reads it any more
├── RequestError                 400
│   ├── InvalidParametersError   422
│   ├── NotFoundError            404
│   │   └── InvalidPageError     404, with the number of pages
│   ├── GoneError                410, with the last release that knew the key
│   ├── MethodNotAllowedError    405
│   ├── NotAcceptableError       406
│   ├── RequestTimeoutError      408, and the connection ends
│   ├── UriTooLongError          414, and the connection ends
│   ├── TooManyRequestsError     429, with Retry-After
│   └── HeaderFieldsTooLargeError 431, and the connection ends
└── UnavailableError             503, with Retry-After
    ├── OverloadedError          there is more to do than the process takes on
    │   └── DownloadsFullError   as many files are being sent as may be
    ├── ComparisonRunningError   a comparison that takes longer than a request may, and goes on
    ├── NoReleaseError           nothing has been published yet
    └── DatabaseUnavailableError the database does not answer
"""

from collections.abc import Mapping
from typing import ClassVar


class LocalidadesError(Exception):
    """Root of the errors that this project raises on purpose; its text is meant for the user."""

    status: ClassVar[int] = 500
    title: ClassVar[str] = "Internal Server Error"
    slug: ClassVar[str] = "internal-error"
    meaning: ClassVar[str] = "Something that nobody foresaw went wrong in the service; its log has the cause."
    remedy: ClassVar[str] = "Ask again later; if it stays, tell whoever runs the service when it happened."

    @property
    def detail(self) -> str:
        """The sentence for the user, without anything that the user sent."""
        return str(self) or self.meaning

    @property
    def members(self) -> dict[str, object]:
        """Further members of the problem document (RFC 9457 §3.2)."""
        return {}

    @property
    def headers(self) -> dict[str, str]:
        """Headers that the answer needs besides those of every answer."""
        return {}


class CommandError(LocalidadesError):
    """What only a command can meet: no request is answered with it, so it has no type of problem."""


class ConfigurationError(CommandError):
    """A setting can't be used."""


class WorkerError(CommandError):
    """A worker process can't start."""


class EmbeddedPostgresError(CommandError):
    """The private Postgres can't be found or started."""


class CatalogueError(CommandError):
    """A catalogue is refused as a whole; nothing was changed."""


class ImportRunningError(CommandError):
    """Another import, or the retirement of a release, is under way on this database."""

    def __init__(self) -> None:
        super().__init__(
            "Another import is running on this database, or a release is being retired; wait for it to end."
        )


class PublicationError(CommandError):
    """A release can't become the current one; nothing was changed."""


class InsufficientMemoryError(CommandError):
    """A catalogue needs more memory than the process may have."""

    def __init__(self) -> None:
        super().__init__(
            "There is not enough memory: to read a catalogue of INEGI's takes some 300 MB; raise the limit, or run this"
            " on another machine."
        )


class UncertainPublicationError(CommandError):
    """The connection was lost while a release was being published: only the database knows whether it is."""

    def __init__(self, release: str) -> None:
        super().__init__(
            f"The connection to the database was lost while release {release} was being published: see with"
            " `localidades-api releases` whether it is there, and if not, import it again."
        )


class RetirementError(CommandError):
    """A release can't be retired; nothing was changed."""


class RoleError(CommandError):
    """A role can't be given its rights; nothing was changed."""


class UncheckableError(CommandError):
    """A service gives nothing that could be compared with a file."""


class OutputError(CommandError):
    """What a command has to say can't be written; what it did stands."""


class ReaderGoneError(OutputError):
    """Whoever read what a command says has gone, as `head` goes; there is nobody to be told."""


class RequestError(LocalidadesError):
    """The request is at fault."""

    status = 400
    title = "Bad Request"
    slug = "bad-request"
    meaning = "The request is malformed in a way that has no type of its own."
    remedy = "Compare it with an example of the reference."


class InvalidParametersError(RequestError):
    """Query parameters that are unknown, repeated, undecodable or out of their bounds.

    `faults` are pairs of a parameter's name and a sentence; neither holds what the client sent, but for a
    name that is plain ASCII.
    """

    status = 422
    title = "Unprocessable Content"
    slug = "invalid-parameters"
    meaning = "A parameter is unknown here, given twice, not UTF-8, or out of its bounds; nothing is ever ignored."
    remedy = "Correct what `errors` names: each has the `parameter` and a `message` that says what it takes."

    def __init__(self, faults: list[tuple[str, str]]) -> None:
        super().__init__("The query has parameters that can't be used; `errors` says which and why.")
        self.faults = faults

    @property
    def members(self) -> dict[str, object]:
        """The list of `parameter` and `message`."""
        return {"errors": [{"parameter": name, "message": message} for name, message in self.faults]}


class NotFoundError(RequestError):
    """There is no such resource."""

    status = 404
    title = "Not Found"
    slug = "not-found"
    meaning = "There is nothing at this address: no such path, key or release."
    remedy = "Check the key; `/api/census/` has the addresses of the lists, `/api/census/releases/` the releases."


class InvalidPageError(NotFoundError):
    """A page past the last one."""

    slug = "invalid-page"
    meaning = "The list has no page of this number."
    remedy = "Ask for a page from 1 to `total_pages`, or follow the links of the header `Link`."

    def __init__(self, total_pages: int) -> None:
        super().__init__("Invalid page.")
        self.total_pages = total_pages

    @property
    def members(self) -> dict[str, object]:
        """The number of pages there are."""
        return {"total_pages": self.total_pages}


class GoneError(RequestError):
    """A key that an earlier release had; `successor` is the key of what took its place, if that can be told."""

    status = 410
    title = "Gone"
    slug = "gone"
    meaning = "This release does not have the key, but an earlier one had it: INEGI has withdrawn it."
    remedy = "Go on to `successor` if it is not null; the record as it was is there with `release=` and `last_release`."

    def __init__(self, last_release: str, successor: int | None) -> None:
        told = " What took its place is `successor`." if successor is not None else ""
        super().__init__(f"This release does not have the key; `last_release` is the last that had it.{told}")
        self.last_release = last_release
        self.successor = successor

    @property
    def members(self) -> dict[str, object]:
        """The last release that knew the key, and its successor."""
        return {"last_release": self.last_release, "successor": self.successor}


class MethodNotAllowedError(RequestError):
    """A method other than GET, HEAD and OPTIONS."""

    status = 405
    title = "Method Not Allowed"
    slug = "method-not-allowed"
    meaning = "The service can only be read."
    remedy = "Use GET or HEAD."

    def __init__(self) -> None:
        super().__init__("This resource can only be read: use GET.")


class NotAcceptableError(RequestError):
    """No representation that the Accept header allows."""

    status = 406
    title = "Not Acceptable"
    slug = "not-acceptable"
    meaning = "The header Accept allows no representation that this resource has."
    remedy = "Accept one of the media types of `available`, or choose with `format`, which wins over the header."

    def __init__(self, media_types: list[str], reason: str | None = None) -> None:
        super().__init__(reason or f"The Accept header allows none of: {', '.join(media_types)}.")
        self.media_types = media_types

    @property
    def members(self) -> dict[str, object]:
        """The media types there are."""
        return {"available": self.media_types}


class RequestTimeoutError(RequestError):
    """A request that was begun and not finished in its time."""

    status = 408
    title = "Request Timeout"
    slug = "request-timeout"
    meaning = "The request was begun and not finished in its time."
    remedy = "Send it whole, on a new connection."


class UriTooLongError(RequestError):
    """A target of more bytes than any address of the service has."""

    status = 414
    title = "URI Too Long"
    slug = "uri-too-long"
    meaning = "The address, with its query, is longer than 8 KiB."
    remedy = "Ask for less at a time: no address of the service needs as much."


class TooManyRequestsError(RequestError):
    """A client that has asked more often than it may; the layer that counts adds when it may again."""

    status = 429
    title = "Too Many Requests"
    slug = "too-many-requests"
    meaning = "This address has asked more often than the service allows one to."
    remedy = "Ask again after the seconds of `Retry-After`; the header `RateLimit` says how many requests are left."

    def __init__(self) -> None:
        super().__init__("This address has used up its requests for now; Retry-After says when there are more.")


class HeaderFieldsTooLargeError(RequestError):
    """A head of more bytes than are read."""

    status = 431
    title = "Request Header Fields Too Large"
    slug = "header-fields-too-large"
    meaning = "The request's first line and headers are larger than 16 KiB."
    remedy = "Leave out headers that the service does not read, such as cookies."


class UnavailableError(LocalidadesError):
    """The service can't answer now but expects to soon."""

    status = 503
    title = "Service Unavailable"
    slug = "unavailable"
    meaning = "The service can't answer now, but expects to soon."
    remedy = "Ask again after the seconds of `Retry-After`."
    retry_after: ClassVar[int] = 5

    @property
    def headers(self) -> dict[str, str]:
        """Retry-After in seconds (RFC 9110 §10.2.3)."""
        return {"Retry-After": str(self.retry_after)}


class OverloadedError(UnavailableError):
    """There is more to do than the process takes on at one time."""

    slug = "overloaded"
    meaning = "The service has as much to do as it takes on at one time; what it holds in memory it goes on answering."
    remedy = "Ask again after the seconds of `Retry-After`, and later each time; ask for fewer things at one time."
    retry_after = 1

    def __init__(self) -> None:
        super().__init__("The service has too much to do at the moment.")


class DownloadsFullError(OverloadedError):
    """As many files are being sent as may be at one time; nothing else is refused for that."""

    slug = "downloads-full"
    meaning = "The service is sending as many files as it may at one time; it goes on answering everything else."
    remedy = (
        "Ask for the file again after the seconds of `Retry-After`; lists and single records can be read meanwhile."
    )
    retry_after = 5

    def __init__(self) -> None:
        UnavailableError.__init__(self, "All downloads are taken at the moment; everything else is answered.")


class ComparisonRunningError(UnavailableError):
    """A comparison of two releases that takes longer than a request may; it goes on, and is kept."""

    slug = "comparison-running"
    meaning = "Two releases are being compared for the first time, which takes longer than a request may."
    remedy = "Ask again after the seconds of `Retry-After`: the comparison goes on, and its result is kept."

    def __init__(self) -> None:
        super().__init__("The releases are still being compared; ask again.")


class NoReleaseError(UnavailableError):
    """Nothing has been published yet."""

    slug = "no-release"
    meaning = "Nothing has been published yet: there is no catalogue to read."
    remedy = "Load one with `localidades-api import` or `localidades-api migrate`; then ask again."

    retry_after = 30

    def __init__(self) -> None:
        super().__init__("No catalogue has been published yet.")


class DatabaseUnavailableError(UnavailableError):
    """The database is out of reach, refuses connections, or is too slow; its text is for the operator."""

    slug = "database-unavailable"
    meaning = "The database is out of reach, refuses connections, or is too slow."
    remedy = "Ask again after the seconds of `Retry-After`; what the service holds in memory it goes on answering."

    def __init__(
        self,
        text: str = "The database does not answer: see that it runs and that DATABASE_URL is right.",
        served: Mapping[str, object] | None = None,
        *,
        detail: str = "The database does not answer.",
        is_passing: bool = False,
        is_unforeseen: bool = False,
    ) -> None:
        super().__init__(text)
        self._detail = detail
        self.is_for_probe = served is not None
        self.served = served or {}
        self.is_unforeseen = is_unforeseen  # it may be this service's fault: the log has a traceback
        self.is_passing = is_passing  # it was the connection's fault: another may do

    @property
    def members(self) -> dict[str, object]:
        """For a probe: what goes on being served from memory."""
        return dict(self.served)

    @property
    def detail(self) -> str:
        """What a client may know of it; whoever asks a probe runs the service."""
        return str(self) if self.is_for_probe else self._detail
