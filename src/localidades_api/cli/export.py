"""The command `export`: writes a release as files that any web server serves as they are.

The service's own application answers every address, in this process, so the files are its bytes.
"""

import asyncio
import hashlib
import os
import shutil
import zlib
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from http import HTTPStatus
from itertools import takewhile
from pathlib import Path
from typing import Any

import brotli  # type: ignore[import-untyped]
from fastapi import FastAPI
from pydantic import BaseModel, SecretStr
from pydantic_core import from_json
from starlette.types import Message

from localidades_api import __version__
from localidades_api.api import Services
from localidades_api.api.problems import ResponsePreferences, problem_of
from localidades_api.app import create_app
from localidades_api.catalogue.keys import KEYS_OF_A_MUNICIPIO
from localidades_api.catalogue.locality import describe_locality
from localidades_api.catalogue.pagination import MAX_PAGE_SIZE
from localidades_api.catalogue.schemas import Release
from localidades_api.cli.console import console, watch_import
from localidades_api.cli.database import ready_database
from localidades_api.downloads.formats import FILE_TYPES
from localidades_api.errors import ExportError, LocalidadesError, MethodNotAllowedError, NotFoundError
from localidades_api.html.renderer import JSON, View
from localidades_api.http.paths import LOCALIDADES, MANIFEST, PREFIX
from localidades_api.observability.progress import Counting, Step
from localidades_api.settings import Settings, read_settings

_SUMS = "SHA256SUMS"
_TIMEOUT = 60.0  # seconds for a statement: nobody waits for a single answer here
_POOL_SIZE = 2
_GZIP = 31  # zlib's number for a window of 32 kB within gzip's header, whose time it leaves at 0
_GZIP_LEVEL = 6
_BROTLI_QUALITY = 6
_PROBLEMS: tuple[LocalidadesError, ...] = (NotFoundError(), MethodNotAllowedError())

_Sink = Callable[[bytes], object]


class ExportStep(Step):
    """The only step of an export."""

    WRITE = "writing files"

    @property
    def unit(self) -> str:
        """The unit of its amounts."""
        return "files"


class ExportManifest(BaseModel):
    """What an export holds, written last; `source` and `sha256` are of INEGI's file."""

    release: str
    source: str
    sha256: str
    version: str
    localidades: int
    files: int
    bytes: int


def run_export(folder: Path, name: str | None, *, with_records: bool) -> None:
    """Write a release, or the current one for None, to a new folder; raise ExportError if it can't be done."""
    folder = folder.resolve()
    settings = read_settings()
    with ExitStack() as stack:
        draft = stack.enter_context(_draft_of(folder))
        url = stack.enter_context(ready_database(settings))
        progress = stack.enter_context(watch_import())
        progress.begin(ExportStep.WRITE)
        manifest = asyncio.run(_export(url, settings, draft, name, progress, with_records=with_records))
    console.print(
        f"{folder} holds release {manifest.release}: {manifest.files:,} files, {manifest.bytes / 1e6:,.0f} MB",
        markup=False,
    )


@contextmanager
def _draft_of(folder: Path) -> Iterator[Path]:
    """Lend a hidden folder that gets its name at the end: nobody ever sees a part of an export."""
    if folder.exists():
        raise ExportError(f"{folder} exists already: name a new folder.")
    folder.parent.mkdir(parents=True, exist_ok=True)
    draft = folder.with_name(f".{folder.name}.part")
    try:
        draft.mkdir()
    except FileExistsError:
        raise ExportError(
            f"{draft} exists: another export is writing it, or one was killed. Remove it if none is running."
        ) from None
    try:
        yield draft
        os.sync()  # one for all files: whatever has the final name is whole, even after a power failure
        draft.rename(folder)
    except BaseException:
        shutil.rmtree(draft, ignore_errors=True)
        raise


async def _export(
    url: str, settings: Settings, folder: Path, name: str | None, progress: Counting, *, with_records: bool
) -> ExportManifest:
    async with _running_app(url, settings) as app:
        services: Services = app.state.services
        release = await services.release(name)
        with (folder / _SUMS).open("w", encoding="utf-8") as sums:

            def note(line: str) -> None:
                sums.write(line)
                progress.advance(1)

            files = _Files(folder, note)
            await _Export(app, release, files).write_release(with_records=with_records)
    manifest = ExportManifest(
        release=release.name,
        source=release.source,
        sha256=release.sha256,
        version=__version__,
        localidades=release.localities,
        files=files.count,
        bytes=files.bytes,
    )
    place = folder / MANIFEST.removeprefix("/")
    place.write_text(manifest.model_dump_json(indent=1) + "\n", encoding="utf-8")
    return manifest


@asynccontextmanager
async def _running_app(url: str, settings: Settings) -> AsyncIterator[FastAPI]:
    """Start the application on a database, without caches and background tasks."""
    own = {"database_url": SecretStr(url), "page_cache_bytes": 0, "database_timeout": _TIMEOUT, "pool_size": _POOL_SIZE}
    app = create_app(settings.model_copy(update=own), in_background=False)
    async with app.router.lifespan_context(app):
        yield app


class _Files:
    """Writes files below a folder, and a list of their digests that `sha256sum --check` reads."""

    def __init__(self, folder: Path, note: Callable[[str], object]) -> None:
        self._folder = folder
        self._note = note
        self.count = 0
        self.bytes = 0

    @contextmanager
    def create(self, path: str, *, coded: bool) -> Iterator[_Sink]:
        """Lend what writes a file and, if it is `coded`, its copies compressed with gzip and brotli."""
        path = path.removeprefix("/")
        with ExitStack() as stack:
            sinks = [stack.enter_context(self._open(path))]
            if coded:
                gzip, br = zlib.compressobj(_GZIP_LEVEL, wbits=_GZIP), brotli.Compressor(quality=_BROTLI_QUALITY)
                sinks.append(stack.enter_context(self._open(f"{path}.gz", gzip.compress, gzip.flush)))
                sinks.append(stack.enter_context(self._open(f"{path}.br", br.process, br.finish)))

            def write(data: bytes) -> None:
                for sink in sinks:
                    sink(data)

            yield write

    def write(self, path: str, body: bytes) -> None:
        """Write a whole file."""
        with self.create(path, coded=False) as write:
            write(body)

    @contextmanager
    def _open(
        self, path: str, code: Callable[[bytes], bytes] = bytes, flush: Callable[[], bytes] = bytes
    ) -> Iterator[_Sink]:
        place = self._folder / path
        place.parent.mkdir(parents=True, exist_ok=True)
        digest = hashlib.sha256()
        with place.open("wb") as file:

            def put(data: bytes) -> None:
                file.write(data)
                digest.update(data)
                self.bytes += len(data)

            yield lambda data: put(code(data))
            put(flush())
        self.count += 1
        self._note(f"{digest.hexdigest()}  {path}\n")


class _Export:
    """Asks the application for all that a release has, and writes each answer to a file.

    The list `…/NAME/?page=N` is the file `…/NAME/page/N.json`, the record `…/NAME/KEY/` is `…/NAME/KEY.json`.
    """

    def __init__(self, app: FastAPI, release: Release, files: _Files) -> None:
        self._app = app
        self._services: Services = app.state.services
        self._release = release
        self._files = files
        self._pinned = f"release={release.name}"

    async def write_release(self, *, with_records: bool) -> None:
        """Write every file of the release."""
        for problem in _PROBLEMS:
            self._files.write(f"problems/{problem.status}.json", bytes(problem_of(problem, ResponsePreferences()).body))
        await self._write(f"{PREFIX}/index.json", f"{PREFIX}/?format=json&{self._pinned}", coded=False)
        async for estado in self._write_list("estados"):
            await self._write_area("estados", estado["id"], 2, "municipios", "estado_id")
        async for municipio in self._write_list("municipios"):
            await self._write_area("municipios", municipio["id"], 5, "localidades", "municipio_id")
            if with_records:
                await self._write_localities(municipio["id"])
        async for _ in self._write_list("localidades"):
            pass
        async for _ in self._write_pages(f"{PREFIX}/releases", f"{PREFIX}/releases/?format=json"):
            pass
        await self._write_downloads()
        await self._write_changes()

    def _write_list(self, name: str) -> AsyncIterator[dict[str, Any]]:
        return self._write_pages(f"{PREFIX}/{name}", f"{PREFIX}/{name}/?format=json&{self._pinned}")

    async def _write_area(self, name: str, id_: int, digits: int, children: str, parent: str) -> None:
        """Write an area, and the list of what lies in it, up to 1,000 a page."""
        place = f"{PREFIX}/{name}/{id_:0{digits}d}"
        await self._write(f"{place}.json", f"{PREFIX}/{name}/{id_}/?format=json&{self._pinned}", coded=False)
        target = f"{PREFIX}/{children}/?format=json&{self._pinned}&{parent}={id_}&page_size={MAX_PAGE_SIZE}"
        async for _ in self._write_pages(f"{place}/{children}", target):
            pass

    async def _write_pages(self, folder: str, target: str) -> AsyncIterator[dict[str, Any]]:
        """Write every page of a list, and yield what they list."""
        page, pages = 1, 1
        while page <= pages:
            body = bytearray()
            await self._write(f"{folder}/page/{page}.json", f"{target}&page={page}", body.extend)
            listed = from_json(body)
            for row in listed["results"]:
                yield row
            page, pages = page + 1, listed["total_pages"]

    async def _write_localities(self, municipio: int) -> None:
        """Write the records of a municipio's localities from one statement, as their route describes and renders them.

        One request for each of 300,000 would take ten times as long.
        """
        first = municipio * KEYS_OF_A_MUNICIPIO
        rows = await self._services.repository.list_between(self._release, first, first + KEYS_OF_A_MUNICIPIO - 1)
        for row in rows:
            body = JSON.render(View("", "", describe_locality(row)))
            self._files.write(f"{LOCALIDADES}{row.id:09d}.json", body)

    async def _write_downloads(self) -> None:
        """Write the release in each format that has room for it."""
        for format_, file_type in FILE_TYPES.items():
            if self._release.localities <= file_type.max_records:
                path = f"{LOCALIDADES}download/localidades-{self._release.name}{file_type.ending}"
                target = f"{LOCALIDADES}download/?format={format_}&{self._pinned}"
                await self._write(path, target, coded=not file_type.compressed)

    async def _write_changes(self) -> None:
        """Write what changed since each earlier release."""
        changes = f"{PREFIX}/releases/{self._release.name}/changes/"
        for since in takewhile(lambda one: one.name != self._release.name, self._services.releases.every):
            await self._write(f"{changes}{since.name}.ndjson", f"{changes}?since={since.name}&format=ndjson")

    async def _write(self, path: str, target: str, *also: _Sink, coded: bool = True) -> None:
        """Write the answer to a GET as it comes, to other sinks too; raise ExportError if it is a problem."""
        with self._files.create(path, coded=coded) as write:
            status, is_whole = 0, False

            async def send(message: Message) -> None:
                nonlocal status, is_whole
                if message["type"] == "http.response.start":
                    status = message["status"]
                    return
                is_whole = not message.get("more_body", False)
                for take in (write, *also):
                    take(message.get("body", b""))

            address, _, query = target.partition("?")
            scope: dict[str, Any] = {
                "type": "http", "method": "GET", "path": address, "raw_path": address.encode(), "root_path": "",
                "query_string": query.encode(), "headers": [], "scheme": "http",
                "http_version": "1.1", "client": None, "server": None, "asgi": {"version": "3.0"},
            }  # fmt: skip
            await self._app(scope, _wait_for_ever, send)
            if status != HTTPStatus.OK:
                raise ExportError(f"The application answers {status} for {target}.")
            if not is_whole:
                raise ExportError(f"The answer to {target} broke off: the log says why.")


async def _wait_for_ever() -> Message:
    """Receive nothing: no client disconnects."""
    await asyncio.Event().wait()
    raise AssertionError
