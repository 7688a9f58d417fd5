"""Names as offices write them, among those of the whole estado."""

import csv
from collections import Counter
from contextlib import closing
from pathlib import Path

from benchmarks.names import places_of, read_catalogue
from localidades_api.names.index import NameIndex
from localidades_api.names.rows import MatchRow
from localidades_api.names.writer import build_index

DATA = Path(__file__).parents[1] / "data"
IN_DOUBT = {"street before the place", "colonia of the town"}  # what no name decides


def test_rows_of_offices_are_seldom_asked_and_hardly_ever_wrong(tmp_path: Path) -> None:
    build_index(tmp_path / "names", places_of(read_catalogue(DATA / "ageeml_2024-10_hidalgo.zip"), None), ())
    outcomes, asked, wrong, first = Counter[str](), 0, [], 0
    with closing(NameIndex(tmp_path / "names")) as index, (DATA / "office_names.tsv").open(encoding="utf-8") as file:
        for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE):
            result = index.match(MatchRow(row["nombre"], row["municipio"], row["estado"]))
            found = result.best.cvegeo if result.best else ""
            outcomes[result.outcome] += 1
            first += found == row["cvegeo"]
            asked += result.outcome == "ambiguous" and row["source"] not in IN_DOUBT
            if result.id is not None and (found != row["cvegeo"] or row["source"] in IN_DOUBT):
                wrong.append((row["nombre"], found))
    assert outcomes.total() == 300
    assert first >= 294
    assert asked <= 18
    assert len(wrong) <= 1, wrong
