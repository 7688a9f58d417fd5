"""Requests that are in no cache, drawn from the release; the same random numbers give the same requests."""

import string
from collections.abc import Iterator, Sequence
from random import Random
from typing import NamedTuple
from urllib.parse import urlencode

from benchmarks.servers import PATH, read_rows

SUGGESTIONS, PAGES, NEAREST = "suggestions", "filtered pages", "nearest places, from a point near a locality"

_BATCH = 50  # keys
_SHORTEST = 3  # letters of a word that somebody searches for
_FILTERS = (
    *(("municipio_id",),) * 4,
    *(("estado_id",),) * 2,
    *(("clave",),) * 3,
    ("ambito",),
    *(("cvegeo",),) * 3,
    *(("search",),) * 4,
    ("municipio_id", "ambito"),
    ("municipio_id", "search"),
    ("estado_id", "ambito"),
    ("estado_id", "clave"),
    ("estado_id", "search"),
)


class Place(NamedTuple):
    """A locality from which requests are made."""

    id: int
    municipio_id: int
    clave: str
    nombre: str
    latitud: float
    longitud: float


def read_places(url: str) -> list[Place]:
    """Return the localities of the current release that have coordinates, in the list's order."""
    rows = read_rows(
        url,
        "SELECT id, municipio_id, clave, nombre, latitud, longitud FROM localities JOIN current_release"
        " USING (release_id) WHERE latitud IS NOT NULL AND longitud IS NOT NULL ORDER BY position",
    )
    return [Place(*row) for row in rows]


def draw(places: Sequence[Place], chance: Random) -> dict[str, list[str]]:
    """Return targets by kind, in random order."""
    every = {
        SUGGESTIONS: [*_typed(places, chance), *_mistyped(places, chance)],
        PAGES: [_filtered(chance.choice(_FILTERS), places, chance) for _ in range(400)],
        NEAREST: [_near(place, chance) for place in chance.sample(places, 300)],
    }
    return {kind: chance.sample(targets, len(targets)) for kind, targets in every.items()}


def _typed(places: Sequence[Place], chance: Random) -> Iterator[str]:
    """Yield suggestions for names letter by letter, some of them within their municipio."""
    for place in chance.sample(places, 28):
        scope = chance.choice(({}, {"municipio_id": place.municipio_id}))
        yield from (_suggest(place.nombre[:length], **scope) for length in range(1, len(place.nombre) + 1))


def _mistyped(places: Sequence[Place], chance: Random) -> Iterator[str]:
    for place in chance.sample(places, 220):
        letters = [*place.nombre]
        wrong = chance.choice([index for index, letter in enumerate(letters) if letter.isalnum()])
        letters[wrong] = chance.choice(string.ascii_lowercase.replace(letters[wrong].lower(), ""))
        yield _suggest("".join(letters))


def _suggest(typed: str, **scope: int) -> str:
    return f"{PATH}suggest/?{urlencode({'q': typed, **scope})}"


def _filtered(names: Sequence[str], places: Sequence[Place], chance: Random) -> str:
    place = chance.choice(places)
    words = [word for word in place.nombre.split() if len(word) >= _SHORTEST]
    values = {
        "municipio_id": place.municipio_id,
        "estado_id": place.municipio_id // 1000,
        "clave": place.clave,
        "ambito": chance.choice("UR"),
        "cvegeo": ",".join(f"{one.id:09}" for one in chance.sample(places, _BATCH)),
        "search": chance.choice(words or [place.nombre]),
    }
    return f"{PATH}?{urlencode({name: values[name] for name in names})}"


def _near(place: Place, chance: Random) -> str:
    lat, lon = (degrees + chance.uniform(-0.3, 0.3) for degrees in (place.latitud, place.longitud))
    return f"{PATH}nearest/?{urlencode({'lat': f'{lat:.5f}', 'lon': f'{lon:.5f}'})}"
