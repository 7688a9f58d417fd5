"""Proposes the places that a row may mean, and compares them: by their names, and by a key."""

from bisect import insort
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import NamedTuple

from localidades_api.catalogue.keys import KEYS_OF_A_MUNICIPIO, KEYS_OF_A_STATE, state_of
from localidades_api.names import weights
from localidades_api.names.candidates.alignment import Comparison, GivenName, align, align_letters
from localidades_api.names.candidates.row_differences import (
    compare_ambito,
    compare_estado,
    compare_municipio,
    compare_point,
)
from localidades_api.names.files.layout import EVERYWHERE, JOINED, KEY, SEAT
from localidades_api.names.files.query import read
from localidades_api.names.files.reader import IndexReader
from localidades_api.names.places import IndexedLocality
from localidades_api.names.reading.areas import Area
from localidades_api.names.reading.text import core, fold
from localidades_api.names.reasons import Difference, Reason, differ
from localidades_api.names.rows import MAX_CANDIDATES, MatchRow

_PROPOSED = 8  # names of a municipio that each measure of similarity proposes for a comparison word by word
_JUDGED = 12  # the most candidates of a row whose probabilities are compared
_HOMONYMS = 24  # places of one name that are compared


class ComparedPlace(NamedTuple):
    """A place that a row may mean, and how it differs from the row."""

    place: IndexedLocality
    comparison: Comparison


class Proposer:
    """Proposes places from the files of an index."""

    def __init__(self, index: IndexReader) -> None:
        self._index = index

    def by_name(
        self, row: MatchRow, given: GivenName, estado_id: int | None, areas: Sequence[Area]
    ) -> list[ComparedPlace]:
        """Return the places with a name like the given one, those that differ least first."""
        found: dict[int, Comparison] = {}
        if not given.folded:
            return []
        municipios = self._index.areas.municipios
        for area in areas:
            self._compare(self._within(given, area.id), row, given, found, compare_municipio(row, area, municipios))
        if areas and (not found or min(comparison.cost for comparison in found.values()) > weights.MAX_COST_OF_WORDS):
            for area in areas:
                self._compare_letters(row, given, found, area)
        if not found or 100 - min(comparison.cost for comparison in found.values()) < weights.MIN_SCORE_IN_MUNICIPIO:
            reason = Reason.MUNICIPIO_OTHER if areas else Reason.MUNICIPIO_UNKNOWN
            municipio = differ(reason, row.municipio) if row.municipio else None
            self._compare(self._anywhere(given, estado_id), row, given, found, municipio)
        if estado := compare_estado(self._index.areas, row.estado):
            found = {at: comparison.with_more(estado) for at, comparison in found.items()}
        ranked = sorted(found.items(), key=lambda item: (item[1].cost, item[0]))
        named = [ComparedPlace(self._index.place(at), comparison) for at, comparison in ranked]
        return _choose(named, None if row.municipio else given.readings[0].words)

    def by_key(
        self, row: MatchRow, given: GivenName | None, key: int, estado_id: int | None, areas: Sequence[Area]
    ) -> list[ComparedPlace]:
        """Return the places that have, or had, a key, those that differ least first."""
        found = []
        for at in self._index.layout.find(KEY, str(key), 4):
            place = self._index.place(at)
            of_name = align(given, place) if given else Comparison(0.0, ())
            if given and of_name.cost > weights.MAX_COST:
                of_name = of_name.with_more(differ(Reason.NAME, given.text, place.nombre))
                of_name = Comparison.of(of_name.differences)
            former = differ(Reason.FORMER_KEY, f"{key:09d}", f"{place.id:09d}") if place.id != key else None
            elsewhere = self.areas_that_differ(row, place, estado_id, areas)
            beside = compare_point(row, place), compare_ambito(row, place)
            found.append(ComparedPlace(place, of_name.with_more(former, *beside, *elsewhere)))
        return sorted(found, key=lambda item: (item.comparison.cost, item.place.id != key))

    def areas_that_differ(
        self, row: MatchRow, place: IndexedLocality, estado_id: int | None, areas: Collection[Area]
    ) -> Iterator[Difference]:
        """Yield the areas of a row that a place with its key is not in, and never was, and the misspelt municipio."""
        book = self._index.areas
        municipios = {place.id // KEYS_OF_A_MUNICIPIO, *(former.id // KEYS_OF_A_MUNICIPIO for former in place.former)}
        estados = {state_of(id_) for id_ in municipios}
        named = list(areas)
        if row.estado and estado_id not in estados:
            yield differ(Reason.ESTADO, row.estado, book.estados[place.id // (KEYS_OF_A_MUNICIPIO * KEYS_OF_A_STATE)])
            named = [area for id_ in estados for area in book.find_municipios(row.municipio or "", id_)]
        own = [area for area in named if area.id in municipios]
        if row.municipio and not own:
            find, name = self._index.layout.find, fold(row.municipio)
            # A name that no municipio has may be that of a town in it: `Cancún` for Benito Juárez.
            if areas or not any(find(id_, name, 1) for id_ in municipios):
                yield differ(Reason.MUNICIPIO_OTHER if areas else Reason.MUNICIPIO_UNKNOWN, row.municipio)
        elif own and len(named) == 1 and (spelt := compare_municipio(row, own[0], book.municipios)):
            yield spelt
        if other := self.key_of_other_municipio(row, estado_id, municipios):
            yield other

    def key_of_other_municipio(
        self, row: MatchRow, estado_id: int | None, municipios: Collection[int]
    ) -> Difference | None:
        """Return the difference of a `cve_mun` that is the key of a municipio, but of none of these."""
        if row.cve_mun is None:
            return None
        find = self._index.areas.find_by_key
        key = find(row.cve_mun, estado_id) or find(row.cve_mun, None)
        return None if key is None or key in municipios else differ(Reason.KEY, row.cve_mun)

    def _compare(
        self,
        rows: Iterable[int],
        row: MatchRow,
        given: GivenName,
        found: dict[int, Comparison],
        municipio: Difference | None,
    ) -> None:
        """Compare the places in these rows word by word."""
        costs: list[float] = []
        for at in rows:
            if at in found:
                continue
            place = self._index.place(at)
            compared = align(given, place, costs[MAX_CANDIDATES] if len(costs) > MAX_CANDIDATES else weights.MAX_COST)
            insort(costs, compared.cost)
            if compared.cost < weights.MAX_CANDIDATE_COST:
                compared = compared.with_more(municipio, compare_point(row, place), compare_ambito(row, place))
                if compared.cost < weights.MAX_CANDIDATE_COST:
                    found[at] = compared

    def _compare_letters(self, row: MatchRow, given: GivenName, found: dict[int, Comparison], area: Area) -> None:
        """Compare names of a municipio letter by letter, and keep what fits better than by its words."""
        municipio = compare_municipio(row, area, self._index.areas.municipios)
        for at in self._index.block(area.id).most_alike(given.letters, _PROPOSED):
            place = self._index.place(at)
            if compared := align_letters(given, place):
                compared = compared.with_more(municipio, compare_point(row, place), compare_ambito(row, place))
                if compared.cost < min(weights.MAX_CANDIDATE_COST, found[at].cost if at in found else 100):
                    found[at] = compared

    def _within(self, given: GivenName, municipio_id: int) -> list[int]:
        """Return the places of a municipio with the most similar names."""
        layout = self._index.layout
        homonyms = layout.find(municipio_id, given.folded, _HOMONYMS)
        if any(fold(layout.name(row)[1]) == given.folded for row in homonyms):
            return homonyms
        block = self._index.block(municipio_id)
        found = dict.fromkeys(homonyms)
        for number, (words, _) in enumerate(given.readings[:3]):
            found |= block.most_similar(words, core(words), _PROPOSED if number == 0 else _PROPOSED // 2)
        return list(found)

    def _anywhere(self, given: GivenName, estado_id: int | None) -> list[int]:
        """Return places of an estado, or of the country, with the given name or its words."""
        find, words = self._index.layout.find, self._index.words
        scope = estado_id or EVERYWHERE
        found = dict.fromkeys(find(scope, given.folded, _HOMONYMS))
        for reading, _ in given.readings[:3]:
            found |= dict.fromkeys(find(scope, " ".join(reading), _HOMONYMS))
        if not found and len(given.readings[0].words) == 1:
            joined = find(JOINED, given.folded, _HOMONYMS)
            found = dict.fromkeys(
                row
                for row in joined
                if estado_id in {None, self._index.place(row).id // (KEYS_OF_A_MUNICIPIO * KEYS_OF_A_STATE)}
            )
        if not found:
            terms = [f"e{estado_id}"] if estado_id else []
            typed = read(" ".join(given.readings[0].words) + " ")
            for propose in (words.nearly, words.without_kinds, words.most_words):
                query = None if found else propose(typed, terms)
                if query is not None:
                    found = dict.fromkeys(words.propose(query, _HOMONYMS))
        return list(found)


def is_seat_named(words: Sequence[str], place: IndexedLocality) -> bool:
    """Return whether a place is the seat of the municipio that has this name."""
    return bool(place.flags & SEAT) and tuple(words) == place.municipio_words


def _choose(ranked: Sequence[ComparedPlace], municipio: Sequence[str] | None) -> list[ComparedPlace]:
    """Return the places with the least penalties, one more than a result shows.

    Those with hardly more penalties are judged too, but no more places of one name; and the seat of the `municipio`
    with these words, however many places have its name.
    """
    judged = list(ranked[: MAX_CANDIDATES + 1])
    names = Counter(compared.place.nombre for compared in judged)
    most = judged[0].comparison.cost + weights.CLOSE_COST if judged else 0.0
    at = len(judged)
    while at < min(len(ranked), _JUDGED) and ranked[at].comparison.cost <= most:
        if not names[ranked[at].place.nombre]:
            judged.append(ranked[at])
        at += 1
    if municipio is not None:
        seat = next((later for later in ranked[at:] if is_seat_named(municipio, later.place)), None)
        judged[-1:] = [seat] if seat else judged[-1:]
    return judged
