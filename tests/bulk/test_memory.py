"""Files of any length are read in constant memory."""

import json
import tracemalloc
from collections.abc import Iterator
from tempfile import TemporaryFile

import pytest

from localidades_api.bulk.answers import describe_problem
from localidades_api.bulk.formats import MediaType, reader
from localidades_api.bulk.input_rows import ROLES
from localidades_api.bulk.writers import writer
from tests.support.bulk import CSV, JSON, NDJSON

pytestmark = pytest.mark.tail

ROWS = 100_000
PIECE = 256 * 1024


def pieces(media_type: MediaType) -> Iterator[bytes]:
    """Yield the chunks of a body of some 10 MB."""
    row = json.dumps({"nombre": "El Peñón [Rancho]", "municipio": "Guadalajara", "estado": "Jalisco", "folio": 7})
    starts = {CSV: "nombre,municipio,estado,folio\n", NDJSON: "", JSON: '{"rows": ['}
    rows = {CSV: '"El Peñón [Rancho]","Guadala\njara",Jalisco,7\n', NDJSON: f"{row}\n", JSON: f"{row}, "}[media_type]
    ends = {CSV: "", NDJSON: "", JSON: f"{row}]}}"}
    yield starts[media_type].encode()
    at_once = PIECE // len(rows)
    for begin in range(0, ROWS - 1, at_once):
        yield rows.encode() * min(at_once, ROWS - 1 - begin)
    yield (ends[media_type] or rows).encode()


@pytest.mark.parametrize("media_type", [CSV, NDJSON, JSON])
def test_memory_does_not_grow_with_rows(media_type: MediaType) -> None:
    answer = describe_problem("It has no answer.")
    with TemporaryFile() as body:
        body.writelines(pieces(media_type))
        body.seek(0)
        tracemalloc.start()
        try:
            source = reader(media_type, body, ROLES)
            for _ in source.check():
                pass
            target = writer(media_type, source)
            written = len(target.begin()) + sum(len(target.write(row, answer)) for row in source)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert written > 60 * ROWS
    assert peak < 12 * 1024**2
