"""Finds the columns of a file: named by the sender, or guessed from the headers that Mexican spreadsheets have."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from localidades_api.bulk.cells import UnreadablePointError, as_text, unquoted
from localidades_api.bulk.rows import POINT, Roles, Row, Sent
from localidades_api.catalogue.folding import fold
from localidades_api.errors import UnreadableBodyError

Named: TypeAlias = Mapping[str, str]  # a role, and the header that the sender names for it


class Assignment(NamedTuple):
    """The column of each role that was found: its place among the headers, and how its cells are read."""

    width: int  # the number of headers
    by_role: Mapping[str, tuple[int, Callable[[str], str | float | None]]]

    def read(self, number: int, sent: Sent, values: Sequence[Any]) -> Row:
        """Read the cells of a row that has a value for every header; raise RowError for one that can't be read."""
        cells: dict[str, str | float | None] = {}
        note = None
        for role, (at, read) in self.by_role.items():
            value = values[at]
            try:
                cells[role] = read(unquoted(value) if type(value) is str else as_text(role, value))
            except UnreadablePointError as error:
                note = note or str(error)
        if note is not None:  # half of a point is none
            cells |= dict.fromkeys(POINT)
        return Row(number, sent, cells, note=note)


def assign(headers: Sequence[str], roles: Roles, named: Named) -> Assignment:
    """Find the column of each role, named or guessed; raise UnreadableBodyError if a named one is missing."""
    folded = [_fold(header) for header in headers]
    places: dict[str, int] = {}
    for role, header in named.items():
        places[role] = _find(header, headers, folded, role)
    for role, (known, _) in roles.by_name.items():
        if role not in named:
            at = next((folded.index(one) for one in known if one in folded), None)
            if at is not None and at not in places.values():
                places[role] = at
    if not roles.together <= places.keys():
        places = {role: at for role, at in places.items() if role in named or role not in roles.together}
    return Assignment(len(headers), {role: (at, roles.by_name[role].read) for role, at in places.items()})


def require(assignment: Assignment, roles: Roles, headers: Sequence[str], named: Named) -> None:
    """Raise UnreadableBodyError unless the columns that were found are enough, and each of them is the only one."""
    if header := repeated(assignment, headers, named):
        raise UnreadableBodyError(f"The first line has the column `{header}` twice: rename or remove one of them.")
    if not has_needed(assignment, roles):
        raise UnreadableBodyError(
            f"The first line names no column for {describe_needed(roles)}: begin the file with a line such as"
            f" `{roles.example}`, or say which of its headers stands for what."
        )


def repeated(assignment: Assignment, headers: Sequence[str], named: Named) -> str | None:
    """Return a header that was found and that another column has as well; None if there is none."""
    folded = [_fold(header) for header in headers]
    for role, (at, _) in assignment.by_role.items():
        is_literal = named.get(role) == headers[at]
        if (headers.count(headers[at]) if is_literal else folded.count(folded[at])) > 1:
            return headers[at]
    return None


def has_needed(assignment: Assignment, roles: Roles) -> bool:
    """Return whether the columns that were found are enough to answer a row."""
    return any(needed <= assignment.by_role.keys() for needed in roles.needed)


def describe_needed(roles: Roles) -> str:
    """Return, in words, the roles of which a row must have some."""
    return ", or ".join(" and ".join(f"`{role}`" for role in sorted(needed)) for needed in roles.needed)


def _find(header: str, headers: Sequence[str], folded: Sequence[str], role: str) -> int:
    if header in headers:
        return headers.index(header)
    if (name := _fold(header)) in folded:
        return folded.index(name)
    raise UnreadableBodyError(f"The first line does not have the header that was named for `{role}`.")


def _fold(header: str) -> str:
    return "_".join(fold(header).split())


def unique(headers: Iterable[str]) -> list[str]:
    """Return headers as names of members: none empty, none twice."""
    seen: dict[str, None] = {}
    for number, header in enumerate(headers, 1):
        name = plain = header or f"column {number}"
        again = 1
        while name in seen:
            again += 1
            name = f"{plain} ({again})"
        seen[name] = None
    return list(seen)
