"""What can go wrong, as types; `problems` turns them into answers and `cli` into exit codes.

LocalidadesError                 500
├── ConfigurationError           a setting that can't be used
├── EmbeddedPostgresError        the private Postgres can't be found or started
├── CatalogueError               a file that can't be imported; nothing was changed
├── ImportRunningError           another import holds the lock
├── RequestError                 400
│   ├── InvalidParametersError   422
│   ├── NotFoundError            404
│   │   └── InvalidPageError     404, with the number of pages
│   ├── MethodNotAllowedError    405
│   └── NotAcceptableError       406
└── UnavailableError             503, with Retry-After
    ├── NoReleaseError           nothing has been published yet
    └── DatabaseUnavailableError the database does not answer
"""

from typing import ClassVar


class LocalidadesError(Exception):
    """Root of the errors that this project raises on purpose; its text is meant for the user."""

    status: ClassVar[int] = 500
    title: ClassVar[str] = "Internal Server Error"

    @property
    def detail(self) -> str:
        """The sentence for the user, without anything that the user sent."""
        return str(self)

    @property
    def members(self) -> dict[str, object]:
        """Further members of the problem document (RFC 9457 §3.2)."""
        return {}

    @property
    def headers(self) -> dict[str, str]:
        """Headers that the answer needs besides those of every answer."""
        return {}


class ConfigurationError(LocalidadesError):
    """A setting can't be used."""


class EmbeddedPostgresError(LocalidadesError):
    """The private Postgres can't be found or started."""


class CatalogueError(LocalidadesError):
    """A catalogue is refused as a whole; nothing was changed."""


class ImportRunningError(LocalidadesError):
    """Another import is under way on this database."""


class RequestError(LocalidadesError):
    """The request is at fault."""

    status = 400
    title = "Bad Request"


class InvalidParametersError(RequestError):
    """Query parameters that are unknown, repeated, undecodable or out of their bounds.

    `faults` are pairs of a parameter's name and a sentence; neither holds what the client sent, but for a
    name that is plain ASCII.
    """

    status = 422
    title = "Unprocessable Content"

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


class InvalidPageError(NotFoundError):
    """A page past the last one."""

    def __init__(self, total_pages: int) -> None:
        super().__init__("Invalid page.")
        self.total_pages = total_pages

    @property
    def members(self) -> dict[str, object]:
        """The number of pages there are."""
        return {"total_pages": self.total_pages}


class MethodNotAllowedError(RequestError):
    """A method other than GET, HEAD and OPTIONS."""

    status = 405
    title = "Method Not Allowed"

    def __init__(self) -> None:
        super().__init__("This resource can only be read: use GET.")


class NotAcceptableError(RequestError):
    """No representation that the Accept header allows."""

    status = 406
    title = "Not Acceptable"

    def __init__(self, media_types: list[str]) -> None:
        super().__init__(f"The Accept header allows none of: {', '.join(media_types)}.")
        self.media_types = media_types

    @property
    def members(self) -> dict[str, object]:
        """The media types there are."""
        return {"available": self.media_types}


class UnavailableError(LocalidadesError):
    """The service can't answer now but expects to soon."""

    status = 503
    title = "Service Unavailable"
    retry_after: ClassVar[int] = 5

    @property
    def headers(self) -> dict[str, str]:
        """Retry-After in seconds (RFC 9110 §10.2.3)."""
        return {"Retry-After": str(self.retry_after)}


class NoReleaseError(UnavailableError):
    """Nothing has been published yet."""

    retry_after = 30

    def __init__(self) -> None:
        super().__init__("No catalogue has been published yet.")


class DatabaseUnavailableError(UnavailableError):
    """The database is out of reach, refuses connections, or is too slow; its text is for the operator."""

    def __init__(self, text: str = "The database does not answer.") -> None:
        super().__init__(text)

    @property
    def detail(self) -> str:
        """What a client may know of it."""
        return "The database does not answer."
