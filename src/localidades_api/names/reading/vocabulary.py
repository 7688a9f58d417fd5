"""The words of Mexican place names: abbreviations, numbers, words that say little, and the names of estados.

All words are folded (`catalogue.folding`). Tables beside this module hold abbreviations and numbers (`words.tsv`), the
names of estados (`estados.tsv`), and everyday names that no rule can derive (`everyday_names.tsv`).
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from importlib.resources import files
from typing import NamedTuple


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Forms of several words, folded: `R/a`, `U. H.`, `N.C.P.E.`, `Ex-hacienda`, `C. P.`, `# 2`.
PHRASES: Mapping[tuple[str, ...], tuple[str, ...]] = {
    ("r", "a"): ("rancheria",),
    ("r", "ia"): ("rancheria",),
    ("u", "h"): ("unidad", "habitacional"),
    ("ex", "hda"): ("exhacienda",),
    ("ex", "hacienda"): ("exhacienda",),
    ("c", "p"): ("campo", "pesquero"),
    ("c", "peso"): ("campo", "pesquero"),
    ("n", "c", "p", "e"): ("nuevo", "centro", "poblacion", "ejidal"),
    ("n", "c", "p"): ("nuevo", "centro", "poblacion"),
    ("ncpe",): ("nuevo", "centro", "poblacion", "ejidal"),
    ("ncp",): ("nuevo", "centro", "poblacion"),
    ("s", "l", "p"): ("slp",),
    ("b", "c", "s"): ("bcs",),
    ("b", "c"): ("bc",),
    ("d", "f"): ("df",),
    ("n", "l"): ("nl",),
    ("q", "roo"): ("quintana", "roo"),
    ("qroo",): ("quintana", "roo"),
    ("sto", "dgo"): ("santo", "domingo"),
    ("buena", "vista"): ("buenavista",),
    ("linda", "vista"): ("lindavista",),
    ("bella", "vista"): ("bellavista",),
    ("monte", "rey"): ("monterrey",),
    ("plan", "de", "ayala"): ("plan", "ayala"),
}

ARTICLES = frozenset({"el", "la", "los", "las", "lo", "l"})
# Words without meaning in a name, which people often get wrong.
STOP_WORDS = ARTICLES | {"de", "del", "y", "e", "en", "al", "a", "the"}
# Stop words between two words only. At an edge of a name, a letter is a name (`Campo 18-E`), and a preposition says
# that the name was cut (`San Isidro de`).
LINKS = STOP_WORDS - {"el", "la", "los", "las", "lo", "the"}

# Words for the kind of a place: the catalogue writes them before the name, in brackets after it, or not at all.
GENERICS = _words(
    """rancho ranchito ranchos rancheria rancherias ejido ejidal colonia poblado pueblo congregacion comunidad barrio
    fraccionamiento ampliacion villa ciudad heroica heroico h v hacienda exhacienda estacion campo pesquero pesqueria
    puerto granja familia predio finca quinta paraje localidad caserio unidad habitacional residencial conjunto urbano
    centro poblacion agricola ganadera municipio cabecera ribera riberas isla playa numero seccion
    cooperativa cuadrilla estancia anexo parcela lote vivero huerta establo restaurante hotel corrales propiedad privada
    parque industrial sociedad produccion rural agencia tenencia delegacion ejidos colonias laguna estero pes
    """
)
# Kinds of a single property: the name is more often that of a village.
FARMS = _words("rancho ranchito ranchos finca quinta")
ESTABLISHMENTS = FARMS | _words(
    """granja granjas restaurante vivero huerta balneario hotel motel establo gasolinera aserradero corrales vinedos
    bodega empaque propiedad invernadero empacadora avicola campamento gasera trituradora mina basurero fabrica ganadera
    escuela relleno rastro parque residencial agropecuaria industria sociedad lienzo planta taller procesadora
    distribuidora constructora comercializadora deshidratadora ladrillera bloquera frigorifico bodegas viveros graneros
    transportes subestacion caseta club universidad instituto aeropuerto compania"""
)
# Kinds of places beside a village that are named after it: a shop or cooperative, somebody's land, a beach or station.
# Its rancho, finca or quinta is as often the village itself.
BUSINESSES = (ESTABLISHMENTS - FARMS) | _words("cooperativa industrial")
LAND = _words("ejido ejidos ejidal familia predio parcela lote")
LANDMARKS = _words("puerto isla playa laguna estero ribera riberas estacion estancia presa")
# Kinds of a whole village or town.
SETTLEMENTS = _words("pueblo poblado villa ciudad heroica heroico h localidad cabecera")

# Words that a municipio's name may have before it, officially or not: `Mpio. de Tecate`, `Heroica Ciudad de Tlaxiaco`.
TITLES = _words("municipio ciudad villa heroica heroico h alcaldia delegacion demarcacion territorial ayuntamiento")

# Words that distinguish places: two names are of two places if only one has such a word, or if the other has its
# opposite.
CONTRASTS: tuple[frozenset[str], ...] = (
    frozenset({"alto", "bajo", "arriba", "abajo", "enmedio", "medio", "alta", "baja"}),
    frozenset({"norte", "sur", "oriente", "poniente", "este", "oeste", "occidente"}),
    frozenset({"nuevo", "nueva", "viejo", "vieja", "antiguo", "antigua"}),
    frozenset({"grande", "chico", "chica", "chiquito"}),
    frozenset({"derecha", "izquierda"}),
    frozenset({"primero", "ultimo"}),
    frozenset({"ampliacion", "anexo"}),
)
CONTRASTING = frozenset().union(*CONTRASTS)


COUNTRY = frozenset({"mexico", "mex", "mx", "republica mexicana", "rep mexicana", "estados unidos mexicanos"})

TOTAL = "(?:sub ?|gran )?total(?: .*)?|suma"  # of a list's rows
SAME = "(?:(?:el|la|lo) )?mism[oa](?: .*)?|idem(?: .*)?"  # as in a row above
NOTE = re.compile(r"(?:fuentes?|notas?|source|elabor\w+)\b[^:]{0,20}:", re.IGNORECASE)  # at the start of a text
# Registers and people write these where no place is known, given or meant.
FILLER = re.compile(
    r"(?:sin|s) ?(?:localidad|nombre|poblacion|comunidad|colonia|municipio|estado|lugar|domicilio|direccion"
    r"|datos?|d|n|i|e|inf(?:ormacion)?|registro|especificar|definir|asignar|identificar|determinar)(?: especifica)?"
    r"|(?:(?:localidad|municipio|entidad|estado|colonia) )?no (?:se )?(?:especifi(?:ca|co|cad[oa])"
    r"|aplica|disponible|dispone|sabe|conoce|indica(?:d[oa])?|tiene|hay|existe"
    r"|contest[oa]|respond(?:io|e)|menciona(?:d[oa])?|proporcion(?:a|o|ad[oa])|report(?:a|o|ad[oa])"
    r"|(?:identifica|localiza|registra|determina|defini|captura|encontra|informa|asigna|clasifica)d[oa])"
    r"|(?:se )?(?:ignora|desconoce)|(?:ignora|desconoci)d[oa]|pendiente|por (?:definir|asignar|confirmar)"
    r"|n ?[ade]|null|none|nan|x+|ningun[oa](?: de las anteriores)?|(?:domicilio )?conocido"
    r"|(?:vari[oa]s|divers[oa]s|otr[oa]s?|tod[oa]s?|distint[oa]s)(?: (?:el|la|los|las))?"
    r"(?: (?:localidad(?:es)?|comunidad(?:es)?|colonias?|poblaciones|lugar(?:es)?|municipios?|estado|entidad))?"
    rf"|{TOTAL}|{SAME}"
    r"|n ?s(?: n ?[cr])?|n ?c|no sabe(?: o)? no (?:contest[oa]|responde)"
    r"|localidades de (?:una|dos|1|2) viviendas?|nacional|estatal"
    r"|(?:zona|area)s? (?:urbanas?|rural(?:es)?)|(?:cobertura|nivel) (?:estatal|municipal|regional|nacional)"
    r"|localidad(?:es)?|colonias?|comunidad(?:es)?|municipio|poblado|ciudad|entidad|estado"
)


class StateSpellings(NamedTuple):
    """The spellings of an estado: its codes, an abbreviation that is read everywhere, and its names, folded.

    Codes are those of ISO 3166-2, which the SAT also uses, and of the CURP. They are only read in the place of an
    estado, because in a search they may begin a name (`mor`, `ver`, `as`).
    """

    codes: tuple[str, ...]
    abbreviation: str
    names: tuple[str, ...]


def _read_table(name: str) -> Iterator[list[str]]:
    text = (files("localidades_api.names.reading") / name).read_text(encoding="utf-8")
    return (line.split("\t") for line in text.splitlines()[1:])


def read_everyday_names() -> Mapping[int, Sequence[str]]:
    """Return the everyday names of places, which no rule can derive, by key."""
    names: dict[int, list[str]] = defaultdict(list)
    for cvegeo, name, _ in _read_table("everyday_names.tsv"):
        names[int(cvegeo)].append(name)
    return names


ESTADOS: Mapping[int, StateSpellings] = {
    int(id_): StateSpellings(tuple(codes.split()), abbreviation, tuple(names.split(", ")))
    for id_, codes, abbreviation, names in _read_table("estados.tsv")
}
STATE_CODES: Mapping[str, int] = {code: id_ for id_, estado in ESTADOS.items() for code in estado.codes}

# The word for each form that registers and people write. The table leaves out forms that are common names (`mar`,
# `sol`).
_WORDS = {form: word for word, forms in _read_table("words.tsv") for form in forms.split()}
NUMBERS: Mapping[str, str] = {form: word for form, word in _WORDS.items() if word.isdigit()}
ABBREVIATIONS: Mapping[str, tuple[str, ...]] = {
    **{form: tuple(word.split()) for form, word in _WORDS.items() if not word.isdigit()},
    **{estado.abbreviation: (estado.names[0],) for estado in ESTADOS.values() if estado.abbreviation},
}
