"""Names as offices write them, among those of the whole estado."""

import csv
from contextlib import closing
from pathlib import Path

from benchmarks.names import places_of, read_catalogue
from localidades_api.names.files.writer import build_index
from localidades_api.names.index import NameIndex
from localidades_api.names.rows import MatchRow

DATA = Path(__file__).parents[1] / "data"
IN_DOUBT = {"street before the place", "colonia of the town"}  # what no name decides


def test_rows_of_offices_are_seldom_asked_and_hardly_ever_wrong(tmp_path: Path) -> None:
    build_index(tmp_path / "names", places_of(read_catalogue(DATA / "ageeml_2024-10_hidalgo.zip"), None), ())
    later, asked, wrong = [], [], []
    with closing(NameIndex(tmp_path / "names")) as index, (DATA / "office_names.tsv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
        for row in rows:
            result = index.match(MatchRow(row["nombre"], row["municipio"], row["estado"]))
            found = result.best.cvegeo if result.best else ""
            told = f"{row['nombre']}, {row['municipio']} ({row['source']}): {found} instead of {row['cvegeo']}"
            if found != row["cvegeo"]:
                later.append(told)
            if result.outcome == "ambiguous" and row["source"] not in IN_DOUBT:
                asked.append(told)
            if result.id is not None and (found != row["cvegeo"] or row["source"] in IN_DOUBT):
                wrong.append(told)
    assert len(rows) == 300
    assert len(later) <= 6, later
    assert len(asked) <= 18, asked
    assert len(wrong) <= 1, wrong
