"""The contents of a mirrored release: targets to ask for, the paths of their files, and units of work."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic_core import from_json

from localidades_api.catalogue.schemas import DEMO_RELEASE, MAX_PAGE_SIZE, count_pages
from localidades_api.cli.mirroring.upstream import Upstream, fetch
from localidades_api.downloads.file_types import FILE_TYPES
from localidades_api.errors import MirrorError
from localidades_api.http.paths import LOCALIDADES, PREFIX

PAST = "past"  # name of the file with the answer to a page past the last
INDEX = "index.json"
_UNIT_SIZE = 100  # answers of a unit: what a run loses that is killed
_UNIT_LOCALITIES = 4000  # a statement of some 50 ms
_FOUND, _NOT_FOUND, _GONE = 200, 404, 410


@dataclass(frozen=True, slots=True)
class Item:
    """An answer that becomes a file; `coded` ones have a copy for each content coding."""

    target: str
    path: str
    status: int = _FOUND
    coded: bool = True
    accept: str = "application/json"


@dataclass(frozen=True, slots=True)
class Unit:
    """What one process writes at a time: some answers, or all localities of some municipios."""

    name: str
    items: tuple[Item, ...] = ()
    municipios: tuple[int, ...] = ()

    @property
    def folders(self) -> set[str]:
        """The folders of its files."""
        ours = {item.path.rpartition("/")[0] for item in self.items}
        return ours | {f"localidades/{municipio}" for municipio in self.municipios}


@dataclass(frozen=True, slots=True)
class ListOf:
    """A list of a release, in one selection: `name` is its folder, `parameters` follow `release` in its query."""

    name: str
    path: str
    parameters: str
    pages: int

    def items(self, release: str) -> Iterator[Item]:
        """Yield its pages, of which there is at least one, and the answer to a page past the last."""
        last = max(self.pages, 1)
        for number in range(1, last + 2):
            target = f"{self.path}?page={number}&format=json&release={release}{self.parameters}"
            name, status = (number, _FOUND) if number <= last else (PAST, _NOT_FOUND)
            yield Item(target, f"{self.name}/{name}.json", status, coded=number <= last)


@dataclass(frozen=True, slots=True)
class Plan:
    """A release: the answer of its index, its lists, the units of work, and the earlier releases that it refers to."""

    release: str
    etag: str
    localities: int
    lists: tuple[ListOf, ...]
    units: tuple[Unit, ...]
    earlier: tuple[str, ...] = ()

    @property
    def folder(self) -> str:
        """The name of its folder: another once the answers are others.

        The ETag tells the catalogue's file and the version of the software; changes and what is said of withdrawn keys
        depend on the earlier releases that there still are.
        """
        digest = hashlib.sha256("\n".join([self.etag, *self.earlier]).encode()).hexdigest()[:12]
        return f"{self.release}-{digest}"


async def plan_release(upstream: Upstream, release: str, earlier: Sequence[str]) -> Plan:
    """Ask what a release has; `earlier` are the releases whose changes up to this one are mirrored."""
    reader = _Reader(upstream, release)
    index = await reader.read(f"{PREFIX}/")
    totals = index["totals"]
    municipios = await reader.read_all(f"{PREFIX}/municipios/")
    estados = await reader.read_all(f"{PREFIX}/estados/")
    lists = [
        ListOf("localidades/all", LOCALIDADES, "", count_pages(totals["localidades"])),
        *_areas("estados", len(estados)),
        *_areas("municipios", len(municipios)),
        *(one for estado in estados for one in _areas("municipios", _count(municipios, estado["id"]), estado["id"])),
    ]
    singles = [
        Item(f"{PREFIX}/?format=json&release={release}", INDEX, coded=False),
        *_records("estados", [one["id"] for one in estados], release),
        *_records("municipios", [one["id"] for one in municipios], release),
        *(await reader.gone(earlier)),
    ]
    units = [*_files(release, totals["localidades"], earlier), *_localities(municipios)]
    units += _units("lists", [item for one in lists for item in one.items(release)])
    units += _units("records", singles)
    return Plan(release, reader.etag, totals["localidades"], tuple(lists), tuple(units), tuple(earlier))


class _Reader:
    def __init__(self, upstream: Upstream, release: str) -> None:
        self._upstream = upstream
        self._release = release
        self.etag = ""

    async def read(self, path: str, query: str = "") -> Any:  # noqa: ANN401  # JSON
        head, body = await fetch(self._upstream, f"{path}?format=json&release={self._release}{query}")
        if head.status != _FOUND:
            raise MirrorError(f"The service answers {head.status} for {path} of release {self._release}.")
        self.etag = head.headers["etag"]
        return from_json(body)

    async def read_all(self, path: str) -> list[Any]:
        found, page, pages = [], 1, 1
        while page <= pages:
            listed = await self.read(path, f"&page={page}&page_size={MAX_PAGE_SIZE}")
            found += listed["results"]
            page, pages = page + 1, listed["total_pages"]
        return found

    async def gone(self, earlier: Sequence[str]) -> list[Item]:
        """Return the answers to keys that earlier releases had and this one does not have."""
        changes = f"{PREFIX}/releases/{self._release}/changes/"
        gone: set[tuple[str, int]] = set()
        for since in earlier:
            before = _Reader(self._upstream, since)
            for name in ("estados", "municipios"):
                has = {one["id"] for one in await self.read_all(f"{PREFIX}/{name}/")}
                had = {one["id"] for one in await before.read_all(f"{PREFIX}/{name}/")}
                gone |= {(name, id_) for id_ in had - has}
            head, body = await fetch(self._upstream, f"{changes}?since={since}&change=removed&format=ndjson")
            if head.status != _FOUND:
                raise MirrorError(f"The service answers {head.status} for the changes since release {since}.")
            gone |= {("localidades", from_json(line)["id"]) for line in body.splitlines()}
        query = f"?format=json&release={self._release}"
        return [
            Item(f"{PREFIX}/{name}/{id_}/{query}", f"{name}/gone/{id_}.json", _GONE, coded=False)
            for name, id_ in sorted(gone)
        ]


def _count(municipios: Sequence[Mapping[str, int]], estado: int) -> int:
    return sum(one["estado_id"] == estado for one in municipios)


def _areas(name: str, quantity: int, estado: int | None = None) -> Iterator[ListOf]:
    """Yield a list of estados or municipios, in pages of 50 and of 1,000."""
    path = f"{PREFIX}/{name}/"
    chosen, folder = ("", "all") if estado is None else (f"&estado_id={estado}", f"estado-{estado}")
    yield ListOf(f"{name}/{folder}", path, chosen, count_pages(quantity))
    size = f"page_size={MAX_PAGE_SIZE}"
    yield ListOf(f"{name}/{folder}-{MAX_PAGE_SIZE}", path, f"{chosen}&{size}", count_pages(quantity, MAX_PAGE_SIZE))


def _records(name: str, ids: Sequence[int], release: str) -> Iterator[Item]:
    for id_ in ids:
        yield Item(f"{PREFIX}/{name}/{id_}/?format=json&release={release}", f"{name}/{id_}.json", coded=False)


def _files(release: str, localities: int, earlier: Sequence[str]) -> Iterator[Unit]:
    """Yield a unit for each download that has room for all: they take longest, so they come first."""
    for format_, file_type in sorted(FILE_TYPES.items()):
        target = f"{LOCALIDADES}download/?format={format_}&release={release}"
        if localities <= file_type.max_records:
            yield Unit(f"download-{format_}", (Item(target, f"download/{format_}", coded=not file_type.compressed),))
    for since in earlier:
        target = f"{PREFIX}/releases/{release}/changes/?since={since}&format=ndjson"
        yield Unit(f"changes-{since}", (Item(target, f"changes/{since}"),))


def _localities(municipios: Sequence[Mapping[str, int]]) -> Iterator[Unit]:
    """Yield units of neighbouring municipios with some thousand localities together."""
    some: list[int] = []
    amount = 0
    for one in municipios:
        some.append(one["id"])
        amount += one["localidades"]
        if amount >= _UNIT_LOCALITIES:
            yield Unit(f"localidades-{some[0]}", municipios=tuple(some))
            some, amount = [], 0
    if some:
        yield Unit(f"localidades-{some[0]}", municipios=tuple(some))


def _units(name: str, items: Sequence[Item]) -> Iterator[Unit]:
    for start in range(0, len(items), _UNIT_SIZE):
        yield Unit(f"{name}-{start}", tuple(items[start : start + _UNIT_SIZE]))


def earlier_releases(names: Sequence[str], release: str) -> list[str]:
    """Return those of the releases, oldest first, whose history this one shares; the invented demo has none."""
    if release == DEMO_RELEASE:
        return []
    return [name for name in names[: names.index(release)] if name != DEMO_RELEASE]
