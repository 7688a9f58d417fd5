"""Requests for filters, searches and nearest places, drawn from the release; the same seed gives the same requests."""

import string
from collections.abc import Iterator, Sequence
from random import Random
from typing import NamedTuple
from urllib.parse import urlencode

from benchmarks.database import read_rows
from benchmarks.processes import PATH

TYPED, MISTYPED, SCOPED = "what is typed of a name", "one letter wrong", "within a municipio"
NEAR, ANYWHERE = "from about a locality", "from anywhere in the country's box"

_WHOLE_NAMES, _WHOLE_SCOPED, _WRONG, _WRONG_SCOPED = 20, 8, 160, 60
_FILTERS = 200
_POINTS = 300
_ABOUT = 0.3  # degrees
_BATCH = 50  # keys
_SHORTEST = 3  # letters of a word that somebody searches for


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


def suggestions(places: Sequence[Place], chance: Random) -> Iterator[tuple[str, str]]:
    """Yield kinds and targets: names letter by letter, whole ones with a letter wrong, and both in their municipio."""
    for place in chance.sample(places, _WHOLE_NAMES):
        yield from ((TYPED, _suggest(beginning)) for beginning in _beginnings(place))
    for place in chance.sample(places, _WRONG):
        yield MISTYPED, _suggest(_mistype(place, chance))
    for place in chance.sample(places, _WHOLE_SCOPED):
        yield from ((SCOPED, _suggest(typed, municipio_id=place.municipio_id)) for typed in _beginnings(place))
    for place in chance.sample(places, _WRONG_SCOPED):
        yield SCOPED, _suggest(_mistype(place, chance), municipio_id=place.municipio_id)


def _suggest(typed: str, **scope: int) -> str:
    return f"{PATH}suggest/?{urlencode({'q': typed, **scope})}"


def _beginnings(place: Place) -> list[str]:
    return [place.nombre[:length] for length in range(1, len(place.nombre) + 1)]


def _mistype(place: Place, chance: Random) -> str:
    letters = [*place.nombre]
    wrong = chance.choice([index for index, letter in enumerate(letters) if letter.isalnum()])
    letters[wrong] = chance.choice(string.ascii_lowercase.replace(letters[wrong].lower(), ""))
    return "".join(letters)


def filters(places: Sequence[Place], chance: Random) -> list[str]:
    """Return queries of the list: each filter alone, and usual combinations."""
    return [_filter(chance.choice(_MIX), chance.choice(places), places, chance) for _ in range(_FILTERS)]


_MIX = (
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


def _filter(names: Sequence[str], place: Place, places: Sequence[Place], chance: Random) -> str:
    words = [word for word in place.nombre.split() if len(word) >= _SHORTEST]
    values = {
        "municipio_id": place.municipio_id,
        "estado_id": place.municipio_id // 1000,
        "clave": place.clave,
        "ambito": chance.choice("UR"),
        "cvegeo": ",".join(f"{other.id:09}" for other in chance.sample(places, _BATCH)),
        "search": chance.choice(words or [place.nombre]),
    }
    return urlencode({name: values[name] for name in names})


def nearest(places: Sequence[Place], chance: Random) -> Iterator[tuple[str, str]]:
    """Yield kinds and targets: points near localities, and points anywhere in the box around all of them."""
    for place in chance.sample(places, _POINTS):
        lat, lon = (degrees + chance.uniform(-_ABOUT, _ABOUT) for degrees in (place.latitud, place.longitud))
        yield NEAR, _near(lat, lon)
    latitudes, longitudes = [place.latitud for place in places], [place.longitud for place in places]
    south, north, west, east = min(latitudes), max(latitudes), min(longitudes), max(longitudes)
    for _ in range(_POINTS):
        yield ANYWHERE, _near(chance.uniform(south, north), chance.uniform(west, east))


def _near(lat: float, lon: float) -> str:
    return f"{PATH}nearest/?{urlencode({'lat': f'{lat:.5f}', 'lon': f'{lon:.5f}'})}"
