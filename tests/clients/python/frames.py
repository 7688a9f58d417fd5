"""Match and download with tables of pandas and polars: `python frames.py SERVICE`."""

import asyncio
import json
import sys

import pandas as pd
import polars as pl

from localidades_api.client import AsyncClient, Client

ROWS = {"Localidad": ["Asientos", None, "Nadie"], "MPIO": [2.0, None, 2.0], "edo": ["01", "01", "01"]}
COLUMNS = {"municipio": "MPIO"}


async def asynchronous(service: str) -> list:
    async with AsyncClient(service) as catalogue:
        matched = await catalogue.match(pl.DataFrame(ROWS), **COLUMNS)
        places = await catalogue.download(to="polars", estado_id=1)
    return [matched, places]


def described(table: pd.DataFrame | pl.DataFrame) -> list:
    """Return what is the same of a table of either."""
    if isinstance(table, pl.DataFrame):
        assert {table.schema["match_cvegeo"], table.schema["match_problem"]} == {pl.String}
        assert table.schema["match_score"] == pl.Float64
        return table.rows()
    assert table.index.tolist() == [7, 8, 9]
    assert {str(table[name].dtype) for name in ("match_cvegeo", "match_problem")} == {"string"}
    assert table["match_score"].dtype == "float64"
    return table.astype(object).where(table.notna(), None).values.tolist()


service = sys.argv[1]
frame = pd.DataFrame(ROWS, index=[7, 8, 9])
with Client(service) as client:
    of_pandas = client.match(frame, **COLUMNS)
    again = client.match(of_pandas, **COLUMNS)
    no_rows = client.match(frame[:0], **COLUMNS)
    places = client.download(estado_id=1)
of_polars, of_polars_places = asyncio.run(asynchronous(service))
assert frame.columns.tolist() == list(ROWS), "the table that is given stays as it is"
assert again["match2_score"].equals(of_pandas["match_score"])
assert no_rows.columns.tolist() == of_pandas.columns.tolist()
assert places["cvegeo"].tolist() == of_polars_places["cvegeo"].to_list()
assert [*map(list, described(of_polars))] == described(of_pandas)
json.dump([of_pandas.columns.tolist(), described(of_pandas), places["cvegeo"].tolist()], sys.stdout)
