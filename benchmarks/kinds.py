"""Changes real names in many ways, for the fit of certainty and its test."""

import random
import re
from collections.abc import Collection, Iterable, Iterator
from itertools import cycle
from typing import NamedTuple

from localidades_api.catalogue.folding import fold
from localidades_api.names.places import IndexedPlace
from localidades_api.names.rows import MatchRow

# Kind | what is written, ways apart by `;` | how many of a hundred get their key, at least; without: the name is
# another's, and only a place that is literally called so may be certain.
_TABLE = """
letter behind               | {nombre} A; {nombre} E; {nombre}-L; {nombre} Y; {nombre} N
number behind               | {nombre} 3; {nombre} IV; {nombre} No. 7; {nombre} 2da. Sección
number in brackets          | {nombre} (2); {nombre} (Segunda Sección); {nombre} [Km 4]
contrast in brackets        | {nombre} (Nuevo); {nombre} (Parte Alta); {nombre} (Ampliación)
contrast behind             | {nombre} Nuevo; {nombre} de Arriba; {nombre} Norte; {nombre} Ampliación
landmark before             | Playa {nombre}; Isla {nombre}; Puerto {nombre}; Estación {nombre}; Presa {nombre}
business before             | Hotel {nombre}; Granja {nombre}; Gasolinera {nombre}; Cooperativa {nombre}
way to it                   | Camino a {nombre}; Crucero de {nombre}; A 2 km de {nombre}; Frente a {nombre}
surname behind              | {nombre} Mondragón; {nombre} de los Arrieta
initial before              | {initial}. {nombre}
cut behind a link           | {cut}
ejido of the name           | Ejido {nombre}; Ej. {nombre}; N.C.P.E. {nombre}
two places                  | {nombre} y {other}; {nombre} / {other}; {nombre}, {other}; {other} - {nombre}
called by its kind          | La Laguna - {nombre}; El Puerto, {nombre}
saint before                | San {nombre}; Santa {nombre}
gone                        | Antigua {nombre}; Nuevo {nombre}; Viejo {nombre}
smaller                     | {nombre}ito; {nombre}illo
field of an owner           | Predio de Juan {nombre}; Familia {nombre}; Parcela {nombre}; Pozo {nombre}
nothing                     | Sin pueblo; Ver localidad; Sin ranchería; Otra localidad; Ver observaciones; -
as it is                    | {nombre} | 98
capitals                    | {capitals} | 97
article behind              | {moved} | 95
line of three               | {nombre}, {municipio}, {estado} | 97
municipio in brackets       | {nombre} ({municipio}) | 93
municipio behind a dash     | {nombre} - {municipio} | 93
quotes, periods and spaces  | "{nombre}"; {nombre}.;   {nombre}  ,; *{nombre}* | 97
underscores                 | {underscored} | 97
kind that says nothing      | Loc. {nombre}; Localidad de {nombre}; Comunidad {nombre}; Comunidad: {nombre} | 90
clave in brackets           | {nombre} ({clave}); {nombre} [{clave}] | 90
clave before                | {clave} {nombre}; {clave} - {nombre} | 97
without spaces              | {joined} | 80
abbreviated                 | {short} | 90
numbers in digits           | {digits} | 90
number sign                 | {signed} | 88
article left out            | {bare} | 75
letter wrong                | {misspelt} | 70
"""


class Kind(NamedTuple):
    """A kind of change: the ways to make it, and the least share of rows that get their key, if the place is meant."""

    name: str
    ways: tuple[str, ...]
    least: float | None


KINDS = [
    Kind(name, tuple(one.strip("|") for one in ways.split("; ")), float(least[0]) / 100 if least else None)
    for name, ways, *least in (map(str.strip, line.split(" | ")) for line in _TABLE.strip().splitlines())
]


class Change(NamedTuple):
    """A changed row, the key of the place that it was made of, and the keys that may be certain."""

    row: MatchRow
    key: int
    keys: Collection[int]


class Changer:
    """Changes the names of a catalogue's places."""

    def __init__(self, places: Iterable[IndexedPlace]) -> None:
        places = list(places)
        self._keys: dict[tuple[int, str], set[int]] = {}
        for place in places:
            self._keys.setdefault((place.municipio_id, fold(place.nombre)), set()).add(place.id)
        # Names of letters alone that no other place of the municipio has.
        self._plain = [
            place
            for place in places
            if re.fullmatch(r"[^\W\d_]{4,}( [^\W\d_]{2,}){,4}", place.nombre)
            and len(self._keys[place.municipio_id, fold(place.nombre)]) == 1
        ]

    def change(self, kind: Kind) -> Iterator[Change]:
        """Yield changed rows, in an order that the kind decides."""
        order = self._plain.copy()
        random.Random(kind.name).shuffle(order)  # noqa: S311  # the same in every run
        for place, other, way in zip(order, order[1:], cycle(kind.ways), strict=False):
            text = way.format(**_parts(place, other), nombre=place.nombre)
            keys = self._keys.get((place.municipio_id, fold(text)), set())
            if text == place.nombre and kind.ways != ("{nombre}",):
                continue
            if kind.least is not None:
                keys = keys | {place.id}
            yield Change(MatchRow(text, place.municipio, place.estado), place.id, keys)


_SHORT = {
    "Santa": "Sta.", "Santo": "Sto.", "San": "Sn.", "Ciudad": "Cd.", "Guadalupe": "Gpe.", "Francisco": "Fco.",
    "General": "Gral.", "Rancho": "Rcho.", "Colonia": "Col.", "Ejido": "Ej.", "Villa": "V.", "Barrio": "Bo.",
    "José": "J.", "María": "Ma.", "Licenciado": "Lic.", "Antonio": "Ant.", "Puerto": "Pto.",
}  # fmt: skip
_DIGITS = {
    "Uno": "1", "Dos": "2", "Tres": "3", "Cuatro": "4", "Cinco": "5", "Seis": "6", "Primera": "1ra.", "Segunda": "2da.",
    "Tercera": "3ra.", "Primero": "1", "Segundo": "2do.", "Diez": "10", "Veinte": "20",
}  # fmt: skip


def _parts(place: IndexedPlace, other: IndexedPlace) -> dict[str, str]:
    """Return what a change may be made of."""
    nombre = place.nombre
    link = re.match(r"(.* (?:de los|de las|de la|del|de|y)) .*", nombre)
    article = re.fullmatch(r"(El|La|Los|Las) (.*)", nombre)
    words = nombre.split()
    return {
        "municipio": place.municipio,
        "estado": place.estado,
        "clave": f"{place.id % 10_000:04d}",
        "other": other.nombre,
        "initial": chr((ord(fold(nombre)[-1]) - ord("a") + 3) % 26 + ord("A")),
        "cut": link[1] if link else f"{nombre} de",
        "capitals": nombre.upper(),
        "moved": f"{article[2]}, {article[1]}" if article else nombre,
        "bare": article[2] if article else nombre,
        "underscored": nombre.replace(" ", "_"),
        "joined": nombre.replace(" ", ""),
        "short": " ".join(_SHORT.get(word, word) for word in words) if len(words) > 1 else nombre,
        "digits": " ".join(_DIGITS.get(word, word) for word in words) if len(words) > 1 else nombre,
        "signed": " ".join(f"No. {_DIGITS[word]}" if word in _DIGITS else word for word in words),
        "misspelt": _misspell(nombre, place.id),
    }


def _misspell(nombre: str, seed: int) -> str:
    """Put another letter in place of a small one; the same name is returned if it has fewer than seven of these."""
    letters = [at for at, letter in enumerate(nombre) if letter.islower()]
    if len(letters) < 7:  # noqa: PLR2004  # a shorter name is often another one
        return nombre
    at = letters[seed % len(letters)]
    return nombre[:at] + "aeiouns"[(seed + ord(nombre[at])) % 7] + nombre[at + 1 :]
