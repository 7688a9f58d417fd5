"""The report of a verification, as lines of text or as one JSON object."""

from collections import Counter, defaultdict
from collections.abc import Iterator

from localidades_api.cli.verification import Verification
from localidades_api.cli.verification.compare import Difference, Kind, ListedLocality

_MAX_MUNICIPIOS = 20
_MAX_EXAMPLES = 3

_ByMunicipio = dict[int | None, list[Difference]]


def describe(verification: Verification) -> Iterator[str]:
    """Yield the lines of a report: what was compared, a count of each kind, and the first examples by municipio.

    Names are written with repr(), which escapes control and invisible characters.
    """
    walk, comparison = verification.walk, verification.comparison
    counts = comparison.counts()
    release = f" (release {walk.release!r})" if walk.release else ""
    way = "following links" if walk.followed else "counting pages"
    yield f"{verification.service}{release} against {verification.source}"
    yield f"  file     {verification.localities:,} localities, {verification.rejected:,} rows rejected"
    yield f"  service  {len(walk.records):,} records on {walk.pages:,} pages, {way}"
    for kind in Kind:
        yield f"{kind:<13}{counts[kind]:>9,}{_by_field(comparison.differences) if kind is Kind.DIFFERENT else ''}"
    yield from _remarks(verification)
    yield from _examples(verification)
    yield "the service agrees with the file" if verification.agrees else "the service differs from the file"


def _by_field(differences: list[Difference]) -> str:
    fields = Counter(
        field for difference in differences if difference.kind is Kind.DIFFERENT for field in difference.fields
    )
    return f"  ({', '.join(f'{field} {count:,}' for field, count in sorted(fields.items()))})" if fields else ""


def _remarks(verification: Verification) -> Iterator[str]:
    walk, comparison = verification.walk, verification.comparison
    if walk.faults:
        yield from (f"totals       {fault}" for fault in walk.faults)
    else:
        yield f"totals       quantity {walk.quantity:,} and total_pages {walk.total_pages:,} match the pages"
    if not comparison.official:
        yield (
            "numbering    none of the service's ids is a key in the file, so records are compared by clave and nombre,"
            " and municipio_id is not compared"
        )
    if not comparison.ties_by_id:
        yield "ties         records with the same clave are not sorted by id"


def _examples(verification: Verification) -> Iterator[str]:
    grouped = _by_municipio(verification.comparison.differences)
    for key, differences in list(grouped.items())[:_MAX_MUNICIPIOS]:
        counts = Counter(difference.kind for difference in differences)
        yield f"{_name(verification, key)}: {', '.join(f'{counts[kind]:,} {kind}' for kind in Kind if counts[kind])}"
        yield from (f"  {_example(verification, difference)}" for difference in differences[:_MAX_EXAMPLES])
        if len(differences) > _MAX_EXAMPLES:
            yield f"  and {len(differences) - _MAX_EXAMPLES:,} more"
    if len(grouped) > _MAX_MUNICIPIOS:
        yield f"and {len(grouped) - _MAX_MUNICIPIOS:,} more municipios"


def _by_municipio(differences: list[Difference]) -> _ByMunicipio:
    """Group differences by municipio in the order of its key; an unknown municipio comes last."""
    grouped: _ByMunicipio = defaultdict(list)
    for difference in differences:
        grouped[difference.municipio_id].append(difference)
    return dict(sorted(grouped.items(), key=lambda item: (item[0] is None, item[0] or 0)))


def _name(verification: Verification, key: int | None) -> str:
    if key is None:
        return "in an unknown municipio"
    name = verification.municipalities.get(key)
    return f"{key:05d} {name!r}" if name is not None else f"{key:05d} (not in the file)"


def _example(verification: Verification, difference: Difference) -> str:
    where = "" if difference.position is None else f", page {verification.walk.page_of(difference.position):,}"
    shown = difference.found or difference.expected
    if difference.kind is Kind.DIFFERENT and difference.found and difference.expected:
        found, expected = difference.found._asdict(), difference.expected._asdict()
        changes = (f"{field} {found[field]!r}, in the file {expected[field]!r}" for field in difference.fields)
        return f"{difference.kind} {difference.found.id}{where}: {'; '.join(changes)}"
    return f"{difference.kind} {shown.id} {shown.clave!r} {shown.nombre!r}{where}" if shown else str(difference.kind)


def as_object(verification: Verification) -> dict[str, object]:
    """Return the whole report, with every difference, as an object for JSON."""
    walk, comparison = verification.walk, verification.comparison
    counts = comparison.counts()
    return {
        "agrees": verification.agrees,
        "service": verification.service,
        "release": walk.release,
        "source": verification.source,
        "sha256": verification.sha256,
        "file": {"localidades": verification.localities, "rejected": verification.rejected},
        "walk": {"records": len(walk.records), "pages": walk.pages, "by": "links" if walk.followed else "numbers"},
        "totals": {"quantity": walk.quantity, "total_pages": walk.total_pages, "faults": walk.faults},
        "official_ids": comparison.official,
        "ties_by_id": comparison.ties_by_id,
        "counts": {_identifier(kind): counts[kind] for kind in Kind},
        "municipios": [
            {
                "id": key,
                "nombre": None if key is None else verification.municipalities.get(key),
                "differences": [_difference_as_json(verification, difference) for difference in differences],
            }
            for key, differences in _by_municipio(comparison.differences).items()
        ],
    }


def _difference_as_json(verification: Verification, difference: Difference) -> dict[str, object]:
    position = difference.position
    return {
        "kind": _identifier(difference.kind),
        "fields": difference.fields if difference.kind is Kind.DIFFERENT else [],
        "page": None if position is None else verification.walk.page_of(position),
        "expected": _record_as_json(difference.expected),
        "found": _record_as_json(difference.found),
    }


def _record_as_json(record: ListedLocality | None) -> dict[str, object] | None:
    return None if record is None else record._asdict()


def _identifier(kind: Kind) -> str:
    return kind.value.replace(" ", "_")
