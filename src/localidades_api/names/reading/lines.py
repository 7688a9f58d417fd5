"""Reads rows: a name may be a whole line, with its areas, a key or a street, and an area may be a filler."""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from localidades_api.catalogue.keys import KINDS, read_written_key
from localidades_api.names import weights
from localidades_api.names.reading.areas import AreaBook
from localidades_api.names.reading.text import fold, is_filler
from localidades_api.names.reading.vocabulary import COUNTRY
from localidades_api.names.rows import MatchRow

# A clave, or the whole key, before a name or in brackets behind it: `0001 Bacalar`. No name of the catalogue is so.
_KEY_BEFORE_NAME = re.compile(r"(?:(?P<clave>[0-9]{4})|(?P<key>[0-9]{9}))[\s.:)-]+(?P<name>[^\W\d].*)", re.DOTALL)
_KEY_IN_BRACKETS = re.compile(r"(?P<name>.*[^\s(\[])\s*[(\[](?:(?P<clave>[0-9]{4})|(?P<key>[0-9]{9}))[)\]]", re.DOTALL)

_ESTADO_OF_MEXICO = frozenset({"mexico", "mex"})  # names of the country, too


class Readings(NamedTuple):
    """The readings of a row: those with areas, which are equally good and compete, and what remains without them."""

    with_areas: Sequence[Sequence[MatchRow]]
    plain: MatchRow


def without_fillers(row: MatchRow) -> MatchRow:
    """Return a row without areas that only say that none is given, and without such a name beside a key."""
    if is_filler(row.municipio):
        row = row._replace(municipio=None)
    if is_filler(row.estado) or fold(row.estado or "") in COUNTRY - _ESTADO_OF_MEXICO:
        row = row._replace(estado=None)
    if (row.cvegeo or (row.clave and row.municipio)) and is_filler(row.nombre):
        row = row._replace(nombre=None)
    return row


def read_row(areas: AreaBook, row: MatchRow) -> Readings:
    """Return the readings of a row.

    `México` in the place of its estado may be the country: beside a municipio that this estado lacks, or with a name
    that no place of this estado has.
    """
    readings = _read(areas, row)
    if fold(row.estado or "") not in _ESTADO_OF_MEXICO or _has_municipio(areas, row):
        return readings
    of_country = _read(areas, row._replace(estado=None))
    competing = row.municipio is not None
    plain = [[readings.plain, of_country.plain]] if competing else [[readings.plain], *of_country.with_areas]
    return Readings([*readings.with_areas, *plain], of_country.plain)


def _has_municipio(areas: AreaBook, row: MatchRow) -> bool:
    """Return whether the estado of a row has the municipio that it names."""
    found = areas.find_municipios(row.municipio or "", areas.find_state(row.estado or ""))
    return any(area.likeness >= weights.SAME_UNTITLED_NAME for area in found)


def _read(areas: AreaBook, row: MatchRow) -> Readings:
    if _is_written_in_digits(row):
        row = row._replace(nombre=None, clave=row.nombre)
    if row.municipio and _is_estado(areas, row.municipio, row.estado):
        row = row._replace(municipio=None, estado=row.municipio)
    if row.municipio or row.cvegeo or row.clave:
        return Readings((), with_key_apart(row))
    *with_areas, [plain] = _read_line(areas, row)
    return Readings([[with_key_apart(row) for row in readings] for readings in with_areas], with_key_apart(plain))


def with_key_apart(row: MatchRow) -> MatchRow:
    """Return a row whose name has its key apart."""
    text = (row.nombre or "").strip()
    if row.cvegeo or row.clave or not any(map(str.isdigit, text)):
        return row
    found = _KEY_BEFORE_NAME.fullmatch(text) or _KEY_IN_BRACKETS.fullmatch(text)
    return row._replace(clave=found["clave"], cvegeo=found["key"], nombre=found["name"]) if found else row


def name_without_areas(areas: AreaBook, row: MatchRow, estado_id: int | None) -> str:
    """Return the name of a row without its municipio and estado, where they follow it again."""
    text = row.nombre or ""
    own = {fold(area) for area in (row.municipio, row.estado) if area}
    while own:
        name, last = split_last(text)
        is_estado = estado_id is not None and not last.strip().isdigit() and areas.find_state(last) == estado_id
        if not name or not (is_estado or fold(last) in own):
            break
        text = name
    return text


def split_last(text: str) -> tuple[str, str]:
    """Return a name without the part behind its last comma, dash or slash or in its last bracket, and that part."""
    at = max(text.rfind(","), text.rfind("("), text.rfind(" - "), text.rfind("/"), 0)
    return text[:at].rstrip("(, \t\r\n"), text[at + 1 :].removeprefix("- ")


def _is_written_in_digits(row: MatchRow) -> bool:
    """Return whether a row has digits for its name and its municipio, which are claves then."""
    nombre = (row.nombre or "").strip()
    if row.cvegeo or row.clave or not nombre.isdecimal() or len(nombre) > KINDS["localidad"].clave_digits:
        return False
    municipio, estado = ((text or "").strip() for text in (row.municipio, row.estado))
    is_whole = len(municipio) > KINDS["municipio"].clave_digits or estado.isdecimal()
    return municipio.isdecimal() and is_whole and len(municipio) <= KINDS["municipio"].digits


def _is_estado(areas: AreaBook, text: str, estado: str | None) -> bool:
    """Return whether a text in the column of municipios is the name of the row's estado, and of no municipio."""
    folded = fold(text)
    found = None if folded.isdigit() else areas.named_state(folded)
    if found is None or (estado and areas.find_state(estado) != found):
        return False
    return all(area.likeness < weights.SAME_NAME for area in areas.find_municipios(text, None))


def _read_line(areas: AreaBook, row: MatchRow) -> Iterator[list[MatchRow]]:
    """Yield the readings of a row without a municipio, those with the most areas first, the row itself last.

    The areas may follow the name, or the name may be a key. Readings in one list are equally good.
    """
    text = row.nombre or ""
    digits = read_written_key(text)
    if digits.isdecimal() and len(digits) in {8, 9} and not row.estado:
        yield [row._replace(nombre=None, cvegeo=digits)]
        yield [row]
        return
    estado_id = areas.find_state(row.estado) if row.estado else None
    *before, last = areas.split_line(text, estado_id) or [text]
    if before and estado_id is not None and areas.find_state(last) == estado_id:
        *before, last = before  # the row's own estado again
        row = row._replace(nombre=", ".join((*before, last)))
    name = ", ".join(before)
    if not name:
        yield [row if row.estado else row._replace(nombre=last)]
        return
    if len(before) > 1 and not row.estado and areas.find_state(last) is not None:
        yield [row._replace(nombre=", ".join(before[:-1]), municipio=before[-1], estado=last)]
    if readings := list(_read_parts(areas, row, before, last)):
        yield readings
    yield [row if row.estado else row._replace(nombre=f"{name}, {last}")]


def _read_parts(areas: AreaBook, row: MatchRow, before: Sequence[str], last: str) -> Iterator[MatchRow]:
    """Yield the readings of a line with one area behind the name, or with its estado before it."""
    name = ", ".join(before)
    if row.estado:
        if any(
            area.likeness >= weights.SAME_UNTITLED_NAME
            for area in areas.find_municipios(last, areas.find_state(row.estado))
        ):
            yield row._replace(nombre=name, municipio=last)
        return
    is_estado = areas.find_state(last) is not None
    if is_estado:
        yield row._replace(nombre=name, estado=last)
    if fold(last) in COUNTRY:
        yield row._replace(nombre=name)
    if any(area.likeness >= weights.SAME_NAME or not is_estado for area in areas.find_municipios(last, None)):
        yield row._replace(nombre=name, municipio=last)
    if areas.named_state(fold(before[0])) is not None:
        yield row._replace(nombre=last, municipio=", ".join(before[1:]) or None, estado=before[0])
