"""Writes the folder of a release: each unit's files, then its journal; the last step renames the folder.

A unit whose journal exists and whose files have the size and digest that it says is not written again.
"""

import errno
import hashlib
import os
import shutil
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic_core import from_json, to_json

from localidades_api.catalogue.keys import KEYS_OF_A_MUNICIPIO
from localidades_api.cli.mirroring.coding import CodedFile, Written
from localidades_api.cli.mirroring.plan import Item, Unit
from localidades_api.cli.mirroring.upstream import Head, Upstream
from localidades_api.errors import MirrorError
from localidades_api.http.paths import LOCALIDADES

MANIFEST = "manifest.ndjson"
_JOURNAL = "journal"
# The headers that belong to an answer rather than to its connection.
_KEPT = {
    "access-control-allow-origin", "access-control-expose-headers", "allow", "cache-control", "catalogue-records",
    "catalogue-release", "content-disposition", "content-type", "etag", "last-modified", "link", "vary",
    "x-content-type-options",
}  # fmt: skip


class ReleaseFolder:
    """The folder in which a release is written."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._journal = folder / _JOURNAL

    def prepare(self, units: Iterable[Unit]) -> None:
        """Make every folder."""
        self._journal.mkdir(parents=True, exist_ok=True)
        for path in sorted({path for unit in units for path in unit.folders}):
            (self.folder / path).mkdir(parents=True, exist_ok=True)

    def count(self, unit: Unit) -> int | None:
        """Return how many files of a unit are there, or None if it is to be written."""
        try:
            entries = list(self.entries(unit))
        except FileNotFoundError:
            return None
        return len(entries) if all(map(self._is_sound, entries)) else None

    def _is_sound(self, entry: Mapping[str, Any]) -> bool:
        try:
            body = (self.folder / entry["path"]).read_bytes()
        except FileNotFoundError:
            return False
        return (len(body), hashlib.sha256(body).hexdigest()) == (int(entry["bytes"]), str(entry["sha256"]))

    def entries(self, unit: Unit) -> Iterator[dict[str, Any]]:
        """Read the journal of a unit: what the manifest will say of its files."""
        for line in self._file(unit).read_bytes().splitlines():
            yield from_json(line)

    def _file(self, unit: Unit) -> Path:
        return self._journal / f"{unit.name}.ndjson"

    async def write(self, unit: Unit, upstream: Upstream, release: str) -> int:
        """Write the files of a unit and then its journal; return how many files they are."""
        entries: list[dict[str, Any]] = []
        for item in unit.items:
            entries += await self._write_item(item, upstream)
        if unit.municipios:
            entries += [entry async for entry in self._write_localities(unit, upstream, release)]
        draft = self._file(unit).with_suffix(".draft")
        draft.write_bytes(b"".join(to_json(entry) + b"\n" for entry in entries))
        draft.replace(self._file(unit))
        return len(entries)

    async def _write_item(self, item: Item, upstream: Upstream) -> list[dict[str, Any]]:
        with CodedFile(self.folder, item.path, coded=item.coded) as file:
            head = await upstream.ask(item.target, file.write, item.accept)
            written = file.finish()
        if head.status != item.status:
            for one in written:
                (self.folder / one.path).unlink()
            raise MirrorError(f"The service answers {head.status} for {item.target}, not {item.status}.")
        return [{**_entry(written[0]), **_head(item.target, head)}, *map(_entry, written[1:])]

    async def _write_localities(self, unit: Unit, upstream: Upstream, release: str) -> AsyncIterator[dict[str, Any]]:
        """Write each locality, and ask for the first by its address too: both ways must give the same bytes."""
        first = True
        async for id_, body in upstream.localities(release, unit.municipios):
            path = f"localidades/{id_ // KEYS_OF_A_MUNICIPIO}/{id_}.json"
            entry = _entry(_write(self.folder, path, body))
            if first:
                first = False
                target = f"{LOCALIDADES}{id_}/?format=json&release={release}"
                asked = bytearray()
                head = await upstream.ask(target, asked.extend)
                if asked != body:
                    raise MirrorError(f"{target} has another answer when it is read with others.")
                entry |= _head(target, head)
            yield entry

    def finish(self, units: Iterable[Unit], place: Path) -> None:
        """Join the journals to the manifest, and rename the folder to where it is served."""
        with (self.folder / MANIFEST).open("wb") as manifest:
            for unit in units:
                manifest.write(self._file(unit).read_bytes())
        shutil.rmtree(self._journal)
        os.sync()  # one for all files: whatever has the final name is whole, even after a power failure
        self.folder.rename(place)


def _write(folder: Path, path: str, body: bytes) -> Written:
    descriptor = os.open(f"{folder}/{path}", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    try:
        if os.write(descriptor, body) != len(body):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    finally:
        os.close(descriptor)
    return Written(path, len(body), hashlib.sha256(body).hexdigest())


def _entry(written: Written) -> dict[str, Any]:
    return written._asdict()


def _head(target: str, head: Head) -> dict[str, Any]:
    kept = {name: value for name, value in head.headers.items() if name in _KEPT}
    return {"target": target, "status": head.status, "headers": kept}
