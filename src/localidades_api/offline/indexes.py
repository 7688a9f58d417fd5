"""Opens the index of a catalogue's files in the user's cache folder, and builds it the first time.

An index is named by a digest of the files' content and of what can read it (`CODE`, `STORED`), and built under another
name, as the service does with the releases of its database (docs/decisions/names.md).
"""

import re
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from localidades_api.caches.index_folders import (
    CODE,
    OpenIndex,
    digest,
    explained_system_errors,
    index_root,
    locked_by_thread,
    remove_unused,
    try_open,
)
from localidades_api.errors import CatalogueError
from localidades_api.importer.extract import open_catalogue
from localidades_api.importer.source import STDIN, Source, open_source
from localidades_api.importer.transform import CatalogueRecords, transform, without_garbage_collection
from localidades_api.names.files.history import Areas, History
from localidades_api.names.files.writer import new_folder, write_index
from localidades_api.observability.progress import Step, StepProgress
from localidades_api.offline.records import STORED, write_records


class CatalogueStep(Step):
    """The steps of building an index, in order; each release is read on its own."""

    READ = "reading the catalogue"
    READ_EARLIER = "reading an earlier release"
    INDEX = "building the index of names"


def open_index(sources: Sequence[str], cache_dir: Path | None, progress: StepProgress) -> OpenIndex:
    """Open the index of a catalogue, the first source, with the names of earlier releases, the newest first.

    Raises CatalogueError for a file that the importer would refuse, and ConfigurationError if the folder of indexes
    can't be written.
    """
    with ExitStack() as stack:
        files = [stack.enter_context(open_source(_checked(source), progress)) for source in sources]
        stack.enter_context(explained_system_errors())
        folder = index_root(cache_dir, "catalogues") / digest(CODE, *STORED, *(file.sha256 for file in files))
        return try_open(folder) or _build(folder, files, progress)


def _checked(source: str) -> str:
    if source == STDIN or re.match(r"(?i)[a-z][a-z0-9+.-]*://", source):
        raise CatalogueError("A catalogue without a server is read from a file: download it, and give its path.")
    return source


def _build(folder: Path, files: Sequence[Source], progress: StepProgress) -> OpenIndex:
    """Build an index, or wait for the process that is building it, and open it."""
    with locked_by_thread(folder.parent):
        if found := try_open(folder):
            return found
        with new_folder(folder) as working:
            _write(working, files, progress)
        remove_unused(folder.parent)
        return OpenIndex(folder)


def _write(folder: Path, files: Sequence[Source], progress: StepProgress) -> None:
    current, *earlier = files
    with without_garbage_collection():
        catalogue = _read(current, CatalogueStep.READ, progress)
        history = History(catalogue.localities, Areas.of(catalogue.states.values(), catalogue.municipalities.values()))
        for file in reversed(earlier):
            older = _read(file, CatalogueStep.READ_EARLIER, progress)
            history.add(older.localities, older.municipalities.values())
    progress.begin(CatalogueStep.INDEX)
    progress.expect(len(catalogue.localities))
    write_index(folder, history.places(), history.withdrawn(), progress.advance)
    write_records(folder, catalogue)


def _read(file: Source, step: CatalogueStep, progress: StepProgress) -> CatalogueRecords:
    progress.begin(step)
    with open_catalogue(file) as table:
        return transform(table, progress.advance)
