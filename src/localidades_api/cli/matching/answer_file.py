"""Writes answers to a file: complete rows only, however the command ends."""

import os
import sys
from contextlib import suppress
from pathlib import Path

from localidades_api.cli.console import writing
from localidades_api.errors import AnswerFileError, OutputError


class AnswerFile:
    """A file of answers, which a later run can resume; it is created when the first answer is written."""

    def __init__(self, path: Path, *, replace: bool = False) -> None:
        self._path = path
        self._replace = replace
        self._descriptor: int | None = None
        self._whole = 0  # bytes

    def resume(self, *, is_csv: bool) -> int:
        """Open what an interrupted run has written; return how many rows it has, the header included."""
        records, self._whole = _count_records(self._path, is_csv=is_csv)
        self._descriptor = os.open(self._path, os.O_RDWR)
        os.ftruncate(self._descriptor, self._whole)
        os.lseek(self._descriptor, 0, os.SEEK_END)
        return records

    def may_begin_with(self, expected: bytes) -> bool:
        """Return whether the file begins with this, as far as it goes."""
        with self._path.open("rb") as file:
            return expected.startswith(file.read(len(expected)))

    def write(self, rows: bytes) -> None:
        """Write whole rows, all or none; raise OutputError if the file can't take them."""
        try:
            if self._descriptor is None:
                how = os.O_TRUNC if self._replace else os.O_EXCL
                self._descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT | how, 0o666)
            rest = memoryview(rows)
            while rest:
                rest = rest[os.write(self._descriptor, rest) :]
        except FileExistsError:
            raise AnswerFileError(f"{self._path} was created meanwhile: choose another --output.") from None
        except OSError as error:
            self._forget_part()
            raise OutputError(f"{self._path} can't be written ({error.strerror}).") from error
        except BaseException:  # Ctrl-C
            self._forget_part()
            raise
        self._whole += len(rows)

    def _forget_part(self) -> None:
        if self._descriptor is not None:
            with suppress(OSError):
                os.ftruncate(self._descriptor, self._whole)

    def close(self) -> None:
        """Close the file; raise OutputError if the system could not keep what was written."""
        if self._descriptor is not None:
            descriptor, self._descriptor = self._descriptor, None
            try:
                os.close(descriptor)
            except OSError as error:
                raise OutputError(f"{self._path} can't be written ({error.strerror}).") from error


class AnswerStream:
    """Answers on stdout."""

    def write(self, rows: bytes) -> None:
        """Write rows; raise OutputError or ReaderGoneError if they can't be written."""
        with writing():
            sys.stdout.buffer.write(rows)

    def close(self) -> None:
        """Leave stdout open."""


def _count_records(path: Path, *, is_csv: bool) -> tuple[int, int]:
    """Return how many records of our own CSV or NDJSON are whole, and where the last of them ends.

    A record ends with its line; in CSV with the line that leaves no quotes open, as cells double each quote of theirs.
    """
    records = end = at = quotes = 0
    with path.open("rb") as file:
        for line in file:
            at += len(line)
            quotes += line.count(b'"') if is_csv else 0
            if quotes % 2 == 0 and line.endswith(b"\n"):
                records, end = records + 1, at
    return records, end
