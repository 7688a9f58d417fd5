"""Invented names for the demo catalogue: ordinary Spanish toponym words, combined.

Nothing here is a list of INEGI's: a name that exists in Mexico as well (there is an El Mezquite everywhere)
is the work of chance. Every character is in windows-1252, as the real file's are.
"""

from collections.abc import Callable, Sequence

Chance = Callable[[], float]
WordIndex = Sequence[str]

LONGEST_NAME = 86  # as in INEGI's list


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


_EL = _words(
    """Mezquite Encino Naranjo Zapote Mango Nogal Sauz Pino Ocote Roble Cedro Tule Carrizo Cerrito Llano
    Potrero Refugio Porvenir Progreso Milagro Recuerdo Socorro Rosario Carmen Tanque Pozo Bordo
    Puente Molino Aguaje Ojito Charco Venado Coyote Tigre Zopilote Tecolote Palmar Guayabo Aguacate
    Huizache Nopal Maguey Pirul Fresno Otate Tepetate Pedregal Crucero Mirador Divisadero Portezuelo
    Puerto Ranchito Rodeo Corral Trapiche Papalote Durazno Tejocote Membrillo Barrial Sabino Salto
    Arenal Capulín Limón Rincón Paraíso Gavilán Álamo Bajío Peñasco Tepozán Jagüey"""
)
_LA = _words(
    """Loma Esperanza Palma Laguna Joya Mesa Cruz Soledad Providencia Barranca Piedra Noria Presa Huerta
    Ceiba Higuera Parota Cumbre Trinidad Luz Gloria Victoria Fortuna Estancia Estrella Paloma Garza
    Golondrina Tinaja Cueva Ventana Angostura Lagunita Mesita Lomita Palmita Labor Hacienda Quinta
    Pitahaya Bellota Escondida Cañada Concepción Unión Ciénega Peña Purísima Cofradía Guásima"""
)
_LOS = _words(
    """Encinos Pinos Mezquites Naranjos Limones Mangos Laureles Sauces Nogales Cedros Pozos Arcos Reyes
    Fresnos Tanques Corrales Llanos Hornos Coyotes Venados Cocos Arroyos Pilares Tules Olivos
    Cerritos Potreros Hermanos Compadres Álamos Ángeles"""
)
_LAS = _words(
    """Palmas Flores Lomas Cruces Joyas Delicias Mesas Piedras Trojes Norias Tinajas Higueras Margaritas
    Golondrinas Palomas Varas Cuevas Huertas Rosas Parotas Vegas Juntas Pilas Gaviotas Cañadas
    Ánimas"""
)
_GIVEN = _words(
    """Juan Antonio Pedro Miguel Francisco Isidro Rafael Luis Pablo Vicente Ignacio Felipe Lorenzo Marcos
    Mateo Gabriel Diego Fernando Esteban Jacinto Gregorio Benito Tadeo Cayetano Roque José Martín
    Agustín Joaquín Ramón Sebastián Nicolás"""
)
_FEMALE_SAINTS = _words(
    """Rosa Rita Cruz Ana Elena Teresa Isabel Clara Gertrudis Julia Martha Anita Catarina María Lucía
    Bárbara"""
)
_SURNAMES = _words(
    """Torres Flores Rivera Morales Reyes Cruz Ortiz Castillo Moreno Romero Vargas Mendoza Rojas Guerrero
    Medina Castro Vega Delgado Aguilar Salazar Soto Silva Campos Contreras Luna Lara Navarro
    Cervantes Miranda Salas Ochoa Cabrera Fuentes Carrillo Montes Cárdenas Padilla Orozco Zamora
    Villegas Hernández García Martínez López González Pérez Sánchez Ramírez Núñez Peña Muñoz Ibáñez"""
)
_COMPLEMENTS = (
    "de Arriba", "de Abajo", "de Enmedio", "del Monte", "del Bosque", "del Norte", "del Sur", "del Valle",
    "del Llano", "de las Flores", "de los Pinos", "de las Lomas", "de la Cruz", "de la Sierra",
    "de Guadalupe", "de los Reyes", "de la Loma", "del Encinar", "del Palmar", "de las Palmas",
    "del Refugio", "de la Laguna", "de los Pozos", "de la Mesa", "de la Huerta", "de la Barranca",
    "del Carrizal", "del Puente", "de los Olivos", "del Arenal", "del Río", "de la Peña", "de los Ángeles",
)  # fmt: skip
_SECTIONS = (
    "Uno", "Dos", "Tres", "Cuatro", "Norte", "Sur", "Primero", "Segundo", "1", "2", "3",
    "Primera Sección", "Segunda Sección", "Tercera Sección", "Cuarta Sección", "2da. Sección",
)  # fmt: skip
_SETTLEMENTS = (
    "Rancho", "Rancho Nuevo", "Granja", "Ejido", "Colonia", "Barrio", "Campo", "Cerro", "Arroyo",
    "Hacienda", "Huerta", "Nuevo", "Ampliación",
)  # fmt: skip
_FEATURES = (
    "Loma de", "Mesa de", "Llano de", "Paso de", "Puerto de", "Ojo de Agua de", "Cerro de", "Bordo de",
    "Tres Cruces de", "Rincón de",
)  # fmt: skip
_ADJECTIVES = (
    "Alto", "Largo", "Nuevo", "Viejo", "Grande", "Chico", "Colorado", "Prieto", "Blanco", "Verde", "Seco",
    "Hondo", "Redondo", "Quemado",
)  # fmt: skip
_KINDS = (
    "Rancho", "Granja", "Fraccionamiento", "Colonia", "Ejido", "Barrio", "Huerta", "Vivero", "Establo",
    "Balneario", "Campo", "Parque Industrial", "Restaurante", "Granja Avícola", "Club Campestre",
)  # fmt: skip

_SAINTS = tuple(f"San {name}" for name in _GIVEN) + tuple(f"Santa {name}" for name in _FEMALE_SAINTS)
_PLACES = tuple(
    f"{article} {noun}" for article, nouns in (("El", _EL), ("La", _LA), ("Los", _LOS), ("Las", _LAS)) for noun in nouns
)
_ADJECTIVES_FEMININE = tuple(f"{word[:-1]}a" if word[-1] == "o" else word for word in _ADJECTIVES)
_FAMILIES = ("Familia", "Rancho de los", "Granja", "Pozo de", "Campo", "Los", "Rancho")

# A template is the lists from which a name takes one word each.
_COMPOSED: tuple[tuple[WordIndex, ...], ...] = (
    (_EL, _ADJECTIVES),
    (_LA, _ADJECTIVES_FEMININE),
    (_EL + _LA, _SURNAMES),
    (_FAMILIES, _SURNAMES),
    (_FAMILIES, _SURNAMES, _SURNAMES),
    (_FEATURES, _LOS + _LAS),
    (_FEATURES, _SAINTS),
    (_FEATURES, _LOS + _LAS, _COMPLEMENTS),
    (_GIVEN, _SURNAMES),
    (_GIVEN, _SURNAMES, _SURNAMES),
    (_PLACES, _COMPLEMENTS),
    (_PLACES, _SECTIONS),
    (_SAINTS, _COMPLEMENTS),
    (_SETTLEMENTS, _PLACES),
    (_SETTLEMENTS, _PLACES, _COMPLEMENTS),
    (_SETTLEMENTS, _SAINTS),
    (_SETTLEMENTS, _SAINTS, _SECTIONS),
    (_SETTLEMENTS, _SURNAMES, _SURNAMES),
)
_SHORT: tuple[tuple[WordIndex, ...], ...] = ((_PLACES,), (_PLACES, _COMPLEMENTS), (_SAINTS,), (_GIVEN, _SURNAMES))
_RESIDENTIAL = ("Fraccionamiento Residencial", "Unidad Habitacional")
_LONG: tuple[tuple[WordIndex, ...], ...] = ((_RESIDENTIAL, _SAINTS, _COMPLEMENTS, ("y",), _PLACES, _SECTIONS),)

_ROOTS = _words(
    """Aca Ahue Cala Chima Coyu Cuima Huaque Ixca Jala Mazu Meco Nopa Oco Pala Quima Suchi Tama Teque Tlaca
    Tona Xalo Yolo Zaca Zapo"""
)
_ENDINGS = _words("""colpan tecingo quiapa lotlán huacoya metitla pancalco zintepa yucalco matlán chicapan tzinapa""")
_INVENTED = tuple(root + ending for root in _ROOTS for ending in _ENDINGS)
_MUNICIPIOS: tuple[tuple[WordIndex, ...], ...] = (
    (_INVENTED,),
    (_SAINTS, _INVENTED),
    (_SAINTS, _INVENTED),
    (_INVENTED, ("de",), _SURNAMES),
    (("Villa", "Valle", "Puerto", "Sierra", "Real"), _SAINTS, _COMPLEMENTS),
)


def _pick(rnd: Chance, words: WordIndex) -> str:
    return words[int(rnd() * len(words))]


def _compose(rnd: Chance, templates: Sequence[tuple[WordIndex, ...]]) -> str:
    template = templates[int(rnd() * len(templates))]
    return " ".join([_pick(rnd, words) for words in template])


def _odd(rnd: Chance) -> str:
    """Return a name with one of the marks that published names carry, and that a loader must leave alone."""
    place, surname, number = _pick(rnd, _PLACES), _pick(rnd, _SURNAMES), 1 + int(rnd() * 9)
    marks = (
        f"Rancho D'{surname}",
        f"{place} O'Higuera",
        f"{place} de L`{surname}",
        f"{place.replace(' ', chr(0xA0))} de {surname}",  # a no-break space
        f"{place}  de {surname}",
        f"Concepci½n {surname}",  # for ó
        f"Pozo N° {number} {surname}",
        f"Campo nº {number} {surname}",
        f"{place}, {surname}",
        f"{place} #{number}",
    )
    return _pick(rnd, marks)


def _long(rnd: Chance) -> str:
    while True:
        name = f"{_compose(rnd, _LONG)} [{_pick(rnd, _KINDS)}]"
        if len(name) <= LONGEST_NAME:
            return name


def locality_wheel(rnd: Chance) -> list[WordIndex]:
    """Return 1,000 slots, each a pool of names: a slot at random, then a name of it, is a locality's name.

    A pool's number of slots is the number of localities in a thousand that take their name from it. The
    few common names have three shares between them, so that some are far commoner than others.
    """
    common = _PLACES + _SAINTS
    composed = [_compose(rnd, _COMPOSED) for _ in range(120_000)]
    aliased = [f"{_compose(rnd, _SHORT)} ({_compose(rnd, _SHORT)})" for _ in range(30_000)]
    bracketed = [f"{_compose(rnd, _SHORT)} [{_pick(rnd, _KINDS)}]" for _ in range(10_000)]
    shares: tuple[tuple[int, WordIndex], ...] = (
        (18, ("Ninguno",)),
        (25, common[::17]),
        (45, common[::5]),
        (280, common),
        (498, composed),
        (100, aliased),
        (30, bracketed),
        (3, [_odd(rnd) for _ in range(900)]),
        (1, [_long(rnd) for _ in range(300)]),
    )
    return [pool for share, pool in shares for _ in range(share)]


def municipio_names(rnd: Chance, count: int) -> list[str]:
    """Return the names of one estado's municipios, each of them once."""
    names: dict[str, None] = {}
    while len(names) < count:
        names[_compose(rnd, _MUNICIPIOS)] = None
    return list(names)
