"""The metrics of all workers, in a file in memory that they share (docs/decisions/workers.md)."""

import fcntl
import json
import os
import tempfile
from collections.abc import Callable, Iterator
from itertools import count
from multiprocessing import reduction
from struct import Struct
from typing import Any, NamedTuple
from zlib import crc32

from localidades_api.observability.faults import FAULTS
from localidades_api.observability.metrics import COUNTERS, Snapshot, merge, without_gauges

_MAX_RECORD = 1024**2  # bytes; the metrics of a worker that has sent every kind of response take some 100 KB
_HEADER = Struct("<IQI")  # checksum, then number and length of the record


class _Record(NamedTuple):
    number: int
    snapshot: Snapshot


class SharedMetrics:
    """A place for each worker, where it writes its metrics once a second, when it is scraped, and at its end.

    A new worker takes the place of one that has ended, and adds its own counts to that one's. A lock on the place ends
    with its worker, whose number another process may get. A place has two halves, which are written in turn, so that
    one is whole even if the worker is killed while it writes the other.
    """

    def __init__(self, file: int | None = None) -> None:
        self._file = _open_in_memory() if file is None else file
        self._place = self._number = 0
        self._inherited: Snapshot = {}

    def __reduce__(self) -> tuple[Callable[..., "SharedMetrics"], tuple[Any]]:
        """Pass the file on to a process that is being started."""
        return _receive, (reduction.DupFd(self._file),)

    @property
    def is_used(self) -> bool:
        """Whether any worker has started."""
        return self._read(0) is not None

    def take_place(self) -> None:
        """Take the first place that is free."""
        self._place = next(place for place in count() if self._lock(place, fcntl.LOCK_EX))
        if record := self._read(self._place):
            self._number, self._inherited = record.number, without_gauges(record.snapshot)
        self.publish()

    def publish(self) -> Snapshot:
        """Write the metrics of this process, and return them."""
        snapshot = merge([self._inherited, COUNTERS.snapshot()])
        number = self._number + 1
        data = json.dumps(list(snapshot.items())).encode()
        record = _HEADER.pack(0, number, len(data))[4:] + data
        record = crc32(record).to_bytes(4, "little") + record
        try:
            if os.pwrite(self._file, record, self._offset(self._place, number)) == len(record):
                self._number = number
        except OSError as error:
            FAULTS.report(error, "Can't share the metrics with the other workers", traceback=False)
        return snapshot

    def collect(self) -> Snapshot:
        """Return the metrics of all workers: counters of those that have ended, too.

        This worker's are written before they are shown, so no other worker shows less later.
        """
        return merge([self.publish(), *self._others()])

    def _others(self) -> Iterator[Snapshot]:
        for place in count():
            record = self._read(place)
            if record is None:
                return
            if place != self._place:
                has_ended = self._lock(place, fcntl.LOCK_SH)
                if has_ended:
                    fcntl.lockf(self._file, fcntl.LOCK_UN, 1, self._offset(place, 0))
                yield without_gauges(record.snapshot) if has_ended else record.snapshot

    def _lock(self, place: int, kind: int) -> bool:
        """Return False if a running worker has the place."""
        try:
            fcntl.lockf(self._file, kind | fcntl.LOCK_NB, 1, self._offset(place, 0))
        except OSError:
            return False
        return True

    def _read(self, place: int) -> _Record | None:
        halves = [self._read_half(self._offset(place, number)) for number in (0, 1)]
        return max((half for half in halves if half), key=lambda record: record.number, default=None)

    def _read_half(self, offset: int) -> _Record | None:
        header = os.pread(self._file, _HEADER.size, offset)
        if len(header) < _HEADER.size:
            return None
        checksum, number, length = _HEADER.unpack(header)
        data = os.pread(self._file, length, offset + _HEADER.size)
        if crc32(header[4:] + data) != checksum or not number:
            return None
        return _Record(number, {tuple(series): values for series, values in json.loads(data)})

    @staticmethod
    def _offset(place: int, number: int) -> int:
        return (place * 2 + number % 2) * _MAX_RECORD


def _open_in_memory() -> int:
    if hasattr(os, "memfd_create"):  # Linux
        return os.memfd_create("metrics")
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())


def _receive(file: Any) -> SharedMetrics:  # noqa: ANN401  # multiprocessing gives it no type
    return SharedMetrics(file.detach())
