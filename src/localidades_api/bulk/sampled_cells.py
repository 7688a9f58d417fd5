"""Finds the columns of a table by what the cells of its first rows are; headers only confirm.

A column of places is one whose cells are places of each row's municipio, whatever it is called.
"""

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple, TypeAlias

from localidades_api.bulk.input_rows import (
    POINT,
    ROLES,
    Answer,
    Assignment,
    Cells,
    Named,
    Roles,
    Row,
    assign,
    begin_of_answers,
    is_worded,
    unique,
    unquoted,
)
from localidades_api.catalogue.coordinates import (
    Axis,
    DegreesOutOfRangeError,
    UnreadableDegreesError,
    in_mexico,
    read_degrees,
    read_point,
)
from localidades_api.catalogue.folding import fold_header
from localidades_api.catalogue.keys import PlaceKind
from localidades_api.names.places import MAX_TEXT
from localidades_api.names.reading.areas import is_state_name
from localidades_api.names.reading.text import is_filler

SAMPLED_ROWS = 200
_COMPARED = 30  # different cells of a column that are matched
_MAX_COMPARED = 400  # in a table
_LONGEST_NAME = 80  # characters of a place and its areas
_FIRST = 8  # of them: if none is a place, the others aren't matched
_MAX_COLUMNS = 60
_MAX_MATCHED_COLUMNS = 10
_FEW, _HALF, _MOST = 0.3, 0.5, 0.8  # shares of cells
_AREA_ROLES = ("municipio", "cve_mun", "estado")
# The roles that an unused column of a list of each kind may have.
_OPEN_ROLES = {"localidad": ("estado", "municipio"), "municipio": ("estado", "nombre"), "estado": ("nombre",)}
# Headers of places that the rows are not about.
_OTHER_PLACES = re.compile(
    r"(?:^|_)(?:cabecera|capital|sede|distrito|region|jurisdiccion|nacimiento|origen|procedencia)"
)
_EXACT_DECIMAL = re.compile(r"-?[0-9]{2,3}[.,][0-9]{3,}")

# Answers rows as a match does: with an index of names, or a service.
AnswerRows: TypeAlias = Callable[[Sequence[Row]], Sequence[Answer]]


class Sampled(NamedTuple):
    """The first rows of a table, and what answers them; without it, only columns of degrees are found by cells."""

    rows: Callable[[], Sequence[Sequence[Any]]]  # read only if the headers leave something open
    answer: AnswerRows | None


def assign_sampled(headers: Sequence[str], roles: Roles, named: Named, sampled: Sampled) -> Assignment:
    """Find the column of each role as `assign` does, and by the cells of the first rows where headers don't say it."""
    by_headers = assign(headers, roles, named)
    search = _Search(headers, roles, named, by_headers, sampled)
    found = search.run() if search.is_open else {}
    return assign(headers, roles, named, found) if found else by_headers


def list_unused(assignment: Assignment, headers: Sequence[str], rows: Sequence[Sequence[str]]) -> list[dict[str, str]]:
    """Return the columns that have no role, each with the one that it may have: places, in a list of areas."""
    used = {at for at, _ in assignment.by_role.values()}
    known = {*assignment.by_role, *assignment.areas}
    known |= {"municipio"} if "cve_mun" in known else set()
    roles = _OPEN_ROLES.get(assignment.kind or "localidad", ())
    open_roles = [role for role in roles if role not in known and (role == "nombre" or "cvegeo" not in known)]
    unused: list[dict[str, str]] = []
    for at, name in enumerate(unique(headers)[: begin_of_answers(headers)]):
        texts, folded = [row[at] for row in rows if row[at]], fold_header(headers[at][:MAX_TEXT])
        if at not in used and not _OTHER_PLACES.search(folded):
            may_be = {"nombre": _share(texts, _has_letters) >= _HALF, "estado": _share(texts, is_state_name) == 1}
            confirmed = {role for role in roles if ROLES.by_name[role].words & {*folded.split("_")}} - {"nombre"}
            role = next((one for one in open_roles if may_be.get(one) or one in confirmed), None)
            unused += [{"column": name, "role": role}] if role else []
    return unused


class _Search:
    """The columns of a table that have no role yet, and the roles that no column has."""

    def __init__(
        self, headers: Sequence[str], roles: Roles, named: Named, assignment: Assignment, sampled: Sampled
    ) -> None:
        self._roles, self._sampled = roles, sampled
        self._left = _MAX_COMPARED
        self._columns = {role: at for role, (at, _) in assignment.by_role.items()}
        if not self._columns.keys() >= {*POINT} and named.keys().isdisjoint(POINT):
            for axis in POINT:
                self._columns.pop(axis, None)  # a column of `Latitud` alone may have both degrees
        left_out = [role for role, header in named.items() if not header and role in roles.by_name]
        self._left_out = {header for role in left_out for header in roles.by_name[role].headers}
        self._folded = [fold_header(header[:MAX_TEXT]) for header in headers[: begin_of_answers(headers)]]
        has_place = bool({"nombre", "cvegeo"} & self._columns.keys())
        at = self._columns.get("nombre", len(headers))
        vague = at < len(self._folded) and self._folded[at] in {"nombre", "name"}
        self._open = {role for role in roles.by_name if role not in {*self._columns, *named, *roles.areas}}
        if "cve_mun" in self._columns:
            self._open.discard("municipio")
        if (has_place and not vague) or "localidad" not in roles.needed or "nombre" in named:
            self._open -= {"nombre", "cvegeo"}
        elif vague:
            self._open |= {"nombre"} - named.keys()

    @property
    def is_open(self) -> bool:
        """Whether a column without a role may have one that is open."""
        return bool(self._open & {*POINT, "nombre", "municipio", "estado"}) and bool(self._free())

    def _free(self) -> list[int]:
        used = {*self._columns.values()}
        every = enumerate(self._folded[:_MAX_COLUMNS])
        return [at for at, header in every if at not in used and header not in self._left_out]

    def run(self) -> Mapping[str, int]:
        """Return the column of each role that is found by its cells."""
        self._rows = [[_text_of(value) for value in row] for row in self._sampled.rows()]
        before = dict(self._columns)
        if self._open.issuperset(POINT):
            self._columns |= self._find_point()
        if self._sampled.answer is not None and "nombre" in self._roles.by_name:
            self._find_area("estado", partial(_share, is_one=is_state_name))
            self._find_area("municipio", self._rate_municipios)
            self._find_municipio_of_places()
            if "nombre" in self._open and ("nombre" not in self._columns or "nombre" in before):
                self._find_places()
        return {role: at for role, at in self._columns.items() if before.get(role) != at}

    def _texts(self, at: int) -> list[str]:
        """Return the different texts of a column that say something."""
        texts = (row[at] for row in self._rows if at < len(row))
        return [text for text in dict.fromkeys(texts) if text and not is_filler(text)]

    def _is_confirmed(self, role: str, at: int) -> bool:
        return bool(self._roles.by_name[role].words & {*self._folded[at].split("_")})

    def _find_point(self) -> Mapping[str, int]:
        """Return the column that has both degrees, or the two that have one each."""
        texts = {at: self._texts(at) for at in self._free()}
        for at, cells in texts.items():
            if _share(cells, _is_pair) >= _MOST:
                return dict.fromkeys(POINT, at)
        axes = {axis: [at for at in texts if self._is_axis(axis, at, texts[at])] for axis in POINT}
        if not all(axes.values()):
            return {}
        return {axis: max(found, key=partial(self._is_confirmed, axis)) for axis, found in axes.items()}

    def _is_axis(self, axis: Axis, at: int, texts: Sequence[str]) -> bool:
        is_confirmed = self._is_confirmed(axis, at) and _share(texts, partial(_is_on, axis)) >= _HALF
        return is_confirmed or _share(texts, partial(_is_exactly_on, axis)) >= _MOST

    def _find_area(self, role: str, rate: Callable[[Sequence[str]], float]) -> None:
        """Find the column of an area; a header must confirm that of municipios."""
        for at in self._worded() if role in self._open - self._columns.keys() else ():
            least = _HALF if self._is_confirmed(role, at) else _MOST if role == "estado" else math.inf
            if least < math.inf and rate(self._texts(at)[:_COMPARED]) >= least:
                self._columns[role] = at
                return

    def _rate_municipios(self, texts: Sequence[str]) -> float:
        return self._share_certain([{"municipio": text} for text in texts])

    def _find_municipio_of_places(self) -> None:
        """Find a column of municipios that have the places of another, whatever both are called."""
        if not {"nombre", "municipio"} & self._open or "municipio" not in self._open - self._columns.keys():
            return
        worded = self._worded()[:_MAX_MATCHED_COLUMNS]
        places = [self._columns["nombre"]] if "nombre" in self._columns else worded if "nombre" in self._open else []
        for at in [one for one in worded if not self._is_confirmed("nombre", one)]:
            if self._rate_municipios(self._texts(at)[:_COMPARED]) >= _MOST:
                there = {**self._columns, "municipio": at}
                rated = [(self._share_certain(self._rows_of_places(one, there)), -one) for one in places if one != at]
                if rated and max(rated)[0] >= _MOST:
                    self._columns |= {"municipio": at, "nombre": -max(rated)[1]}
                    return

    def _find_places(self) -> None:
        """Find the column whose cells are places of the municipio of their row, or have it behind a comma."""
        had = self._columns.get("nombre")
        rated: list[tuple[float, int]] = []
        candidates = sorted(self._worded(), key=lambda at: not self._is_confirmed("nombre", at))
        for at in ([] if had is None else [had]) + candidates[:_MAX_MATCHED_COLUMNS]:
            is_confirmed = self._is_confirmed("nombre", at)
            rows = self._rows_of_places(at, self._columns)
            share = self._share_certain(rows, is_loose=is_confirmed)
            is_enough = share >= (_FEW if is_confirmed else _HALF) and (is_confirmed or share * len(rows) > 1)
            if is_enough or at == had:
                rated.append((share + _FEW * is_confirmed, -at))
        if rated:
            self._columns["nombre"] = -max(rated)[1]

    def _worded(self) -> list[int]:
        """Return the free columns with names in them, without those of other places."""
        free = (at for at in self._free() if not _OTHER_PLACES.search(self._folded[at]))
        return [at for at in free if _share(self._texts(at), _has_letters) >= _HALF]

    def _areas_of_rows(self, at: int, roles: set[str]) -> Iterator[tuple[str, dict[str, str]]]:
        """Yield the texts of a column with the areas of their rows, each pair once."""
        columns = {role: column for role, column in self._columns.items() if role in roles and column != at}
        seen = dict[tuple[str, ...], None]()
        for row in self._rows:
            if text := row[at] if at < len(row) else "":
                areas = {role: read for role, column in columns.items() if column < len(row) and (read := row[column])}
                areas = {role: area for role, area in self._roles.areas.items() if role in roles} | areas
                key = (text, *areas.values())
                if key not in seen and not is_filler(text) and len(seen) < _COMPARED:
                    seen[key] = None
                    yield text, areas

    def _rows_of_places(self, at: int, columns: Mapping[str, int]) -> list[Cells]:
        kept, self._columns = self._columns, dict(columns)
        rows: list[Cells] = [{**areas, "nombre": text} for text, areas in self._areas_of_rows(at, {*_AREA_ROLES})]
        self._columns = kept
        # A municipio again says nothing of places.
        return [row for row in rows if fold_header(str(row["nombre"])) != fold_header(str(row.get("municipio", "")))]

    def _share_certain(self, rows: Sequence[Cells], *, is_loose: bool = False) -> float:
        """Return the share of rows that are of a place, if only among several of its name in the row's municipio."""
        self._left -= len(rows)
        if not rows or self._left < 0 or self._sampled.answer is None:
            return 0.0
        kind: PlaceKind = "localidad" if "nombre" in rows[0] else "municipio"
        read = {role: column.read for role, column in self._roles.by_name.items()}
        short = [row for row in rows if max(len(str(text)) for text in row.values()) <= _LONGEST_NAME]
        found = 0
        for batch in (short[:_FIRST], short[_FIRST:]):
            sent = [Row(0, {}, {role: read[role](str(text)) for role, text in row.items()}, kind=kind) for row in batch]
            for row, answer in zip(batch, self._sampled.answer(sent), strict=True):
                is_homonym = answer["outcome"] == "ambiguous" and not answer["faults"] and "municipio" in row
                is_similar = answer["outcome"] == "ambiguous" and is_loose
                found += answer["outcome"] in {"exact", "sure"} or is_homonym or is_similar
            if not found and not is_loose:  # texts without a place take longest
                break
        return found / len(rows)


def _text_of(value: object) -> str:
    """Return a cell of a table, or a member of an object, as text."""
    return unquoted(str(value)[:MAX_TEXT]).strip() if isinstance(value, str | int | float) else ""


def _share(texts: Sequence[str], is_one: Callable[[str], bool]) -> float:
    return [*map(is_one, texts)].count(True) / len(texts) if texts else 0.0


def _has_letters(text: str) -> bool:
    return any(map(str.isalpha, text))


def _is_pair(text: str) -> bool:
    with suppress(UnreadableDegreesError, DegreesOutOfRangeError):
        return not is_worded(text) and in_mexico(*read_point(text, "")) is not None
    return False


def _is_on(axis: Axis, text: str) -> bool:
    with suppress(UnreadableDegreesError, DegreesOutOfRangeError):
        degrees = read_degrees(text, axis)
        return in_mexico(*((degrees, -100.0) if axis == "latitud" else (20.0, degrees))) is not None
    return False


def _is_exactly_on(axis: Axis, text: str) -> bool:
    """Return whether a number is that of a place and of little else: with three decimals, and west with its minus."""
    is_whole = _EXACT_DECIMAL.fullmatch(text) and text.startswith("-") == (axis == "longitud")
    return bool(is_whole) and _is_on(axis, text)


_NOUNS = {"nombre", "clave"}.union(*(ROLES.by_name[role].words for role in ("nombre", "municipio", "estado")))
_FILLING = {"de", "del", "la", "el", "los", "las", "en", "que", "o", "y", "cual", "su", "inegi", "oficial"}


def is_heading(text: str) -> bool:
    """Return whether a cell alone is a header: it has only words that headers have, or asks a question."""
    words = {*fold_header(text[:MAX_TEXT]).split("_")}
    return bool(words & _NOUNS) and ("?" in text or words <= _NOUNS | _FILLING)
