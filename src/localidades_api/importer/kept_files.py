"""Keeps the downloaded files of the newest releases, since INEGI replaces its file at the same address."""

import os
import re
import shutil
from pathlib import Path
from secrets import token_hex

from localidades_api.errors import OutputError
from localidades_api.importer.source import DATE, Source

KEPT_RELEASES = 12
_BEGINNING = "catun_localidad_"
_ENDINGS = re.compile(r"(?:\.(?:csv|txt|xlsx|zip|gz))*\Z")
_KEPT = re.compile(rf"{_BEGINNING}({DATE}){_ENDINGS.pattern}")


class KeptFiles:
    """The files `catun_localidad_RELEASE.zip` of a folder; other files there stay as they are."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def keep(self, file: Source, release: str) -> Path:
        """Copy the downloaded file of a published release, and remove those of all but the newest releases.

        The newest are those with the latest dates as names. Raises OutputError if the folder can't be changed.
        """
        try:
            kept = self._copy(file, release)
            self._remove_oldest(release)
        except OSError as error:
            raise OutputError(
                f"Release {release} is published, but its file can't be kept in {self._folder} ({error.strerror}):"
                " correct that, and run the command again."
            ) from error
        return kept

    def _copy(self, file: Source, release: str) -> Path:
        if file.file is None:
            raise ValueError("the demo has no file")
        ending = _ENDINGS.search(file.name.lower())
        kept = self._folder / f"{_BEGINNING}{release}{ending[0] if ending else ''}"
        draft = kept.with_name(f".{kept.name}.{token_hex(4)}.part")
        try:
            # The file's own buffer may not know that others have moved the position since.
            with draft.open("xb") as out, open(file.file.fileno(), "rb", buffering=0, closefd=False) as content:
                content.seek(0)
                shutil.copyfileobj(content, out)
                out.flush()
                os.fsync(out.fileno())  # before the rename, so that the copy is complete even after a power failure
            draft.replace(kept)
        finally:
            draft.unlink(missing_ok=True)
        return kept

    def _remove_oldest(self, release: str) -> None:
        """Remove the files of the oldest releases; never those of `release`, which has just been copied."""
        files = [
            (found[1], path)
            for path in self._folder.iterdir()
            if (found := _KEPT.fullmatch(path.name)) and path.is_file()
        ]
        newest = sorted({name for name, _ in files})[-KEPT_RELEASES:]
        for name, path in files:
            if name not in {*newest, release}:
                path.unlink()
