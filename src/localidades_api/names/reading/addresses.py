"""Takes addresses apart that stand where the name of a place should: `Calle 5 No. 109, Col. Centro`."""

import re
from typing import NamedTuple

from localidades_api.catalogue.folding import fold
from localidades_api.names.reading.text import canonical

# Before or behind a place: `Domicilio conocido`, a postal code.
_ASIDE = re.compile(
    r"\bdom(?:icilio)?\b\.? ?(?:conocido\b|con(?:oc)?\b\.?)|\bc\.? ?p\.?:? ?[0-9]{5}\b|\bs ?/ ?n\b", re.IGNORECASE
)
_STREET = re.compile(
    r"(?:calle|c(?= .*\b(?:no|num) [0-9])|av|avda|avenida|blvd|boulevard|bulevar|calz|calzada|priv|privada"
    r"|prol|prolongacion|cerrada|circuito|retorno|periferico|carr|carretera|libramiento|autopista|entre|esq|esquina)\b"
)
_NUMBER = re.compile(
    r"(?:no|num|numero|int|ext|interior|exterior|mz|mza|manzana|lt|lote|edif|depto|km)? ?[0-9]+ ?[a-z]?"
)
# What follows a number or a kilometre in the same part, or the colonia.
_BEHIND_STREET = re.compile(
    r"(?:(?:\b(?:no|n[uú]m|n[uú]mero|km)\b|#)[.:° ]*[0-9][0-9.+]*(?: ?[a-z]\b)?[ .-]+|(?=\b(?:col|fracc)[a-z]*\b))(.+)",
    re.IGNORECASE,
)
COLONIAS = frozenset({"colonia", "fraccionamiento", "unidad", "conjunto", "residencial"})


class AddressedName(NamedTuple):
    """A name without its address, empty if it was nothing else; `street` is what says where in the place, if any."""

    name: str
    street: str


def read_address(text: str) -> AddressedName:
    """Take streets, numbers, postal codes and `Domicilio conocido` out of a name; the same text if it has none."""
    names, streets = [], []
    bare = _ASIDE.sub(",", text)
    for part in filter(None, (part.strip() for part in bare.split(","))):
        name, street = _split_street(part)
        names.append(name)
        streets.append(street)
    name, street = (", ".join(filter(None, parts)) for parts in (names, streets))
    is_address = bare != text or (street and (name or any(map(str.isdigit, text))))
    return AddressedName(name, street) if is_address else AddressedName(text, "")


def _split_street(part: str) -> tuple[str, str]:
    """Return the name behind a street, and the street; each may be empty."""
    folded = fold(part)
    if _NUMBER.fullmatch(folded):
        return "", part
    if not _STREET.match(folded):
        return part, ""
    behind = _BEHIND_STREET.search(part)
    return (behind[1], part[: behind.start(1)].rstrip()) if behind else ("", part)


def is_colonia(text: str | None) -> bool:
    """Return whether a name begins with the word for a part of a town."""
    return not COLONIAS.isdisjoint(canonical(text or "")[:1])
