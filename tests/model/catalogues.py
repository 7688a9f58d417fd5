"""Small catalogues: each has most places of the others, under other names."""

import hashlib
from functools import cache
from pathlib import Path
from random import Random
from typing import NamedTuple

from tests.support.catalogue import Place, write_catalogue
from tests.support.records import Truth

COUNT = 6
_SLOTS = 90  # two pages
_WORDS = (
    *("Arroyo", "Cerro", "Encino", "Fresno", "Guaje", "Huerta", "Jacal", "Laguna"),
    *("Mesa", "Nopal", "Palma", "Quinta", "Roble", "Salto", "Tule", "Vado"),
)
_OWN_WORDS = ["Azul", "Blanco", "Colorado", "Dorado", "Gris", "Verde"]


class Version(NamedTuple):
    """A catalogue that was published under the name of a release."""

    release: str
    catalogue: int

    @property
    def places(self) -> list[Place]:
        """Return its places."""
        return places_of(self.catalogue)

    @property
    def key(self) -> str:
        """Return its key in `truth`."""
        return str(self.catalogue)


@cache
def places_of(catalogue: int) -> list[Place]:
    """Return the places of a catalogue; a fifth of them have the same name in all."""
    random = Random(catalogue)  # noqa: S311  # the same in every run
    places = []
    for slot in range(_SLOTS):
        estado, municipio = 1 + slot % 3, 1 + slot // 3 % 4
        own = "" if slot % 5 == 0 else f" {_OWN_WORDS[catalogue]}"
        place = Place(
            f"{estado:02d}{municipio:03d}{1 + slot:04d}",
            f"{_WORDS[slot % len(_WORDS)]} {slot}{own}",
            nom_ent=f"Estado {estado:02d}",
            nom_mun=f"Municipio {municipio:03d}",
            latitud=f"{20 + slot / 100:.4f}",
            longitud=f"{-103 + slot % 7 / 100:.4f}",
            poblacion=random.choice(["-", str(slot), str(slot + 40)]),
        )
        if random.random() > 0.1:
            places.append(place)
    return sorted(places, key=lambda place: place.cvegeo)


@cache
def truth() -> Truth:
    """Return the expected responses of every catalogue, by its `key`."""
    return Truth({str(number): places_of(number) for number in range(COUNT)})


@cache
def files(folder: Path) -> dict[int, Path]:
    """Write the catalogues."""
    return {number: write_catalogue(folder / f"{number}.csv", places_of(number)) for number in range(COUNT)}


@cache
def digests(folder: Path) -> dict[str, int]:
    """Return the catalogues by the SHA-256 of their files."""
    return {hashlib.sha256(path.read_bytes()).hexdigest(): number for number, path in files(folder).items()}
