"""Suggests places for a text that may be unfinished or misspelt."""

import re
from collections.abc import Collection, Iterator, Sequence
from functools import lru_cache

from tantivy import Query

from localidades_api.catalogue.folding import fold
from localidades_api.catalogue.keys import KEYS_OF_A_MUNICIPIO, KEYS_OF_A_STATE, PlaceKind, kind_of_key
from localidades_api.names import weights
from localidades_api.names.files.layout import EVERYWHERE, JOINED, KEY, LABEL, SEAT
from localidades_api.names.files.naming import name_areas
from localidades_api.names.files.query import MAX_START, MAX_WRONG, ParsedQuery, readings
from localidades_api.names.files.reader import IndexReader
from localidades_api.names.places import IndexedLocality, Suggested
from localidades_api.names.reading.text import canonical
from localidades_api.names.reading.vocabulary import COUNTRY
from localidades_api.names.suggestions.ranking import Fit, fit, literal_points, population_points
from localidades_api.names.suggestions.suggest_areas import AreaSuggester

_PROPOSED = 16  # the most places that a look-up proposes: enough to include the right one, if it is large
_PROPOSED_NEAR = 24  # the most that a look-up of misspelt words proposes
_COMPARED = 6  # best places, whose names are compared letter by letter
_SHORT = 3  # characters: everybody types these, and many places begin with them
_CACHED = 512  # results for such texts
_KEY_LENGTHS = {1, 2, 4, 5, 8, 9}


class Suggester:
    """Proposes places from the files of an index and ranks them."""

    def __init__(self, index: IndexReader) -> None:
        self._index = index
        self.areas = AreaSuggester(index.areas, index.area_places)
        # Beside localities, which the seats of municipios are.
        self._areas_without_seats = AreaSuggester(
            index.areas, name_areas(index.areas, index.former, {}, index.populations)
        )
        self._suggest_short = lru_cache(_CACHED)(self._suggest)

    def suggest(
        self, text: str, kinds: Collection[PlaceKind], estado_id: int | None, municipio_id: int | None, limit: int
    ) -> list[Suggested]:
        """Return suggestions for a text, the likeliest first."""
        if len(text) <= _SHORT:
            return list(self._suggest_short(text, frozenset(kinds), estado_id, municipio_id, limit))
        return self._suggest(text, kinds, estado_id, municipio_id, limit)

    def _suggest(
        self, text: str, kinds: Collection[PlaceKind], estado_id: int | None, municipio_id: int | None, limit: int
    ) -> list[Suggested]:
        scope = _scope_of(estado_id, municipio_id)
        typed = [*self._read_without_country(text, scope), *readings(self._without_country(text))]
        if not typed[0].words or scope is None:
            return []
        digits = re.sub(r"[\s.-]", "", text)
        if digits.isdecimal() and len(digits) in _KEY_LENGTHS and (found := self._by_key(digits, kinds, scope, limit)):
            return found
        results: list[Suggested] = []
        if "localidad" in kinds:
            results += self._localities(typed, scope, limit)
        if "municipio" in kinds or "estado" in kinds:
            results += self._areas(typed[0].text, kinds, scope, limit)
            results.sort(key=lambda found: -found.score)
        return results[:limit]

    def _without_country(self, text: str) -> str:
        """Return a text without the country at its end, unless it may be the estado of that name."""
        areas = self._index.areas
        line = areas.without_country(text)
        name, _, last = line.rpartition(",")
        if not name or fold(last) not in COUNTRY:
            return line
        estado_id = areas.find_state(last)
        return line if estado_id and self._index.layout.find(estado_id, " ".join(canonical(name)), 1) else name

    def _read_without_country(self, text: str, scope: int | None) -> Sequence[ParsedQuery]:
        """Return the reading of the name of a place with the country behind it, without a comma: `Tijuana México`."""
        words = fold(text).split()
        for at in range(1, len(words)):
            name = " ".join(words[:at])
            if " ".join(words[at:]) in COUNTRY and (
                self._index.layout.find(scope or EVERYWHERE, name, 1) or self._index.areas.named_state(words[at - 1])
            ):
                return readings(f"{name} ")
        return ()

    # -- Localities

    def _localities(self, readings: Sequence[ParsedQuery], scope: int, limit: int) -> list[Suggested]:
        fits: dict[int, Fit] = {}
        place = self._index.place
        for reading in readings:
            seen: set[int] = set()
            for rows in self._proposals(reading, scope, limit, fits):
                for row in rows:
                    if row not in seen:
                        seen.add(row)
                        fitting = self._fit(reading, place(row))
                        if row not in fits or fits[row].points < fitting.points:
                            fits[row] = fitting
        typed = readings[-1]
        self._keep_estado(typed, fits)
        points = {row: found.points + population_points(place(row)) for row, found in fits.items()}
        ranked = sorted(fits, key=lambda row: (-points[row], row))
        ranked[:_COMPARED] = sorted(
            ranked[:_COMPARED], key=lambda row: (-points[row] - literal_points(typed, place(row)), row)
        )
        labelled = [row for row in self._index.layout.find(LABEL, typed.folded, 4) if _holds_place(scope, place(row))]
        labelled.sort(key=lambda row: self._index.label(place(row)) != typed.text)
        fits |= dict.fromkeys(labelled, Fit(weights.WHOLE_LABEL, "label", ""))
        shown = [*labelled, *(row for row in ranked if row not in labelled)][:limit]
        return [self._suggested(place(row), fits[row]) for row in shown]

    def _fit(self, typed: ParsedQuery, place: IndexedLocality) -> Fit:
        """Return the fit of a place; one that does not continue a text of which words were left out loses points."""
        found = fit(typed, place)
        if not typed.is_cut:
            return found
        for written in (place.nombre, found.written):
            if f" {typed.folded}" in f" {fold(written)}":
                return found
        goes_on = f" {typed.folded}" in f" {fold(self._index.label(place))}"
        return found if goes_on else found._replace(points=found.points - weights.CUT)

    def _proposals(self, typed: ParsedQuery, scope: int, limit: int, fits: dict[int, Fit]) -> Iterator[list[int]]:
        """Yield rows for a text: by whole names, then by words, then by misspelt words."""
        words, wanted = self._index.words, max(_PROPOSED, limit + 4)
        terms = _terms(scope)
        if self._best(fits) >= weights.SURE_FIT:  # another reading fits
            yield self._propose(words.all_words(typed, "text", terms), wanted)
            return
        yield from self._whole_names(typed, scope)
        if typed.is_cut and typed.unfinished:
            yield self._propose(words.with_article(typed, terms), wanted)
        if len(typed.words) == 1:
            is_start = typed.unfinished and len(typed.folded) <= MAX_START
            if is_start:
                yield self._propose(words.beginning(typed.folded, terms), wanted)
            if not is_start or typed.words[0] != typed.unfinished:  # `pto`, short for Puerto, begins no name
                yield self._propose(words.all_words(typed, "name", terms), wanted)
        else:
            found = self._propose(words.all_words(typed, "text", terms), wanted)
            yield found
            if len(found) == wanted:
                yield self._propose(words.all_words(typed, "name", terms), wanted)
        yield from self._misspelt(typed, scope, fits)

    def _misspelt(self, typed: ParsedQuery, scope: int, fits: dict[int, Fit]) -> Iterator[list[int]]:
        """Yield rows for a text with letters wrong, or with extra words, as long as nothing better fits."""
        words, terms = self._index.words, _terms(scope)
        if self._best(fits) < weights.SURE_FIT:
            self._joined(typed, scope, fits)
        # A single word is more likely a place than its area: half of Sinaloa is like `Sanalona`.
        for field in ("text",) if len(typed.words) > 1 else ("name", "text"):
            for most in (1, MAX_WRONG):  # to look for words with two letters wrong takes five times as long
                if self._best(fits) < weights.SURE_FIT:
                    yield self._propose(words.nearly(typed, terms, field, most), _PROPOSED_NEAR, is_rare=True)
        for looser in (words.without_kinds, words.most_words):
            if self._best(fits) < weights.LIKELY_FIT:
                yield self._propose(looser(typed, terms), _PROPOSED_NEAR)

    def _propose(self, query: Query | None, limit: int, *, is_rare: bool = False) -> list[int]:
        return self._index.words.propose(query, limit, is_rare=is_rare) if query else []

    def _keep_estado(self, typed: ParsedQuery, fits: dict[int, Fit]) -> None:
        """Keep only the places of an estado in the text, as in `Ciudad de México`, unless a place has that name."""
        estados = {id_ for id_ in self._index.areas.scopes(typed.words) if id_ < KEYS_OF_A_STATE}
        if estados and self._best(fits) < weights.WHOLE_NAME:
            for row in list(fits):
                if self._index.place(row).id // KEYS_OF_A_MUNICIPIO // KEYS_OF_A_STATE not in estados:
                    del fits[row]

    def _joined(self, typed: ParsedQuery, scope: int, fits: dict[int, Fit]) -> None:
        """Add the large places whose name was typed without spaces: `playadelcarmen`."""
        for row in self._index.layout.find(JOINED, typed.folded.replace(" ", ""), _PROPOSED):
            if _holds_place(scope, self._index.place(row)):
                fits[row] = Fit(weights.JOINED_NAME, "near", "")

    @staticmethod
    def _best(fits: dict[int, Fit]) -> float:
        return max((found.points for found in fits.values()), default=0.0)

    def _whole_names(self, typed: ParsedQuery, scope: int) -> Iterator[list[int]]:
        """Yield places whose whole name was typed, alone or with areas before or after it."""
        find, words = self._index.layout.find, typed.words
        yield find(scope, " ".join(words), _PROPOSED)
        for split in range(1, len(words)):
            for name, area in ((words[:split], words[split:]), (words[split:], words[:split])):
                for id_ in self._index.areas.scopes(area):
                    rows = find(id_, " ".join(name), 6)
                    yield [row for row in rows if _holds_place(scope, self._index.place(row))] if scope else rows

    def _suggested(self, place: IndexedLocality, found: Fit) -> Suggested:
        return Suggested(
            "localidad",
            place.id,
            place.nombre,
            self._index.label(place),
            found.match,
            round(found.points + population_points(place), 2),
            found.written or None,
            place.id // KEYS_OF_A_MUNICIPIO,
            place.poblacion,
            place.latitud,
            place.longitud,
        )

    # -- Areas

    def _areas(self, text: str, kinds: Collection[PlaceKind], scope: int, limit: int) -> list[Suggested]:
        areas = self._areas_without_seats if "localidad" in kinds else self.areas
        found = [
            self._suggested_area(id_, best._replace(points=best.points + _points_of_area(id_, best)))
            for id_, best in areas.suggest(text, kinds)
            if _holds(scope, id_)
        ]
        return sorted(found, key=lambda area: -area.score)[:limit]

    def _suggested_area(self, id_: int, found: Fit) -> Suggested:
        areas, kind = self._index.areas, kind_of_key(id_)
        nombre = areas.estados[id_] if kind == "estado" else areas.municipios[id_]
        municipio_id = id_ if kind == "municipio" else None
        score, name = round(found.points, 2), found.written or None
        return Suggested(kind, id_, nombre, areas.label(id_), found.match, score, name, municipio_id)

    # -- Keys

    def _by_key(self, digits: str, kinds: Collection[PlaceKind], scope: int, limit: int) -> list[Suggested]:
        """Return the estado (two digits), municipio (five) or locality (nine) with a key."""
        key, areas = int(digits), self._index.areas
        if len(digits) >= 8:  # noqa: PLR2004
            rows = self._index.layout.find(KEY, str(key), 4) if "localidad" in kinds else []
            places = sorted((self._index.place(row) for row in rows), key=lambda place: place.id != key)
            return [
                self._suggested(place, Fit(weights.KEY_OF_PLACE, "key" if place.id == key else "former", ""))
                for place in places
                if _holds_place(scope, place)
            ]
        kind: PlaceKind = "estado" if len(digits) <= 2 else "municipio"  # noqa: PLR2004
        if key not in (areas.estados if kind == "estado" else areas.municipios) or not _holds(scope, key):
            return []
        found = [self._suggested_area(key, Fit(weights.KEY_OF_AREA, "key", ""))] if kind in kinds else []
        if "localidad" in kinds:
            found += self._places_of(kind, key, limit)
        return found[:limit]

    def _places_of(self, kind: PlaceKind, key: int, limit: int) -> list[Suggested]:
        words = self._index.words
        places = [self._index.place(row) for row in words.propose(words.area(f"{kind[0]}{key}"), limit)]
        if kind == "municipio":
            places.sort(key=lambda place: not place.flags & SEAT)
        return [self._suggested(place, Fit(weights.KEY_OF_PLACE, "key", "")) for place in places]


def _points_of_area(id_: int, best: Fit) -> float:
    """Return the points won by an area, none by an estado with the words in another order: `Ocampo, Michoacán`."""
    if kind_of_key(id_) == "municipio":
        return weights.MUNICIPIO_POINTS
    return 0.0 if best.match == "words" else weights.ESTADO_POINTS


def _scope_of(estado_id: int | None, municipio_id: int | None) -> int | None:
    if estado_id and municipio_id and not _holds(estado_id, municipio_id):
        return None
    return municipio_id or estado_id or EVERYWHERE


def _holds(scope: int, id_: int) -> bool:
    return scope in {EVERYWHERE, id_, id_ // KEYS_OF_A_STATE}


def _holds_place(scope: int, place: IndexedLocality) -> bool:
    return _holds(scope, place.id // KEYS_OF_A_MUNICIPIO)


def _terms(scope: int) -> list[str]:
    return [] if scope == EVERYWHERE else [f"e{scope}" if scope < KEYS_OF_A_STATE else f"m{scope}"]
