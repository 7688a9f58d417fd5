"""The names of a place: its own, its municipio's if it is the seat, everyday names and former ones."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from localidades_api.catalogue.folding import fold
from localidades_api.catalogue.keys import state_of
from localidades_api.names.files.layout import SEAT
from localidades_api.names.places import MIN_URBAN, Former, IndexedLocality, IndexedPlace, NameKind, PlaceName
from localidades_api.names.reading.areas import AreaBook, untitled
from localidades_api.names.reading.text import canonical, canonical_words, core, state_names, take_apart, variants
from localidades_api.names.reading.vocabulary import read_everyday_names

_OF = re.compile(r" del? ")
_MIN_SHARED = 3  # places with one `nombre`, from which on its names are made once: so it is with half of the country


class Names(NamedTuple):
    """The names of a place, its own first, and `nombre` folded.

    `are_shared` if several places have the same names.
    """

    folded: str
    names: Sequence[PlaceName]
    are_shared: bool


class Naming:
    """Names the places of one release."""

    def __init__(self, places: Sequence[IndexedPlace]) -> None:
        self._everyday = read_everyday_names()
        self._namesakes = {
            (place.municipio_id, core(canonical(place.nombre))) for place in places if _may_be_namesake(place)
        }
        counts = Counter(place.nombre for place in places)
        self._shared: dict[str, Names | None] = {
            nombre: None for nombre, count in counts.items() if count >= _MIN_SHARED
        }

    def name(self, place: IndexedPlace) -> Names:
        """Return the names of a place; of names with the same words only the first."""
        nombre = place.nombre
        are_shared = nombre in self._shared and not (place.is_seat or place.former or place.id in self._everyday)
        if are_shared and (found := self._shared[nombre]):
            return found
        names = Names(fold(nombre), self._names(place), are_shared)
        if are_shared:
            self._shared[nombre] = names
        return names

    def _names(self, place: IndexedPlace) -> list[PlaceName]:
        found: dict[tuple[str, ...], PlaceName] = {}
        for kind, text in self._written(place):
            for position, words in enumerate(variants(text)):
                if words and words not in found:
                    own = kind is NameKind.OWN
                    found[words] = PlaceName(NameKind.BRACKET if own and position else kind, words, "" if own else text)
        return list(found.values())

    def _written(self, place: IndexedPlace) -> Iterator[tuple[NameKind, str]]:
        yield NameKind.OWN, place.nombre
        if place.is_seat:
            yield NameKind.SEAT if self._is_called_by_municipio(place) else NameKind.SHARED_SEAT, place.municipio
        for name in self._everyday.get(place.id, ()):
            yield NameKind.EVERYDAY, name
        for former in place.former:
            yield NameKind.FORMER, former.nombre

    def _is_called_by_municipio(self, seat: IndexedPlace) -> bool:
        """Return whether people use the name of a municipio for its seat: not if another place is called so."""
        municipio = canonical(seat.municipio)
        if not set(municipio).isdisjoint(canonical(seat.nombre)):
            return True
        return (seat.municipio_id, core(municipio)) not in self._namesakes


def name_areas(
    book: AreaBook,
    former: Mapping[int, str] = {},
    seats: Mapping[int, Sequence[str]] = {},
    populations: Mapping[int, int | None] = {},
) -> Mapping[int, IndexedLocality]:
    """Return the estados and municipios as places with names, by key.

    A municipio has its own name, also without its titles, that of its seat, everyday names of the seat, and a former
    name of its own: `seats` has the name of each seat, followed by the everyday ones.
    """
    areas = {}
    for id_, nombre in (*book.estados.items(), *book.municipios.items()):
        if id_ in book.estados:
            texts = [text for name in state_names(id_, nombre) for text in (name, f"estado {name}")]
            names = {words: PlaceName(NameKind.OWN, words, "") for words in map(canonical_words, texts)}
        else:
            names = _names_of_municipio(nombre, seats.get(id_, ()), former.get(id_, ""))
        areas[id_] = IndexedLocality(
            row=-1,
            id=id_,
            nombre=nombre,
            poblacion=populations.get(id_),
            latitud=None,
            longitud=None,
            flags=SEAT if id_ in book.municipios else 0,
            names=tuple(names.values()),
            former=(Former(former[id_], former[id_], id_),) if id_ in former else (),
            municipio_words=(),
            state_words=book.state_words[state_of(id_)] if id_ in book.municipios else frozenset(),
        )
    return areas


def _names_of_municipio(nombre: str, seats: Sequence[str], former: str) -> dict[tuple[str, ...], PlaceName]:
    of_seat = ((NameKind.EVERYDAY if at else NameKind.SEAT, text) for at, text in enumerate(seats))
    names: dict[tuple[str, ...], PlaceName] = {}
    for kind, text in ((NameKind.OWN, nombre), *of_seat, (NameKind.FORMER, former)):
        for words in [*variants(text), untitled(canonical(text))] if text else ():
            names.setdefault(words, PlaceName(kind, words, "" if kind is NameKind.OWN else text))
    return names


class ShortNames:
    """The short names of towns: the words before `de` or `del`, as in San José del Cabo."""

    def __init__(self, places: Iterable[IndexedPlace]) -> None:
        self._towns: dict[tuple[int, str], list[tuple[int, int]]] = defaultdict(list)  # population and key
        for place in places:
            if not (place.is_seat or (place.poblacion or 0) >= MIN_URBAN):
                continue
            short, *rest = _OF.split(fold(take_apart(place.nombre).main), 1)
            if rest:
                for area in (place.municipio_id, place.estado_id):
                    self._towns[area, short].append((place.poblacion or 0, place.id))

    def is_of_town(self, place: IndexedPlace, area: int, folded: str) -> bool:
        """Return whether people use the name for a town of the area that is at least half as large as the place."""
        towns = self._towns.get((area, folded))
        return towns is not None and any(
            id_ != place.id and population * 2 >= (place.poblacion or 0) for population, id_ in towns
        )


def _may_be_namesake(place: IndexedPlace) -> bool:
    """Return, at little cost, whether a place can have the name of its municipio."""
    return not place.is_seat and place.nombre[-3:].lower() == place.municipio[-3:].lower()
