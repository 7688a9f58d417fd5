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


def keep_file(folder: Path, file: Source, release: str) -> Path:
    """Copy the downloaded file of a published release as `catun_localidad_RELEASE.zip`, and remove older ones.

    Those of the releases with the latest dates as names stay, and so do other files. Raises OutputError if the folder
    can't be changed.
    """
    try:
        kept = _copy(folder, file, release)
        _remove_oldest(folder, release)
    except OSError as error:
        raise OutputError(
            f"Release {release} is published, but its file can't be kept in {folder} ({error.strerror}):"
            " correct that, and run the command again."
        ) from error
    return kept


def _copy(folder: Path, file: Source, release: str) -> Path:
    if file.file is None:
        raise ValueError("the demo has no file")
    ending = _ENDINGS.search(file.name.lower())
    kept = folder / f"{_BEGINNING}{release}{ending[0] if ending else ''}"
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


def _remove_oldest(folder: Path, release: str) -> None:
    """Remove the files of the oldest releases; never those of `release`, which has just been copied."""
    files = [(kept[1], path) for path in folder.iterdir() if (kept := _KEPT.fullmatch(path.name)) and path.is_file()]
    newest = sorted({name for name, _ in files})[-KEPT_RELEASES:]
    for name, path in files:
        if name not in {*newest, release}:
            path.unlink()
