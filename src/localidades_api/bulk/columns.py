"""Finds the column of each role in a file: named by the sender, said by its header, or by the cells of the first rows.

A column of places is one whose cells are places of each row's municipio, whatever it is called.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple, TypeAlias

from localidades_api.bulk.earlier import begin_of_answers, find_answers, read_earlier
from localidades_api.bulk.input_rows import Answer, Cells, Row, RowError, Sent, as_text, read_degrees_of, unquoted
from localidades_api.bulk.roles import PLACE, POINT, ROLES, VAGUE, Named, Roles, has_letters, rank_header, read_text
from localidades_api.catalogue.coordinates import (
    Axis,
    DegreesOutOfRangeError,
    UnreadableDegreesError,
    in_mexico,
    read_point,
)
from localidades_api.catalogue.folding import fold_header
from localidades_api.catalogue.keys import PlaceKind
from localidades_api.catalogue.messages import did_you_mean
from localidades_api.errors import UnreadableBodyError
from localidades_api.names.places import MAX_TEXT
from localidades_api.names.reading.areas import is_state_name
from localidades_api.names.reading.text import is_filler

# Answers rows as a match does: with an index of names, or a service.
AnswerRows: TypeAlias = Callable[[Sequence[Row]], Sequence[Answer]]


class Reading(NamedTuple):
    """The roles of a file's columns, the headers named for some, and the sheet and the row of its header if it has one.

    `answer` answers some of the first rows, to find columns by their cells.
    """

    roles: Roles
    named: Mapping[str, str] = {}
    sheet: str | None = None
    header_row: int | None = None
    answer: AnswerRows | None = None


class Assignment(NamedTuple):
    """The column of each role that was found: its index among the headers, and the reader of its cells."""

    width: int  # the number of headers
    by_role: Mapping[str, tuple[int, Callable[[str], str | None]]]
    kind: PlaceKind | None = None  # of the first set of needed columns that was found
    areas: Mapping[str, str] = {}  # the estado and the municipio of rows that give none
    kind_of_rows: PlaceKind | None = None  # None if each row's key says it: that in `cvegeo`, or five digits in `clave`
    earlier: int | None = None  # the index of the latest of earlier answers

    def read(self, number: int, sent: Sent, values: Sequence[Any]) -> Row:
        """Read the cells of a row that has a value for every header; its `problem` says why it can't be read."""
        try:
            cells, note = self._read_cells(values)
        except RowError as error:
            return Row(number, sent, {}, str(error))
        earlier = None if self.earlier is None else read_earlier(values[self.earlier :])
        return Row(number, sent, cells, note=note, kind=self.kind_of_rows, earlier=earlier)

    def _read_cells(self, values: Sequence[Any]) -> tuple[Cells, str | None]:
        cells: dict[str, str | float | None] = {}
        note = None
        for role, (at, read) in self.by_role.items():
            value = values[at]
            text = unquoted(value) if type(value) is str else as_text(role, value)
            cells[role] = read(text.strip()[:MAX_TEXT])
            if role == "clave" and cells[role] and "nombre" not in self.by_role and is_worded(text[:MAX_TEXT]):
                cells |= {"nombre": read_text(text[:MAX_TEXT]), "clave": None}  # `LOC.` heads names, too
        if not cells.keys().isdisjoint(POINT):
            point, note = read_degrees_of(cells)
            cells |= zip(POINT, point, strict=True)
        for role, area in self.areas.items():
            if cells.get(role) is None and not (role == "municipio" and cells.get("cve_mun")):
                cells[role] = area
        return cells, note


def is_worded(text: str) -> bool:
    """Return whether a text has letters and no digit."""
    return has_letters(text) and not any(map(str.isdigit, text))


# -- By headers

# The areas that rows of a kind have around them.
_AREAS_AROUND: Mapping[PlaceKind, tuple[str, ...]] = {
    "localidad": ("municipio", "estado"), "municipio": ("estado",), "estado": (),
}  # fmt: skip


def assign(headers: Sequence[str], roles: Roles, named: Named, by_cells: Mapping[str, int] = {}) -> Assignment:
    """Find the column of each role: named, found by its cells, or guessed from its header.

    Raise UnreadableBodyError if a named one is missing.
    """
    folded = _fold(headers)
    columns = _find_named(headers, folded, named)
    as_headers = {role: _find(text, headers, folded) for role, text in roles.areas.items()}
    columns |= {role: at for role, at in as_headers.items() if at is not None}
    columns |= by_cells
    best = _choose_best(folded[: begin_of_answers(headers)])
    for role in roles.by_name:
        if role in best and role not in named and role not in columns and best[role] not in columns.values():
            columns[role] = best[role]
    if not columns.keys() >= {*POINT}:  # an `x` alone is not a longitude
        columns = {role: at for role, at in columns.items() if role in named or role not in POINT}
    kinds = (kind for kind, needed in roles.needed.items() if any(one <= columns.keys() for one in needed))
    kind = next(kinds, None)
    is_guessed = len(roles.needed) > 1
    is_keyed = is_guessed and "cvegeo" in columns and columns.keys().isdisjoint({"nombre", "clave"})
    # With an estado alone, five digits may be the last seven of a locality's key without their zeros.
    is_alone = columns.keys().isdisjoint({"nombre", "cvegeo"}) and ("municipio" in columns or "estado" not in columns)
    is_clave_of_any = is_guessed and is_alone and "clave" in columns and folded[columns["clave"]] == "clave"
    around = _AREAS_AROUND[kind or "localidad"]
    areas = {role: text for role, text in roles.areas.items() if role in around and as_headers[role] is None}
    by_role = {role: (at, roles.by_name[role].read) for role, at in columns.items()}
    kind_of_rows = None if is_keyed or is_clave_of_any else kind
    return Assignment(len(headers), by_role, kind, areas, kind_of_rows, next(reversed(find_answers(headers)), None))


def _choose_best(folded: Sequence[str]) -> Mapping[str, int]:
    best: dict[str, tuple[tuple[int, bool, int], int]] = {}
    for at, header in enumerate(folded):
        for role, rank in rank_header(header).items():
            if role not in best or rank < best[role][0]:
                best[role] = rank, at
    return {role: at for role, (_, at) in best.items()}


def _fold(headers: Sequence[str]) -> list[str]:
    return [fold_header(header[:MAX_TEXT]) for header in headers]


def require(assignment: Assignment, reading: Reading, headers: Sequence[str]) -> None:
    """Raise UnreadableBodyError unless the columns that were found are enough and none of them is ambiguous."""
    if header := repeated(assignment, headers, reading.named):
        raise UnreadableBodyError(f"The first line has the column `{header}` twice: rename or remove one of them.")
    if assignment.kind is None:
        raise UnreadableBodyError(
            f"The first line names no column for {reading.roles.describe_needed()}: begin the file with a line such as"
            f" `{reading.roles.example}`, or say which of its headers stands for what."
        )


def repeated(assignment: Assignment, headers: Sequence[str], named: Named) -> str | None:
    """Return a header that was found and that another column has as well; None if there is none.

    Beyond an empty column there may be another list with the same headers.
    """
    own = list(headers)[: list(headers).index("") if "" in headers else None]
    folded = _fold(own)
    for role, (at, _) in assignment.by_role.items():
        is_literal = named.get(role) == headers[at]
        is_numbered = named.get(role) not in headers and named.get(role) == unique(headers)[at]
        if at >= len(own) or is_numbered:
            continue
        if (own.count(headers[at]) if is_literal else folded.count(folded[at])) > 1:
            return headers[at]
    return None


def _find_named(headers: Sequence[str], folded: Sequence[str], named: Named) -> dict[str, int]:
    """Return the index of each header that the sender names; raise UnreadableBodyError if one is missing."""
    columns: dict[str, int] = {}
    for role, header in named.items():
        at = _find(header, headers, folded) if header else None
        if at is not None:
            columns[role] = at
        elif header:
            area = f", and no {role} has this name" if role in _AREAS_AROUND["localidad"] else ""
            sentence = f"The first line does not have the header that was named for `{role}`{area}."
            raise UnreadableBodyError(f"{sentence} {did_you_mean(header, headers)}".rstrip())
    return columns


def _find(header: str, headers: Sequence[str], folded: Sequence[str]) -> int | None:
    """Return the index of a header as it is written, folded, or named by `unique`; None if there is none."""
    names, name = unique(headers), fold_header(header)
    if header in names:
        return names.index(header)
    return folded.index(name) if name and name in folded else None


def name_columns(assignment: Assignment, headers: Sequence[str]) -> dict[str, str]:
    """Return the name of the column of each role, as `unique` names it."""
    names = unique(headers)
    return {role: names[at] for role, (at, _) in assignment.by_role.items()}


def unique(headers: Iterable[str]) -> list[str]:
    """Return headers as names of members: none empty, none twice."""
    seen: dict[str, None] = {}
    repeats = Counter[str]()
    for number, header in enumerate(headers, 1):
        name = plain = header or f"column {number}"
        while name in seen:
            repeats[plain] += 1
            name = f"{plain} ({repeats[plain] + 1})"
        seen[name] = None
    return list(seen)


# -- Without a header

_NOUNS = {"nombre", "clave"}.union(*(ROLES.by_name[role].words for role in PLACE))
_FILLING = {"de", "del", "la", "el", "los", "las", "en", "que", "o", "y", "cual", "su", "inegi", "oficial"}


def read_heading(first: Sequence[str], reading: Reading) -> Named | None:
    """Return the headers that are named if the first row is one, or None if it is a place.

    It is evidently a place if it is a column alone, unless it has only words that headers have or asks a question, or
    if it ends with an estado. A column alone has names, whatever it is called.
    """
    roles, named, _, header_row, _ = reading
    if header_row == 0:
        return None
    if named or "nombre" not in roles.by_name or assign(first, roles, {}).kind is not None:
        return named
    if len(first) == 1:
        words = {*fold_header(first[0][:MAX_TEXT]).split("_")}
        is_heading = bool(words & _NOUNS) and ("?" in first[0] or words <= _NOUNS | _FILLING)
        return {"nombre": first[0]} if is_heading or header_row else None
    is_place = len(first) <= len(PLACE) and is_state_name(first[-1])
    return None if is_place and header_row is None else named


def columns_without_header(first: Sequence[str], named: Named) -> list[str]:
    """Return the roles of columns without a header, empty for none: as the sender numbers them, or by what they have.

    Raise UnreadableBodyError for a number that there is not, and for more columns than a place has.
    """
    width = len(first)
    if numbers := {role: number for role, number in named.items() if number}:
        if not set(numbers.values()) <= {*map(str, range(1, width + 1))}:
            raise UnreadableBodyError(f"Without a header, name columns by their numbers, from 1 to {width}.")
        by_number = {int(number): role for role, number in numbers.items()}
        return [by_number.get(number, "") for number in range(1, width + 1)]
    if width > len(PLACE):
        raise UnreadableBodyError(
            f"The file has {width} columns and no header: say the number of each column, such as `nombre=1`."
        )
    has_state = width > 1 and is_state_name(first[-1])
    return [*PLACE[: width - 1], PLACE[-1]] if has_state else list(PLACE[:width])


# -- By cells

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
_OPEN_ROLES = {"localidad": ("estado", "municipio"), "municipio": ("estado", "nombre")}
# Headers of places that the rows are not about.
_OTHER_PLACES = re.compile(
    r"(?:^|_)(?:cabecera|capital|sede|distrito|region|jurisdiccion|nacimiento|origen|procedencia)"
)
_EXACT_DECIMALS = {"latitud": re.compile(r"[0-9]{2}[.,][0-9]{3,}"), "longitud": re.compile(r"-[0-9]{2,3}[.,][0-9]{3,}")}


def assign_sampled(headers: Sequence[str], reading: Reading, rows: Sequence[Sequence[Any]]) -> Assignment:
    """Find the column of each role as `assign` does, and by the cells of the first rows where headers don't say it.

    Without what answers them, only columns of degrees are found so. Raise UnreadableBodyError also for a list that
    would be one of estados, with a column of what may be its places.
    """
    by_headers = assign(headers, reading.roles, reading.named)
    search = _Search(headers, reading, by_headers)
    found = search.run(rows) if search.is_open else {}
    assignment = assign(headers, reading.roles, reading.named, found) if found else by_headers
    if assignment.kind == "estado" and len(reading.roles.needed) > 1 and not reading.named:
        used = {at for at, _ in assignment.by_role.values()}
        for at, header in enumerate(headers[: begin_of_answers(headers)]):
            texts = (_text_of(row[at]) for row in rows if at < len(row) and at not in used)
            if any(is_worded(text) and not is_state_name(text) for text in texts):
                raise UnreadableBodyError(
                    f"Only its estado was recognized. If `{header}` has the localities, say so with `nombre`; if the"
                    " rows are about estados, with `kind=estado`."
                )
    return assignment


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
            may_have = [role for role in open_roles if _may_have(role, folded, texts)]
            unused += [{"column": name, "role": role} for role in may_have[:1]]
    return unused


def _may_have(role: str, header: str, texts: Sequence[str]) -> bool:
    if role == "nombre":
        return _share(texts, has_letters) >= _HALF
    is_confirmed = not ROLES.by_name[role].words.isdisjoint(header.split("_"))
    return is_confirmed or (role == "estado" and _share(texts, is_state_name) == 1)


class _Search:
    """The columns of a table that have no role yet, and the roles that no column has."""

    def __init__(self, headers: Sequence[str], reading: Reading, by_headers: Assignment) -> None:
        self._roles, named, *_, self._answer = reading
        self._left = _MAX_COMPARED
        self._different: dict[int, list[str]] = {}
        self._folded = _fold(headers[: begin_of_answers(headers)])
        self._columns = columns = {role: at for role, (at, _) in by_headers.by_role.items()}
        self._left_out = {role for role, header in named.items() if not header}
        self._open = self._roles.by_name.keys() - {*columns, *named, *self._roles.areas}
        if "cve_mun" in columns:
            self._open -= {"municipio"}
        place = self._folded[columns["nombre"] :][:1] if "nombre" in columns else []
        if "localidad" not in self._roles.needed or "nombre" in named:
            self._open -= {"nombre", "cvegeo"}
        elif place and place[0] in VAGUE:
            self._open |= {"nombre"}
        elif place or "cvegeo" in columns:
            self._open -= {"nombre"}

    @property
    def is_open(self) -> bool:
        """Whether a column without a role may have one that is open."""
        return bool(self._open - {"cve_mun", "clave"}) and bool(self._free())

    def _free(self) -> list[int]:
        used = {*self._columns.values()}
        every = enumerate(self._folded[:_MAX_COLUMNS])
        return [at for at, header in every if at not in used and self._left_out.isdisjoint(rank_header(header))]

    def run(self, rows: Sequence[Sequence[Any]]) -> Mapping[str, int]:
        """Return the column of each role that is found by its cells."""
        self._rows = [[_text_of(value) for value in row] for row in rows]
        before = dict(self._columns)
        if self._open >= {*POINT}:
            self._columns |= self._find_point()
        if self._answer is not None and "nombre" in self._roles.by_name:
            self._find("cvegeo", self._free(), self._has_keys)
            self._find("estado", self._worded(), self._has_states)
            self._find("municipio", self._worded(), self._has_municipios)
            self._find_municipio_of_places()
            if "nombre" in self._open and ("nombre" not in self._columns or "nombre" in before):
                self._find_places()
        return {role: at for role, at in self._columns.items() if before.get(role) != at}

    def _find(self, role: str, columns: Sequence[int], has_role: Callable[[int], bool]) -> None:
        at = next(filter(has_role, columns), None) if role in self._open - self._columns.keys() else None
        if at is not None:
            self._columns[role] = at

    def _has_keys(self, at: int) -> bool:
        return self._looks("cvegeo", at) >= _MOST and self._share_certain("cvegeo", at) >= _MOST

    def _has_states(self, at: int) -> bool:
        return self._looks("estado", at) >= (_HALF if self._is_confirmed("estado", at) else _MOST)

    def _has_municipios(self, at: int) -> bool:
        return self._is_confirmed("municipio", at) and self._share_certain("municipio", at) >= _HALF

    def _find_municipio_of_places(self) -> None:
        """Find a column of municipios that have the places of another, whatever both are called."""
        if not {"nombre", "municipio"} & self._open or "municipio" not in self._open - self._columns.keys():
            return
        worded = self._worded()[:_MAX_MATCHED_COLUMNS]
        places = [self._columns["nombre"]] if "nombre" in self._columns else worded if "nombre" in self._open else []
        for at in [one for one in worded if not self._is_confirmed("nombre", one)]:
            if self._share_certain("municipio", at) >= _MOST:
                there = {**self._columns, "municipio": at}
                rated = [(self._share_certain("nombre", one, there), -one) for one in places if one != at]
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
            share = self._share_certain("nombre", at, self._columns, is_loose=is_confirmed)
            is_several = share * len(self._texts(at)) > 1
            if at == had or (share >= _FEW if is_confirmed else share >= _HALF and is_several):
                rated.append((share + _FEW * is_confirmed, -at))
        if rated:
            self._columns["nombre"] = -max(rated)[1]

    def _find_point(self) -> Mapping[str, int]:
        for at in self._free():
            if _share(self._texts(at), _is_pair) >= _MOST:
                return dict.fromkeys(POINT, at)
        axes = {axis: [at for at in self._free() if self._has_degrees(axis, at)] for axis in POINT}
        if not all(axes.values()):
            return {}
        return {axis: max(found, key=partial(self._is_confirmed, axis)) for axis, found in axes.items()}

    def _has_degrees(self, axis: Axis, at: int) -> bool:
        """Return whether a column has degrees: confirmed by its header, or with the decimals and sign of a place."""
        if self._is_confirmed(axis, at) and self._looks(axis, at) >= _HALF:
            return True
        exact = _share(self._texts(at), lambda text: bool(_EXACT_DECIMALS[axis].fullmatch(text)))
        return exact >= _MOST and self._looks(axis, at) >= _MOST

    def _worded(self) -> list[int]:
        free = (at for at in self._free() if not _OTHER_PLACES.search(self._folded[at]))
        return [at for at in free if self._looks("nombre", at) >= _HALF]

    def _looks(self, role: str, at: int) -> float:
        return _share(self._texts(at), self._roles.by_name[role].looks or has_letters)

    def _is_confirmed(self, role: str, at: int) -> bool:
        return not self._roles.by_name[role].words.isdisjoint(self._folded[at].split("_"))

    def _texts(self, at: int) -> list[str]:
        if at not in self._different:
            texts = dict.fromkeys(row[at] for row in self._rows if at < len(row))
            self._different[at] = [text for text in texts if text and not is_filler(text)]
        return self._different[at]

    def _share_certain(
        self, role: str, at: int, columns: Mapping[str, int] | None = None, *, is_loose: bool = False
    ) -> float:
        """Return the share of a column's cells that are certain, as places in the areas of `columns`, or by themselves.

        One of several places of its name in the row's municipio is enough.
        """
        around = {} if columns is None else {name: columns[name] for name in _AREA_ROLES if columns.get(name, at) != at}
        compared: dict[tuple[str, ...], Mapping[str, str]] = {}
        for texts in self._rows:
            cells = {name: texts[column] for name, column in {role: at, **around}.items() if column < len(texts)}
            if columns is not None:
                cells = {**self._roles.areas, **{name: text for name, text in cells.items() if text}}
            text = cells.get(role, "")
            is_again = fold_header(text) == fold_header(cells.get("municipio", "")) and role == "nombre"
            if text and not is_filler(text) and not is_again and len(compared) < _COMPARED:
                compared[tuple(cells.values())] = cells
        self._left -= len(compared)
        if not compared or self._left < 0 or self._answer is None:
            return 0.0
        read = {name: self._roles.by_name[name].read for name in {role, *around, *self._roles.areas}}
        kind: PlaceKind = "municipio" if role == "municipio" else "localidad"
        short = [cells for cells in compared.values() if max(map(len, cells.values())) <= _LONGEST_NAME]
        rows = [Row(0, {}, {name: read[name](text) for name, text in cells.items()}, kind=kind) for cells in short]
        certain = 0
        for batch in (rows[:_FIRST], rows[_FIRST:]):
            for row, answer in zip(batch, self._answer(batch), strict=True):
                is_homonym = not answer["faults"] and "municipio" in row.cells
                is_open = answer["outcome"] == "ambiguous" and (is_loose or is_homonym)
                certain += is_open or answer["outcome"] in {"exact", "sure"}
            if not certain and not is_loose:  # texts without a place take longest
                break
        return certain / len(compared)


def _text_of(value: object) -> str:
    return unquoted(str(value)[:MAX_TEXT]).strip() if isinstance(value, str | int | float) else ""


def _share(texts: Sequence[str], is_one: Callable[[str], bool]) -> float:
    return [*map(is_one, texts)].count(True) / len(texts) if texts else 0.0


def _is_pair(text: str) -> bool:
    with suppress(UnreadableDegreesError, DegreesOutOfRangeError):
        return not is_worded(text) and in_mexico(*read_point(text, "")) is not None
    return False
