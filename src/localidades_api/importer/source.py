"""Opens the source of a catalogue, the demo, a file or an http(s) address, and suggests a release name."""

import hashlib
import os
import re
import signal
import socket
import stat
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Timer, current_thread, main_thread
from types import FrameType
from typing import IO, TYPE_CHECKING, Any, NoReturn, Self
from urllib.parse import unquote, urlsplit

from localidades_api.catalogue.schemas import DEMO_RELEASE
from localidades_api.errors import CatalogueError
from localidades_api.importer.demo.generate import DEMO_SHA256
from localidades_api.observability.progress import ImportStep, StepProgress

if TYPE_CHECKING:
    import httpx

MAX_FILE_BYTES = 512 * 1024**2  # INEGI's zip is 20 MB, its widest text 60 MB
_TOO_LARGE = f"The file is larger than {MAX_FILE_BYTES // 1024**2} MB: this is not a catalogue."
STDIN = "-"
_CHUNK = 1024**2  # bytes
FETCH_TIMEOUT = 60.0  # seconds without a byte
FETCH_TOTAL_TIMEOUT = 3600.0  # seconds

_REQUEST_HEADERS = {"Accept-Encoding": "gzip"}  # other encodings can unpack a kilobyte to a gigabyte

_DATED = re.compile(r"(?<![0-9])((?:19|20)[0-9]{2}-(?:0[1-9]|1[0-2])(?:-(?:0[1-9]|[12][0-9]|3[01]))?)(?![0-9])")


@dataclass(frozen=True, slots=True)
class Source:
    """A catalogue's file, open for reading; `file` is None for the demo, which is generated."""

    name: str
    file: IO[bytes] | None
    sha256: str


def is_address(source: str) -> bool:
    """Return whether a source has to be downloaded."""
    return re.match(r"(?i)[a-z][a-z0-9+.-]*://", source) is not None


@contextmanager
def open_source(source: str, progress: StepProgress) -> Iterator[Source]:
    """Lend the file that `source` names: `demo`, a path, `-` for standard input, or an http(s) address.

    A download goes to an unnamed temporary file, so nothing is left however the process ends. Raises CatalogueError
    if the file does not exist or is too large.
    """
    if source == DEMO_RELEASE:
        yield Source(DEMO_RELEASE, None, DEMO_SHA256)
    elif is_address(source):
        progress.begin(ImportStep.FETCH)
        with fetch_file(source, progress) as file:
            yield Source(unquote(Path(urlsplit(source).path).name) or "catalogue", file, _digest(file))
    else:
        with ExitStack() as stack:
            with _translate_system_errors():
                opened = _open_path(source, stack)
                digest = _digest(opened)
            yield Source("standard input" if source == STDIN else Path(source).name, opened, digest)


@contextmanager
def fetch_file(address: str, progress: StepProgress) -> Iterator[IO[bytes]]:
    """Lend what an http(s) address answers, as an unnamed temporary file."""
    with tempfile.TemporaryFile(prefix="localidades-") as file:
        with interruptible(), _translate_system_errors(), os.fdopen(os.dup(file.fileno()), "wb") as out:
            for chunk in _fetch(address, progress):
                out.write(chunk)
                progress.advance(len(chunk))
        yield file


def _open_path(source: str, stack: ExitStack) -> IO[bytes]:
    """Open a file; copy a pipe, which can be read only once, to an unnamed temporary file."""
    path, mode = Path(source), 0
    if source not in {"", STDIN}:
        with suppress(FileNotFoundError, NotADirectoryError, ValueError):  # other errors have their own reasons
            mode = path.stat().st_mode
    if not source or stat.S_ISDIR(mode):
        named = f"{source} is a folder" if source else "The path of the file is empty"
        raise CatalogueError(f"{named}: give the path or http(s) address of a zip, csv or txt.")
    if stat.S_ISREG(mode):
        if path.stat().st_size > MAX_FILE_BYTES:
            raise CatalogueError(_TOO_LARGE)
        return stack.enter_context(path.open("rb"))
    if source != STDIN and not stat.S_ISFIFO(mode):
        raise CatalogueError(f"There is no file {source}: give the path or http(s) address of a zip, csv or txt.")
    copied = stack.enter_context(tempfile.TemporaryFile(prefix="localidades-"))  # noqa: SIM115  # the stack is one
    with interruptible(), path.open("rb") if source != STDIN else nullcontext(sys.stdin.buffer) as pipe:
        while chunk := pipe.read(_CHUNK):
            copied.write(chunk)
            if copied.tell() > MAX_FILE_BYTES:
                raise CatalogueError(_TOO_LARGE)
    copied.flush()
    return copied


@contextmanager
def interruptible() -> Iterator[Callable[[], None]]:
    """Let Ctrl-C interrupt work that blocks the event loop: asyncio would only mark its task as cancelled.

    Python drops an exception that is raised in a destructor or in a weak reference's callback, and the garbage
    collector may run one at any time. An interruption that is lost in this way is raised at the end, or earlier by the
    function that this yields.
    """
    interrupted = False

    def interrupt(_number: int, _frame: FrameType | None) -> NoReturn:
        nonlocal interrupted
        interrupted = True
        raise KeyboardInterrupt

    def raise_if_interrupted() -> None:
        if interrupted:
            raise KeyboardInterrupt

    handler = signal.getsignal(signal.SIGINT)
    if current_thread() is not main_thread() or not callable(handler):
        yield raise_if_interrupted
        return
    signal.signal(signal.SIGINT, interrupt)
    try:
        yield raise_if_interrupted
    finally:
        signal.signal(signal.SIGINT, handler)
    raise_if_interrupted()


@contextmanager
def _translate_system_errors() -> Iterator[None]:
    """Turn errors of the system, such as a missing permission or a full disk, into CatalogueError."""
    try:
        yield
    except OSError as error:
        raise CatalogueError(f"The file can't be read or stored: {error.strerror}.") from error


def _fetch(address: str, progress: StepProgress) -> Iterator[bytes]:
    if not re.match("(?i)https?://", address):
        raise CatalogueError("The address of a catalogue must begin with http:// or https://.")
    import httpx  # noqa: PLC0415  # slow to import, and most catalogues are local files

    size = 0
    deadline = _Deadline(FETCH_TOTAL_TIMEOUT)
    try:
        with deadline, _open_response(address, deadline) as response:
            # Content-Length counts the bytes on the wire, which may be compressed.
            length = response.headers.get("content-length")
            if length and "content-encoding" not in response.headers:
                progress.expect(int(length))
            for chunk in response.iter_bytes():
                size += len(chunk)
                if size > MAX_FILE_BYTES:
                    raise CatalogueError(
                        f"The file at this address is larger than {MAX_FILE_BYTES // 1024**2} MB: this is not"
                        " a catalogue."
                    )
                yield chunk
        if deadline.passed:  # a response of unknown length ends with its connection
            raise httpx.ReadTimeout("")
    except httpx.HTTPStatusError as error:
        raise CatalogueError(
            f"The address answers {error.response.status_code}: check where INEGI publishes the file now."
        ) from error
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        reason = f"it takes more than {FETCH_TOTAL_TIMEOUT:.0f} s" if deadline.passed else error
        raise CatalogueError(
            f"The address can't be fetched ({reason}): download the file another way and give its path."
        ) from error


@contextmanager
def _open_response(address: str, deadline: "_Deadline") -> "Iterator[httpx.Response]":
    from localidades_api.client.network import NetworkSettingsError, open_client  # noqa: PLC0415  # it imports httpx

    hooks = {"response": [_check_response]}
    extensions = {"trace": deadline.watch}
    try:
        opened = open_client(follow_redirects=True, timeout=FETCH_TIMEOUT, event_hooks=hooks)
    except NetworkSettingsError as error:
        raise CatalogueError(str(error)) from error
    with opened as client, client.stream("GET", address, headers=_REQUEST_HEADERS, extensions=extensions) as response:
        yield response.raise_for_status()


def _check_response(response: "httpx.Response") -> None:
    """Raise CatalogueError for a redirect away from TLS, and for an encoding that could unpack to any size."""
    target = response.url.join(response.headers["location"]) if response.has_redirect_location else response.url
    if response.url.scheme == "https" != target.scheme:  # httpx follows no other schemes
        raise CatalogueError(
            "The address redirects from https to an insecure address: pass that address yourself if you trust it."
        )
    if response.headers.get("content-encoding", "identity").lower() not in {"identity", "gzip"}:
        raise CatalogueError(
            "The server sends the file with a compression that was not requested: download it another way"
            " and give its path."
        )


class _Deadline:
    """Closes the connections of a download that takes too long in total; read timeouts only bound each read."""

    def __init__(self, seconds: float) -> None:
        self._timer = Timer(seconds, self._pass)
        self._timer.daemon = True
        self._sockets: list[socket.socket] = []
        self.passed = False

    def __enter__(self) -> Self:
        self._timer.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()

    def watch(self, event: str, info: Mapping[str, Any]) -> None:
        """Record a connection (httpcore's extension `trace`)."""
        if event in {"connection.connect_tcp.complete", "connection.start_tls.complete"}:
            self._sockets.append(info["return_value"].get_extra_info("socket"))
            if self.passed:
                self._pass()

    def _pass(self) -> None:
        self.passed = True
        for connection in self._sockets:
            with suppress(OSError):  # already closed
                connection.shutdown(socket.SHUT_RDWR)


def _digest(file: IO[bytes]) -> str:
    file.seek(0)
    return hashlib.file_digest(file, "sha256").hexdigest()  # type: ignore[arg-type]  # typeshed's protocol has readinto


def suggest_release_name(source: Source, member: str) -> str | None:
    """Name a release after the date in the file's name or its member's; return None without one.

    INEGI's own stamps, such as `AGEEML_20181112153015`, don't say where their month ends.
    """
    if source.name == DEMO_RELEASE:
        return DEMO_RELEASE
    dated = _DATED.search(source.name) or _DATED.search(member)
    return dated[1] if dated else None
