"""Names as offices write them, among those of the whole estado."""

import csv
from pathlib import Path

from localidades_api.names.index import NameIndex
from localidades_api.names.rows import MatchRow

NAMES = Path(__file__).parents[1] / "data" / "office_names.tsv"
IN_DOUBT = {"street before the place", "colonia of the town"}  # what no name decides


def test_rows_of_offices_are_seldom_asked_and_hardly_ever_wrong(hidalgo: NameIndex) -> None:
    later, asked, wrong = [], [], []
    with NAMES.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    for row in rows:
        result = hidalgo.match(MatchRow(row["nombre"], row["municipio"], row["estado"]))
        likeliest = result.best.cvegeo if result.best else ""
        told = f"{row['nombre']}, {row['municipio']} ({row['source']}): {likeliest} instead of {row['cvegeo']}"
        if likeliest != row["cvegeo"]:
            later.append(told)
        if result.outcome == "ambiguous" and row["source"] not in IN_DOUBT:
            asked.append(told)
        if result.id is not None and (likeliest != row["cvegeo"] or row["source"] in IN_DOUBT):
            wrong.append(told)
    assert len(rows) == 300
    assert len(later) <= 6, later
    assert len(asked) <= 18, asked
    assert len(wrong) <= 1, wrong
