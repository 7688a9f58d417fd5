"""Computes the entries of the table of names with Arrow: as Python integers they take 300 MB, and seconds."""

from array import array
from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from localidades_api.names.files import layout

_PIECE = 100_000  # entries to write at a time


def write_table(path: Path, scopes: Iterable[tuple[int, "array[int]", "array[int]"]]) -> None:
    """Write the table of scopes: each has the digests of names, and the row of each."""
    entries = pa.concat_arrays([pa.array([], pa.uint64()), *(_entries(*scope) for scope in scopes)])
    order = pc.array_sort_indices(entries)
    with path.open("wb") as file:
        for first in range(0, len(order), _PIECE):
            piece = entries.take(order.slice(first, _PIECE))
            file.write(memoryview(piece.buffers()[1])[: len(piece) * layout.ENTRY_SIZE])


def _entries(scope: int, digests: "array[int]", rows: "array[int]") -> pa.UInt64Array:
    """Return what `layout.entry_prefix` returns, with the rows."""
    spread = pc.bit_wise_xor(_arrow(digests, pa.uint64()), _scalar(layout.spread(scope)))
    prefixes = pc.bit_wise_and(pc.multiply(spread, _scalar(layout.MIX)), _scalar(layout.PREFIX_MASK))
    return pc.bit_wise_or(prefixes, _arrow(rows, pa.uint32()).cast(pa.uint64()))


def _arrow(values: "array[int]", kind: pa.DataType) -> pa.Array:
    return pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(values)])


def _scalar(value: int) -> pa.Scalar:
    return pa.scalar(value, pa.uint64())
