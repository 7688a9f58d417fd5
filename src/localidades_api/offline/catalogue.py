"""A catalogue for programs and notebooks, with the answers of the service."""

import os
from collections.abc import Collection, Mapping
from contextlib import nullcontext
from functools import partial
from io import BytesIO
from typing import Any, Self, overload

from pydantic import ValidationError

from localidades_api.bulk.answer_columns import in_language, match_columns, width_without_answers
from localidades_api.bulk.answers import answer_sample, match_row
from localidades_api.bulk.formats import reader
from localidades_api.bulk.options import MatchOptions
from localidades_api.caches.index_folders import OpenIndex
from localidades_api.catalogue.filters import split_fields
from localidades_api.catalogue.keys import KIND_BY_DIGITS, PlaceKind
from localidades_api.catalogue.messages import describe_fault
from localidades_api.client.frames import Answered, Frame, read_table, write_csv
from localidades_api.errors import NotFoundError
from localidades_api.names.files.layout import KEY, WITHDRAWN
from localidades_api.names.index import NameIndex
from localidades_api.observability.progress import StepProgress
from localidades_api.observability.progress_display import show_progress
from localidades_api.offline.indexes import open_index
from localidades_api.offline.records import Records
from localidades_api.settings import read_settings


class Catalogue:
    """A release of the catalogue: `catalogue = Catalogue.open("catun_localidad.zip")`."""

    def __init__(self, index: OpenIndex) -> None:
        self._index = index
        self.names: NameIndex = index.names
        self._records = Records(index.folder, index.names)

    @classmethod
    def open(
        cls, source: str | os.PathLike[str], *earlier: str | os.PathLike[str], progress: StepProgress | None = None
    ) -> Self:
        """Open INEGI's zip, csv or txt, or `demo`; `earlier` are earlier releases, the newest first.

        Their names and keys lead to the places of the first. The first time, this builds an index of names in the
        user's cache folder, and shows on stderr how far it is. Raises CatalogueError if a file is not a catalogue.
        """
        sources = [os.fspath(path) for path in (source, *earlier)]
        with nullcontext(progress) if progress else show_progress() as shown:
            return cls(open_index(sources, read_settings().cache_dir, shown))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the index; its folder stays for the next time."""
        self._index.close()

    @overload
    def match(self, rows: Frame, **options: object) -> Frame: ...
    @overload
    def match(self, rows: object, **options: object) -> Answered: ...
    def match(self, rows: object, **options: object) -> Answered:
        """Return rows with the columns `match_…` beside: texts and dicts as a list of dicts, a table as a DataFrame.

        `nombre="sitio"` names a column that is not recognized, `estado="Guerrero"` the estado of the rows that give
        none, `kind` says what each row is about, `fields` names the columns of the place to return, and `sure` is the
        probability that certain keys have. Raises UnreadableBodyError if no column is recognized.
        """
        table = read_table(rows)
        if not table.header:  # no rows
            return table.with_columns(0, {})
        asked = _read_options(options)
        file = BytesIO(write_csv([table.header, *table.lines]))
        reading = asked.match_reading(self.names.areas)._replace(answer=partial(answer_sample, self.names))
        sent = reader("text/csv", file, reading)
        for _ in sent.check():
            pass
        fields = split_fields(asked.fields)
        answer_columns = in_language(match_columns(fields), asked.lang)
        own = table.header[: width_without_answers(table.header)]
        added: dict[str, list[str]] = {name: [] for name in answer_columns.headers(own)}
        for row in sent:
            answer = match_row(row, self.names, asked.sure, fields)
            for column, write in zip(added.values(), answer_columns.cells.values(), strict=True):
                column.append(write(answer))
        return table.with_columns(len(own), added)

    def suggest(
        self,
        q: str,
        *,
        kind: PlaceKind | Collection[PlaceKind] = "localidad",
        limit: int = 10,
        estado_id: int | None = None,
        municipio_id: int | None = None,
    ) -> list[dict[str, Any]]:
        """Return the places that a text may mean, the likeliest first."""
        kinds: Collection[PlaceKind] = (kind,) if isinstance(kind, str) else kind
        found = self.names.suggest(q, kinds=kinds, estado_id=estado_id, municipio_id=municipio_id, limit=limit)
        return [suggested.describe() for suggested in found]

    def get(self, key: str | int) -> dict[str, Any]:
        """Return what a key of two, five or nine digits names: an estado, a municipio or a locality.

        Raises NotFoundError for a key that the release does not have.
        """
        from localidades_api.client import complete_key  # noqa: PLC0415  # it imports httpx

        kind = KIND_BY_DIGITS[len(complete_key(key))]
        record = self._records.get(kind, int(key))
        if record is None:
            raise NotFoundError(self._explain_missing(kind, int(key)))
        return record

    def _explain_missing(self, kind: PlaceKind, id_: int) -> str:
        find = self.names.layout.find
        if kind == "localidad" and (rows := find(KEY, str(id_))):
            return f"INEGI has withdrawn this key: its place is now {self.names.layout.record(rows[0])[0]:09d}."
        if kind == "localidad" and find(WITHDRAWN, str(id_), 1):
            return "INEGI has withdrawn this key, and no other place has its name and point."
        return "Neither this release nor an earlier one has this key."


def _read_options(given: Mapping[str, object]) -> MatchOptions:
    """Return the options of rows that have a header; raise ValueError for one that can't be used."""
    joined = {name: ",".join(value) if isinstance(value, list | tuple) else value for name, value in given.items()}
    try:
        return MatchOptions.model_validate({"header_row": 1, **joined})
    except ValidationError as error:
        [fault, *_] = error.errors()
        raise ValueError(f"{fault['loc'][0]}: {describe_fault(fault)}") from None
