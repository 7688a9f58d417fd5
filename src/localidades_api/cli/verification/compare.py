"""Compares the records of a list with those of a file: by key, or by clave and name if the ids are not keys."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from localidades_api.cli.verification.order import judge_order


class ListedLocality(NamedTuple):
    """A locality with the fields of the list."""

    id: int
    municipio_id: int
    clave: str
    nombre: str


class Kind(StrEnum):
    """A kind of difference."""

    MISSING = "missing"
    DOUBLED = "doubled"
    DIFFERENT = "different"
    UNKNOWN = "unknown"
    OUT_OF_ORDER = "out of order"


class Difference(NamedTuple):
    """One record that is wrong.

    `municipio_id` comes from the file if it has the record, else from the service; it is None if several municipios
    are possible. `position` is the index of `found` in the walk, from 0.
    """

    kind: Kind
    municipio_id: int | None
    expected: ListedLocality | None
    found: ListedLocality | None = None
    position: int | None = None

    @property
    def fields(self) -> list[str]:
        """The fields in which the service differs from the file."""
        if self.expected is None or self.found is None:
            return []
        values = zip(ListedLocality._fields, self.expected, self.found, strict=True)
        return [field for field, expected, found in values if expected != found]


@dataclass(frozen=True, slots=True)
class ListComparison:
    """All differences.

    `official` is whether the ids are keys of the file (one match is enough). Under another numbering, clave and name
    identify a record, and a renamed one counts as missing and unknown. `ties_by_id` is false if records with the same
    clave are in no fixed order; then they are not reported one by one.
    """

    differences: list[Difference]
    official: bool
    ties_by_id: bool

    def counts(self) -> Counter[Kind]:
        """Count the differences of each kind."""
        return Counter(difference.kind for difference in self.differences)


def compare(expected: Sequence[ListedLocality], found: Sequence[ListedLocality]) -> ListComparison:
    """Find the differences; a record that is listed twice is doubled, and never out of order as well."""
    keys = {record.id: record for record in expected}
    official = not found or any(record.id in keys for record in found)
    differences = list(_compare_by_key(keys, found) if official else _compare_by_name(expected, found))
    doubled = {difference.found for difference in differences if difference.kind is Kind.DOUBLED}
    doubled_ids = {record.id for record in doubled if record is not None}
    positions = [position for position, record in enumerate(found) if record.id not in doubled_ids]
    astray, ties_by_id = judge_order([(found[at].clave, found[at].id) for at in positions], official=official)
    homes = _Homes(expected)
    for at in (positions[index] for index in astray):
        wanted = keys.get(found[at].id)
        home = (wanted or found[at]).municipio_id if official else homes.of(found[at])
        differences.append(Difference(Kind.OUT_OF_ORDER, home, wanted, found[at], at))
    return ListComparison(differences, official, ties_by_id)


def _compare_by_key(keys: dict[int, ListedLocality], found: Sequence[ListedLocality]) -> Iterator[Difference]:
    seen: set[int] = set()
    for position, record in enumerate(found):
        wanted = keys.get(record.id)
        home = (wanted or record).municipio_id
        if record.id in seen:
            yield Difference(Kind.DOUBLED, home, wanted, record, position)
        elif wanted is None:
            yield Difference(Kind.UNKNOWN, home, None, record, position)
        elif wanted != record:
            yield Difference(Kind.DIFFERENT, home, wanted, record, position)
        seen.add(record.id)
    for key, record in keys.items():
        if key not in seen:
            yield Difference(Kind.MISSING, record.municipio_id, record)


def _compare_by_name(expected: Sequence[ListedLocality], found: Sequence[ListedLocality]) -> Iterator[Difference]:
    """Compare as multisets of clave and name: of several homonyms, no one can tell which is missing."""
    homes = _Homes(expected)
    left = {names: len(records) for names, records in homes.items()}
    seen: set[int] = set()
    for position, record in enumerate(found):
        names = record[2:]
        if record.id in seen:
            yield Difference(Kind.DOUBLED, homes.of(record), None, record, position)
        elif left.get(names, 0):
            left[names] -= 1
        else:
            yield Difference(Kind.UNKNOWN, None, None, record, position)
        seen.add(record.id)
    for names, count in left.items():
        for record in homes[names][:count]:
            told = count == len(homes[names])
            yield Difference(Kind.MISSING, record.municipio_id if told else None, record)


class _Homes(defaultdict[tuple[str, str], list[ListedLocality]]):
    """The records of the file by clave and name."""

    def __init__(self, expected: Sequence[ListedLocality]) -> None:
        super().__init__(list)
        for record in expected:
            self[record[2:]].append(record)

    def of(self, record: ListedLocality) -> int | None:
        """Return the municipio of the record with that clave and name, if there is only one."""
        namesakes = self.get(record[2:], [])
        return namesakes[0].municipio_id if len(namesakes) == 1 else None
