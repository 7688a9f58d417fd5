"""Readers who ask at any moment, and compare each answer with what the model allows."""

import asyncio
import csv
import io
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable
from http import HTTPStatus
from random import Random
from typing import Any, NamedTuple

import httpx

from tests.model.catalogues import COUNT, Version, places_of, truth
from tests.model.model import Model, Moment
from tests.support.catalogue import Place
from tests.support.records import in_order, listed, row_of
from tests.support.wire import LOCALIDADES

CENSUS = "/api/census/"
RELEASES = f"{CENSUS}releases/"
NAMES = [f"2020-0{number}" for number in range(1, 5)]  # of releases
_TIMEOUT = 20.0  # seconds after which an answer counts as missing, on a busy machine
_PARALLEL = 3  # readers at a time
_PAUSE = 0.03  # seconds between two questions of one

Fits = Callable[[Version], bool]
Results = list[dict[str, Any]]


class Found(NamedTuple):
    """An answer, and the versions that it may be from."""

    answer: httpx.Response
    versions: set[Version]
    target: str
    release: str | None  # in the request


class Readers:
    """Readers of a service: they take turns asking, or ask while a block runs."""

    def __init__(self, model: Model, seed: int) -> None:
        self._model = model
        self._random = Random(seed)  # noqa: S311  # reproducible
        self._held: dict[str, tuple[Found, Fits]] = {}  # the last answer with an entity tag, by target

    async def ask(self, client: httpx.AsyncClient, times: int) -> None:
        """Ask some questions, one after another."""
        for _ in range(times):
            question = self._random.choice(_QUESTIONS)
            epoch = self._epoch()
            try:
                await question(self, client)
            except httpx.TransportError:
                if not self._model.since(epoch).may_refuse:
                    raise

    async def ask_beside(self, client: httpx.AsyncClient, change: Awaitable[None]) -> None:
        """Ask until a change has ended."""
        changing = asyncio.ensure_future(change)

        async def keep_asking() -> None:
            while not changing.done():
                await self.ask(client, 1)
                await asyncio.sleep(_PAUSE)

        try:
            await asyncio.gather(changing, *(keep_asking() for _ in range(_PARALLEL)))
        finally:
            changing.cancel()
            await asyncio.gather(changing, return_exceptions=True)

    async def page(self, client: httpx.AsyncClient) -> None:
        """Ask for a page, which may be beyond the last one."""
        number = self._random.randint(1, 3)
        found = await self._get(client, f"{LOCALIDADES}?page={number}", self._release(), HTTPStatus.NOT_FOUND)
        if found and found.answer.status_code == HTTPStatus.NOT_FOUND:
            total = found.answer.json()["total_pages"]
            assert number > total
            assert total in {truth().count_pages(version.key) for version in found.versions}
        elif found:
            release = self._expect(found, lambda one: found.answer.content == truth().page(one.key, number))
            assert all(f"release={release}" in link["url"] for link in found.answer.links.values())

    async def walk(self, client: httpx.AsyncClient) -> None:
        """Follow the links to the last page; all of them belong to one release."""
        target: str | None = LOCALIDADES
        release = self._release()
        pages: list[bytes] = []
        names: set[str] = set()
        while target:
            found = await self._get(client, target, release)
            if found is None:
                return
            pages.append(found.answer.content)
            names.add(found.answer.headers["catalogue-release"])
            target = found.answer.links.get("next", {}).get("url")
            release = release or next(iter(names))
        assert len(names) == 1, names
        keys = map(str, range(COUNT))
        assert pages in [[truth().page(key, page) for page in range(1, truth().count_pages(key) + 1)] for key in keys]

    async def estado(self, client: httpx.AsyncClient) -> None:
        """Ask for the localities of an estado."""
        estado = self._random.randint(1, 3)

        def fits(version: Version, results: Results) -> bool:
            return bool(results == [listed(one) for one in in_order(version.places) if int(one.cvegeo[:2]) == estado])

        await self._results(client, f"{LOCALIDADES}?estado_id={estado}&page_size=1000", fits)

    async def locality(self, client: httpx.AsyncClient) -> None:
        """Ask for a locality, which a catalogue may lack."""
        place = self._place()
        target = f"{LOCALIDADES}{int(place.cvegeo)}/"
        found = await self._get(client, target, self._release(), HTTPStatus.NOT_FOUND, HTTPStatus.GONE)
        if found is None:
            return
        answer = found.answer

        def fits(version: Version) -> bool:
            has_it = any(one.cvegeo == place.cvegeo for one in version.places)
            if answer.status_code != HTTPStatus.OK:
                return not has_it
            return has_it and answer.content == truth().locality(version.key, int(place.cvegeo))

        self._expect(found, fits)

    async def search(self, client: httpx.AsyncClient) -> None:
        """Search for a name that some catalogues have."""
        place = self._place()

        def fits(version: Version, results: Results) -> bool:
            records = [listed(one) for one in version.places]
            has_it = place not in version.places or listed(place) in results
            return has_it and all(result in records for result in results)

        await self._results(client, f"{LOCALIDADES}?{httpx.QueryParams(search=place.nombre, page_size=1000)}", fits)

    async def suggest(self, client: httpx.AsyncClient) -> None:
        """Ask for suggestions for the beginning of a name."""
        place = self._place()
        typed = place.nombre[: self._random.randint(3, len(place.nombre))]

        def fits(version: Version, results: Results) -> bool:
            return {(one["cvegeo"], one["nombre"]) for one in results} <= _names(version)

        await self._results(client, f"{LOCALIDADES}suggest/?{httpx.QueryParams(q=typed)}", fits)

    async def match(self, client: httpx.AsyncClient) -> None:
        """Match rows with names and keys."""
        places = [self._place() for _ in range(5)]

        def fits(version: Version, results: Results) -> bool:
            has = _names(version)
            return all(
                (result["outcome"] == "exact" and result["cvegeo"] == place.cvegeo)
                if (place.cvegeo, place.nombre) in has
                else result["cvegeo"] in {None, *(key for key, _ in has)}
                for place, result in zip(places, results, strict=True)
            )

        rows = [{"cvegeo": place.cvegeo, "nombre": place.nombre} for place in places]
        await self._results(client, f"{LOCALIDADES}match/", fits, rows=rows)

    async def download(self, client: httpx.AsyncClient) -> None:
        """Download the localities as CSV."""
        found = await self._get(client, f"{LOCALIDADES}download/?format=csv", self._release())
        if found:
            columns = ("cvegeo", "nombre", "municipio")
            rows = [[row[name] for name in columns] for row in csv.DictReader(io.StringIO(found.answer.text))]
            assert int(found.answer.headers["catalogue-records"]) == len(rows)
            self._expect(
                found,
                lambda one: rows == [[row[name] for name in columns] for row in map(row_of, in_order(one.places))],
            )

    async def releases(self, client: httpx.AsyncClient) -> None:
        """Ask for the list of releases."""
        epoch = self._epoch()
        answer = await _send(client, RELEASES)
        moment = self._model.since(epoch)
        if self._is_refused(answer, moment, refusable=None in moment.answering(None)):
            return
        records = answer.json()["results"]
        names = frozenset(record["release"] for record in records)
        current = [record["release"] for record in records if record["current"]]
        possible = {frozenset(one.release for one in state.releases) for state in moment.lists()}
        assert names in possible, (sorted(names), possible)
        # A release is listed a moment before it answers: its pages are prepared first.
        assert current in [[one.release] for one in moment.answering(None) if one], current

    async def changes(self, client: httpx.AsyncClient) -> None:
        """Ask what changed between two releases."""
        since, until = self._random.sample(NAMES, 2)
        epoch = self._epoch()
        answer = await _send(client, f"{RELEASES}{until}/changes/?since={since}&page_size=1000")
        moment = self._model.since(epoch)
        versions = moment.readable()
        may_lack = None in moment.answering(since) | moment.answering(until)
        if answer.status_code == HTTPStatus.NOT_FOUND and may_lack:
            return
        if self._is_refused(answer, moment, refusable=may_lack and not versions):
            return
        assert answer.status_code == HTTPStatus.OK, answer.text
        found = Counter((change["change"], change["id"]) for change in answer.json()["results"])
        pairs = [(old, new) for old in versions for new in versions if old.release == since and new.release == until]
        assert any(found == _changes(old, new) for old, new in pairs), (pairs, found)

    async def revalidate(self, client: httpx.AsyncClient) -> None:
        """Send an entity tag that was received before: 304 says that the body is still right."""
        if not self._held:
            return
        kept, fits = self._held[self._random.choice(sorted(self._held))]
        epoch = self._epoch()
        answer = await _send(client, kept.target, headers={"If-None-Match": kept.answer.headers["etag"]})
        if answer.status_code != HTTPStatus.NOT_MODIFIED:
            assert answer.headers.get("etag") != kept.answer.headers["etag"], kept.target
            return
        allowed = self._model.since(epoch).answering(kept.release)
        fitting(kept.answer, {version for version in allowed if version}, fits)

    def _release(self) -> str | None:
        """Choose a release to ask for; None is the current one."""
        return self._random.choice([None, None, None, *NAMES])

    def _place(self) -> Place:
        return self._random.choice(places_of(self._random.randrange(COUNT)))

    def _epoch(self) -> int:
        return len(self._model.epochs) - 1

    async def _get(
        self,
        client: httpx.AsyncClient,
        target: str,
        release: str | None,
        *statuses: HTTPStatus,
        rows: list[dict[str, str]] | None = None,
    ) -> Found | None:
        """Return the answer to a request; None if it is rightly refused."""
        if release and "release=" not in target:
            target += f"{'&' if '?' in target else '?'}release={release}"
        epoch = self._epoch()
        answer = await _send(client, target, rows=rows)
        moment = self._model.since(epoch)
        allowed = moment.answering(release)
        problem = answer.json() if "problem+json" in answer.headers.get("content-type", "") else {}
        if self._is_refused(answer, moment, refusable=None in moment.answering(None)):
            return None
        if release and problem.get("detail") == "There is no such release.":
            assert None in allowed, f"{target} is 404"
            return None
        assert answer.status_code in {HTTPStatus.OK, *statuses}, (answer.status_code, target, answer.text)
        named = answer.headers.get("catalogue-release")
        # An error has no release.
        versions = {version for version in allowed if version and named in {None, version.release}}
        assert versions, f"{target} is answered by {named}, and not by {allowed}"
        assert release in {None, named} or named is None, (release, named)
        return Found(answer, versions, target, release)

    async def _results(
        self,
        client: httpx.AsyncClient,
        target: str,
        fits: Callable[[Version, Results], bool],
        *,
        rows: list[dict[str, str]] | None = None,
    ) -> None:
        """Check the `results` of an answer."""
        found = await self._get(client, target, self._release(), rows=rows)
        if found:
            results = found.answer.json()["results"]
            self._expect(found, lambda one: fits(one, results))

    def _expect(self, found: Found, fits: Fits) -> str:
        """Check an answer, keep it for `revalidate`, and return its release."""
        release = fitting(found.answer, found.versions, fits)
        if found.answer.request.method == "GET" and "etag" in found.answer.headers:
            self._held[found.target] = (found, fits)
        return release

    @staticmethod
    def _is_refused(answer: httpx.Response, moment: Moment, *, refusable: bool) -> bool:
        """Return whether an answer is a refusal; one that is not allowed, or not honest, fails."""
        if answer.status_code != HTTPStatus.SERVICE_UNAVAILABLE:
            return False
        assert answer.headers["retry-after"].isdigit()
        assert "problem+json" in answer.headers["content-type"]
        assert refusable or moment.may_refuse, f"{answer.request.url} is refused: {answer.text}"
        return True


_QUESTIONS: list[Callable[[Readers, httpx.AsyncClient], Awaitable[None]]] = [
    *(Readers.page, Readers.page, Readers.walk, Readers.estado, Readers.locality, Readers.search, Readers.suggest),
    *(Readers.match, Readers.download, Readers.releases, Readers.changes, Readers.revalidate, Readers.revalidate),
]


def fitting(answer: httpx.Response, versions: Iterable[Version], fits: Fits) -> str:
    """Return the release of the version that an answer fits."""
    found = next((version for version in versions if fits(version)), None)
    assert found is not None, f"{answer.request.url} fits none of {versions}: {answer.status_code} {answer.text[:300]}"
    return found.release


def _names(version: Version) -> set[tuple[str, str]]:
    return {(place.cvegeo, place.nombre) for place in version.places}


def _changes(old: Version, new: Version) -> Counter[tuple[str, int]]:
    """Return what changed, by comparing all records."""
    before, after = ({place.cvegeo: place for place in one.places} for one in (old, new))
    both = before.keys() & after.keys()
    keys = {
        "added": after.keys() - before.keys(),
        "removed": before.keys() - after.keys(),
        "renamed": {key for key in both if before[key].nombre != after[key].nombre},
        "updated": {key for key in both if before[key].poblacion != after[key].poblacion},
    }
    return Counter((change, int(key)) for change, changed in keys.items() for key in changed)


async def _send(client: httpx.AsyncClient, target: str, *, rows: object = None, **options: Any) -> httpx.Response:  # noqa: ANN401  # of httpx
    async with asyncio.timeout(_TIMEOUT):
        if rows is not None:
            return await client.post(target, json={"rows": rows})
        return await client.get(target, **options)
