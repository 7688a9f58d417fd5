"""Downloads as Parquet, with the optional extra `parquet` (pyarrow)."""

import io
from collections.abc import AsyncGenerator, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
from pyarrow import parquet as pq

from localidades_api.domain.schemas import Release
from localidades_api.errors import DatabaseUnavailableError
from localidades_api.storage.repository import RecordsRepository
from localidades_api.storage.repository.exports import COLUMNS

if TYPE_CHECKING:
    from typing_extensions import Buffer

_ROW_GROUP = 4000  # records in memory at a time: some 20 MB, 40 if names are long
_TYPES = {"integer": pa.int32(), "number": pa.float64(), "text": pa.string(), "key": pa.string()}


class _Sink(io.RawIOBase):
    """A file to append to, whose content is taken away as it is written."""

    def __init__(self) -> None:
        self._written: list[bytes] = []
        self._size = 0

    def writable(self) -> bool:
        """Tell pyarrow that it may write."""
        return True

    def tell(self) -> int:
        """Return the number of bytes written in total."""
        return self._size

    def write(self, data: "Buffer", /) -> int:
        """Append bytes."""
        taken = bytes(data)
        self._written.append(taken)
        self._size += len(taken)
        return len(taken)

    def drain(self) -> bytes:
        """Return what was written since the last call, and forget it."""
        taken = b"".join(self._written)
        self._written.clear()
        return taken


async def write_parquet(
    records: RecordsRepository, release: Release, places: Sequence[int]
) -> AsyncGenerator[bytes, None]:
    """Write row groups as they are read; raise DatabaseUnavailableError if one is incomplete."""
    schema = pa.schema([(name, _TYPES[kind]) for name, (_, kind) in COLUMNS.items()])
    sink = _Sink()
    try:
        with pq.ParquetWriter(sink, schema.with_metadata({"release": release.name}), compression="zstd") as writer:
            for start in range(0, len(places), _ROW_GROUP):
                wanted = places[start : start + _ROW_GROUP]
                rows = await records.list_rows(release, wanted)
                if len(rows) != len(wanted):
                    raise DatabaseUnavailableError(
                        f"The database gave {len(rows)} of {len(wanted)} records of a download."
                    )
                columns = [
                    pa.array(values, field.type) for values, field in zip(zip(*rows, strict=True), schema, strict=True)
                ]
                writer.write_batch(pa.record_batch(columns, schema=schema))
                yield sink.drain()
        yield sink.drain()
    finally:
        pa.default_memory_pool().release_unused()  # or pyarrow keeps the memory of the largest file
