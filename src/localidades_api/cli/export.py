"""Writes a release as static files that any web server can serve.

The application runs in this process and answers a request for each file, so the files have the bytes that it sends.
Each file has its own path, because object stores and CDNs ignore queries.
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
from localidades_api.cli.database import ready_database
from localidades_api.downloads.formats import FILE_TYPES
from localidades_api.errors import ExportError, LocalidadesError, MethodNotAllowedError, NotFoundError
from localidades_api.html.renderer import JSON, View
from localidades_api.http.paths import LOCALIDADES, MANIFEST, PREFIX
from localidades_api.observability.progress import Counting, Step
from localidades_api.observability.progress_display import console, show_progress
from localidades_api.settings import Settings, read_settings

_CHECKSUMS = "SHA256SUMS"
_TIMEOUT = 60.0  # seconds for a statement; no client is waiting
_POOL_SIZE = 2
_GZIP_WBITS = 31  # zlib's parameter for a gzip header and a window of 32 kB; the header's time stays 0
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
    """The contents of an export. Written last; `source` and `sha256` are those of INEGI's file."""

    release: str
    source: str
    sha256: str
    version: str
    localidades: int
    files: int
    bytes: int


def run_export(folder: Path, name: str | None, *, with_records: bool) -> None:
    """Write a release (None is the current one) to a new folder; raise ExportError if that fails."""
    folder = folder.resolve()
    settings = read_settings()
    with ExitStack() as stack:
        draft = stack.enter_context(_create_draft(folder))
        url = stack.enter_context(ready_database(settings))
        progress = stack.enter_context(show_progress())
        progress.begin(ExportStep.WRITE)
        manifest = asyncio.run(_export(url, settings, draft, name, progress, with_records=with_records))
    console.print(
        f"{folder} holds release {manifest.release}: {manifest.files:,} files, {manifest.bytes / 1e6:,.0f} MB",
        markup=False,
    )


@contextmanager
def _create_draft(folder: Path) -> Iterator[Path]:
    """Create a hidden folder, which is renamed to `folder` once the export is complete."""
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
        os.sync()  # before the rename, so that an export is complete even after a power failure
        draft.rename(folder)
    except BaseException:
        shutil.rmtree(draft, ignore_errors=True)
        raise


async def _export(
    url: str, settings: Settings, folder: Path, name: str | None, progress: Counting, *, with_records: bool
) -> ExportManifest:
    async with _running_app(url, settings) as app:
        services: Services = app.state.services
        release = await services.releases.get(name)
        with (folder / _CHECKSUMS).open("w", encoding="utf-8") as checksums:

            def add_checksum(line: str) -> None:
                checksums.write(line)
                progress.advance(1)

            files = _FileWriter(folder, add_checksum)
            await _Exporter(app, release, files).write_release(with_records=with_records)
    manifest = ExportManifest(
        release=release.name,
        source=release.source,
        sha256=release.sha256,
        version=__version__,
        localidades=release.localities,
        files=files.count,
        bytes=files.bytes,
    )
    path = folder / MANIFEST.removeprefix("/")
    path.write_text(manifest.model_dump_json(indent=1) + "\n", encoding="utf-8")
    return manifest


@asynccontextmanager
async def _running_app(url: str, settings: Settings) -> AsyncIterator[FastAPI]:
    """Run the application on a database, without caches and background tasks."""
    own = {"database_url": SecretStr(url), "page_cache_bytes": 0, "database_timeout": _TIMEOUT, "pool_size": _POOL_SIZE}
    app = create_app(settings.model_copy(update=own), in_background=False)
    async with app.router.lifespan_context(app):
        yield app


class _FileWriter:
    """Writes files to a folder, and reports the SHA-256 digest of each as a line for `sha256sum --check`."""

    def __init__(self, folder: Path, add_checksum: Callable[[str], object]) -> None:
        self._folder = folder
        self._add_checksum = add_checksum
        self.count = 0
        self.bytes = 0

    @contextmanager
    def create(self, path: str, *, with_compressed: bool) -> Iterator[_Sink]:
        """Yield a function that writes to a file and, if asked, to copies of it compressed with gzip and brotli."""
        path = path.removeprefix("/")
        with ExitStack() as stack:
            sinks = [stack.enter_context(self._open(path))]
            if with_compressed:
                gzip, br = zlib.compressobj(_GZIP_LEVEL, wbits=_GZIP_WBITS), brotli.Compressor(quality=_BROTLI_QUALITY)
                sinks.append(stack.enter_context(self._open(f"{path}.gz", gzip.compress, gzip.flush)))
                sinks.append(stack.enter_context(self._open(f"{path}.br", br.process, br.finish)))

            def write(data: bytes) -> None:
                for sink in sinks:
                    sink(data)

            yield write

    def write(self, path: str, body: bytes) -> None:
        """Write a whole file."""
        with self.create(path, with_compressed=False) as write:
            write(body)

    @contextmanager
    def _open(
        self, path: str, compress: Callable[[bytes], bytes] = bytes, flush: Callable[[], bytes] = bytes
    ) -> Iterator[_Sink]:
        target = self._folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        digest = hashlib.sha256()
        with target.open("wb") as file:

            def write(data: bytes) -> None:
                file.write(data)
                digest.update(data)
                self.bytes += len(data)

            yield lambda data: write(compress(data))
            write(flush())
        self.count += 1
        self._add_checksum(f"{digest.hexdigest()}  {path}\n")


class _Exporter:
    """Requests everything in a release from the application, and writes each response to a file.

    The list `…/NAME/?page=N` becomes the file `…/NAME/page/N.json`, and the record `…/NAME/KEY/` `…/NAME/KEY.json`.
    """

    def __init__(self, app: FastAPI, release: Release, files: _FileWriter) -> None:
        self._app = app
        self._services: Services = app.state.services
        self._release = release
        self._files = files
        self._pinned = f"release={release.name}"

    async def write_release(self, *, with_records: bool) -> None:
        """Write every file of the release."""
        for problem in _PROBLEMS:
            self._files.write(f"problems/{problem.status}.json", bytes(problem_of(problem, ResponsePreferences()).body))
        await self._write(f"{PREFIX}/index.json", f"{PREFIX}/?format=json&{self._pinned}", with_compressed=False)
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
        """Write an estado or municipio, and the list of its children, up to 1,000 a page."""
        path = f"{PREFIX}/{name}/{id_:0{digits}d}"
        await self._write(f"{path}.json", f"{PREFIX}/{name}/{id_}/?format=json&{self._pinned}", with_compressed=False)
        target = f"{PREFIX}/{children}/?format=json&{self._pinned}&{parent}={id_}&page_size={MAX_PAGE_SIZE}"
        async for _ in self._write_pages(f"{path}/{children}", target):
            pass

    async def _write_pages(self, folder: str, target: str) -> AsyncIterator[dict[str, Any]]:
        """Write every page of a list, and yield its records."""
        page, pages = 1, 1
        while page <= pages:
            body = bytearray()
            await self._write(f"{folder}/page/{page}.json", f"{target}&page={page}", body.extend)
            content = from_json(body)
            for row in content["results"]:
                yield row
            page, pages = page + 1, content["total_pages"]

    async def _write_localities(self, municipio: int) -> None:
        """Write the records of a municipio's localities, read in one statement and rendered as their route does.

        A request for each of the 300,000 would take ten times as long.
        """
        first = municipio * KEYS_OF_A_MUNICIPIO
        rows = await self._services.repository.list_between(self._release, first, first + KEYS_OF_A_MUNICIPIO - 1)
        for row in rows:
            body = JSON.render(View("", "", describe_locality(row)))
            self._files.write(f"{LOCALIDADES}{row.id:09d}.json", body)

    async def _write_downloads(self) -> None:
        """Write the release in each format that can hold it."""
        for format_, file_type in FILE_TYPES.items():
            if self._release.localities <= file_type.max_records:
                path = f"{LOCALIDADES}download/localidades-{self._release.name}{file_type.ending}"
                target = f"{LOCALIDADES}download/?format={format_}&{self._pinned}"
                await self._write(path, target, with_compressed=not file_type.is_compressed)

    async def _write_changes(self) -> None:
        """Write the changes since each earlier release."""
        changes = f"{PREFIX}/releases/{self._release.name}/changes/"
        for since in takewhile(lambda release: release.name != self._release.name, self._services.releases.every):
            await self._write(f"{changes}{since.name}.ndjson", f"{changes}?since={since.name}&format=ndjson")

    async def _write(self, path: str, target: str, *sinks: _Sink, with_compressed: bool = True) -> None:
        """Stream the response to a GET to a file and to other sinks; raise ExportError if it is an error."""
        with self._files.create(path, with_compressed=with_compressed) as write:
            status, is_complete = 0, False

            async def send(message: Message) -> None:
                nonlocal status, is_complete
                if message["type"] == "http.response.start":
                    status = message["status"]
                    return
                is_complete = not message.get("more_body", False)
                for sink in (write, *sinks):
                    sink(message.get("body", b""))

            address, _, query = target.partition("?")
            scope: dict[str, Any] = {
                "type": "http", "method": "GET", "path": address, "raw_path": address.encode(), "root_path": "",
                "query_string": query.encode(), "headers": [], "scheme": "http",
                "http_version": "1.1", "client": None, "server": None, "asgi": {"version": "3.0"},
            }  # fmt: skip
            await self._app(scope, _never_disconnect, send)
            if status != HTTPStatus.OK:
                raise ExportError(f"The application answers {status} for {target}.")
            if not is_complete:
                raise ExportError(f"The response to {target} is incomplete: the log says why.")


async def _never_disconnect() -> Message:
    """Receive nothing, as from a client that stays connected."""
    await asyncio.Event().wait()
    raise AssertionError
