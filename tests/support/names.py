"""An invented catalogue of names with the traps of the real one, and its index."""

from pathlib import Path

from localidades_api.names.files.writer import build_index
from localidades_api.names.index import NameIndex
from localidades_api.names.places import MIN_URBAN, Former, IndexedPlace, Withdrawn

HIDALGO = Path(__file__).parents[1] / "data" / "ageeml_2024-10_hidalgo.zip"  # INEGI's own file
ESTADOS = {5: "Coahuila de Zaragoza", 9: "Ciudad de México", 14: "Jalisco", 20: "Oaxaca", 27: "Tabasco"}
MUNICIPIOS = {
    9007: "Iztapalapa",
    14039: "Guadalajara",
    14067: "Puerto Vallarta",
    14098: "San Pedro Tlaquepaque",
    20067: "Oaxaca de Juárez",
    20208: "San Juan Mixtepec",
    20209: "San Juan Mixtepec",
    20413: "Santa María Huatulco",
    27003: "Centla",
    27004: "Centro",
    5038: "Zaragoza",
}
# key, name, population, former names
_ROWS: tuple[tuple[int, str, int | None, tuple[Former, ...]], ...] = (
    (90070001, "Iztapalapa", 1835486, ()),
    (140390001, "Guadalajara", 1385621, ()),
    (140390044, "Las Juntas", None, ()),
    (140390045, "Puente de Arcediano", None, ()),
    (140670001, "Puerto Vallarta", 224166, ()),
    (140670010, "Ixtapa", 39083, ()),
    (140670020, "El Colorado", None, ()),
    (140670021, "El Colorado", None, ()),
    (140670022, "El Colorado [Rancho]", None, ()),
    (140670030, "San José del Valle", None, (Former("San José", "Puerto Vallarta", 140670030),)),
    (140670031, "La Mojonera", 120, (Former("La Mojonera", "Compostela", 180040112),)),
    (140980001, "Tlaquepaque", 650123, ()),
    (140980002, "Santa Anita", 5000, ()),
    (140980003, "Ejido Toluca", None, ()),
    (200670001, "Oaxaca de Juárez", 255029, ()),
    (202080001, "San Juan Mixtepec", 700, ()),
    (202090001, "San Juan Mixtepec", None, ()),
    (202090002, "El Rosario", None, ()),
    (202080002, "El Rosario", None, ()),
    (204130001, "Santa María Huatulco", 10504, ()),
    (204130078, "Crucecita", 19252, ()),
    (204130080, "Bahía de Santa Cruz", 900, ()),
    (270030001, "Frontera", 23024, ()),
    (270030010, "Chilapa 1ra. Sección (Margen Izquierda)", 300, ()),
    (270030011, "Chilapa 2da. Sección", None, ()),
    (270030012, "La Estación", None, ()),
    (270030013, "Estación Vieja", None, ()),
    (270030014, "Francisco I. Madero", 410, ()),
    (270030015, "Seybaplaya", None, ()),
    (270030016, "Ribera Alta [Ranchería]", None, ()),
    (270030017, "Concepci½n", None, ()),
    (270030018, "D'Artagnan N° 5, El", None, ()),
    (270040001, "Villahermosa", 340060, ()),
    (270040050, "Boquerón 4ta. Sección (Laguna Nueva)", 800, ()),
    (270040051, "Parrilla", 5000, ()),
    (270040052, "Guadalajara", None, ()),
    (270040053, "Ninguno", None, ()),
    (270040054, "Ninguno", None, ()),
    (50380001, "Zaragoza", 12702, ()),
    (50380002, "Venustiano Carranza", None, ()),
)
PLACES = tuple(
    IndexedPlace(
        id_, nombre, id_ // 10_000, MUNICIPIOS[id_ // 10_000], id_ // 10_000_000, ESTADOS[id_ // 10_000_000],
        "U" if (population or 0) > 2500 else "R", population, 20 + id_ % 97 / 10, -100 - id_ % 89 / 10,
        id_ % 31 - 5, None if population is None else population // 4, is_seat=id_ % 10_000 == 1, former=former,
    )
    for id_, nombre, population, former in _ROWS
)  # fmt: skip
WITHDRAWN = (Withdrawn(270030099, "El Zapote", "Centla"), Withdrawn(270040098, "Parrilla", "Centro"))


def place(
    id_: int, nombre: str, municipio: str, estado: str, people: int | None = None, former: tuple[Former, ...] = ()
) -> IndexedPlace:
    """Return a place: the seat of its municipio if its key ends with 0001, and urban if it has the people."""
    return IndexedPlace(
        id_, nombre, id_ // 10_000, municipio, id_ // 10_000_000, estado,
        "U" if (people or 0) >= MIN_URBAN else "R", people, is_seat=id_ % 10_000 == 1, former=former,
    )  # fmt: skip


def places_of(table: str) -> list[IndexedPlace]:
    """Return the places of a table: key, name, municipio, estado and population."""
    places = []
    for line in table.strip().splitlines():
        key, nombre, municipio, estado, people = (cell.strip() for cell in line.split("|"))
        places.append(place(int(key), nombre, municipio, estado, int(people) if people else None))
    return places


def open_index(folder: Path) -> NameIndex:
    build_index(folder / "names", PLACES, WITHDRAWN)
    return NameIndex(folder / "names")
