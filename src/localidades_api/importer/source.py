"""Where a catalogue comes from: the demo, a file, or an http(s) address; its digest and the name it suggests."""

import hashlib
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from localidades_api.errors import CatalogueError
from localidades_api.importer.demo import DEMO_RELEASE, DEMO_SHA256
from localidades_api.importer.progress import Counting, Progress, Step

MAX_FILE_BYTES = 512 * 1024**2  # INEGI's zip is 20 MB, its widest text 60 MB
FETCH_SECONDS = 60.0  # of silence; the size bounds the whole

RELEASE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_DATED = re.compile(r"(?<![0-9])((?:19|20)[0-9]{2}-(?:0[1-9]|1[0-2])(?:-(?:0[1-9]|[12][0-9]|3[01]))?)(?![0-9])")


@dataclass(frozen=True, slots=True)
class Source:
    """A catalogue's file on this machine; `path` is None for the demo, which is generated."""

    name: str
    path: Path | None
    sha256: str


@contextmanager
def open_source(source: str, progress: Progress) -> Iterator[Source]:
    """Lend the file that `source` names: `demo`, a path, or an http(s) address (fetched, then removed).

    Raises CatalogueError where there is no such file, or it is too large.
    """
    if source == DEMO_RELEASE:
        yield Source(DEMO_RELEASE, None, DEMO_SHA256)
    elif re.match(r"(?i)[a-z][a-z0-9+.-]*://", source):
        with tempfile.NamedTemporaryFile(prefix="localidades-") as file:
            progress.begin(Step.FETCH)
            path = Path(file.name)
            with _refusing_faults(), path.open("wb") as out:
                for chunk in _fetch(source, progress):
                    out.write(chunk)
                    progress.advance(len(chunk))
            yield Source(unquote(Path(urlsplit(source).path).name) or "catalogue", path, _digest(path))
    else:
        path = Path(source)
        with _refusing_faults():
            if not path.is_file():
                raise CatalogueError(
                    f"There is no file {source}: give the path or http(s) address of a zip, csv or txt."
                )
            if path.stat().st_size > MAX_FILE_BYTES:
                raise CatalogueError(f"The file is larger than {MAX_FILE_BYTES // 1024**2} MB: it is no catalogue.")
            digest = _digest(path)
        yield Source(path.name, path, digest)


@contextmanager
def _refusing_faults() -> Iterator[None]:
    """Turn what the system refuses (no permission, no space) into a sentence."""
    try:
        yield
    except OSError as error:
        raise CatalogueError(f"The file can't be read or kept: {error.strerror}.") from error


def _fetch(address: str, counting: Counting) -> Iterator[bytes]:
    if not re.match("(?i)https?://", address):
        raise CatalogueError("A catalogue is fetched from an http or https address.")
    import httpx  # noqa: PLC0415  # it takes a while to load, and most catalogues lie on this machine

    size = 0
    try:
        with httpx.stream("GET", address, follow_redirects=True, timeout=FETCH_SECONDS) as response:
            response.raise_for_status()
            # The length is that of the bytes on the wire, which may be compressed.
            if "content-encoding" not in response.headers and (length := response.headers.get("content-length", "")):
                counting.expect(int(length))
            for chunk in response.iter_bytes():
                size += len(chunk)
                if size > MAX_FILE_BYTES:
                    raise CatalogueError(f"The address gives more than {MAX_FILE_BYTES // 1024**2} MB.")
                yield chunk
    except httpx.HTTPStatusError as error:
        raise CatalogueError(
            f"The address answers {error.response.status_code}: see where INEGI has the file now."
        ) from error
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise CatalogueError(
            f"The address can't be fetched ({error}): fetch the file by other means, and give its path."
        ) from error


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def suggest_release_name(source: Source, member: str) -> str | None:
    """Name a release after the date in the file's name, or else after the stamp in its member's name.

    INEGI stamps `AGEEML_<year><month><day><hour>...` without zero padding, so a stamp counts only where one month
    fits it; `11` and `12` may also be the first days of January. None where nothing tells a date.
    """
    if source.name == DEMO_RELEASE:
        return DEMO_RELEASE
    for name in (source.name, member):
        if dated := _DATED.search(name):
            return dated[1]
    if (stamp := re.search(r"AGEEML_((?:19|20)[0-9]{2})([0-9]{4,10})(?![0-9])", member)) and (
        month := _month_of(stamp[2])
    ):
        return f"{stamp[1]}-{month:02d}"
    return None


def _month_of(digits: str) -> int | None:
    """Return the month at the head of an unpadded stamp, or None where two readings are possible."""
    if digits[:2] in {"11", "12"}:
        return None
    return int(digits[:2]) if digits[0] == "0" or digits[:2] == "10" else int(digits[0])
