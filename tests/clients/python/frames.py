"""Match and download with tables of pandas and polars: `python frames.py SERVICE`."""

import json
import sys

import geopandas as gpd
import numpy as np
import pandas as pd
import polars as pl

from localidades_api.client import Client
from localidades_api.client.frames import read_table

ROWS = {"Localidad": ["Asientos", None, "Nadie"], "MPIO": [2.0, None, 2.0], "edo": ["01", "01", "01"]}
COLUMNS = {"municipio": "MPIO"}


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


def check_answers_have_types() -> None:
    """Check that counts are whole numbers although some are missing, and keys text."""
    added = {"match_poblacion": ["5", ""], "match2_latitud": ["21.5", ""], "match_municipio_clave": ["001", ""]}
    table = read_table(pd.DataFrame(ROWS)[:2]).with_columns(3, added)[[*added]]
    assert table.dtypes.astype(str).to_dict() == dict(zip(added, ["Int64", "float64", "string"], strict=True))
    assert table.astype(object).where(table.notna(), None).values.tolist() == [[5, 21.5, "001"], [None] * 3]
    table = read_table(pl.DataFrame(ROWS)[:2]).with_columns(3, added)[[*added]]
    assert table.dtypes == [pl.Int64, pl.Float64, pl.String]
    assert table.rows() == [(5, 21.5, "001"), (None, None, None)]


def check_any_type_is_sent_as_text() -> None:
    """Check that missing values are empty, and that a key that became a float has no decimals."""
    columns = {
        "a": pd.Series(["Asientos", None, pd.NA], dtype="category"),
        "b": pd.array(["01", None, "02"], "string[pyarrow]"),
        "c": [14.0, float("nan"), 21.88],
        "d": pd.array([1, None, 3], "Int64"),
        "e": [pd.Timestamp("2026-03-01"), pd.NaT, None],
        "f": [True, False, True],
        0: ["", "x", np.int64(5)],
    }
    table = read_table(pd.DataFrame(columns).rename(columns={"f": "b"}))
    assert table.header == ["a", "b", "c", "d", "e", "b", "0"]
    assert list(table.lines) == [
        ["Asientos", "01", "14", "1", "2026-03-01 00:00:00", "True", ""],
        ["", "", "", "", "", "False", "x"],
        ["", "02", "21.88", "3", "", "True", "5"],
    ]
    assert table.with_columns(7, {"match_cvegeo": ["1", "2", "3"]}).shape == (3, 8)
    places = gpd.GeoDataFrame(ROWS)
    assert type(read_table(places).with_columns(3, {"match_cvegeo": ["", "", ""]})) is gpd.GeoDataFrame
    polars = pl.DataFrame({"a": ["Asientos", None], "b": [14.0, float("nan")], "c": [None, None]})
    assert list(read_table(polars.cast({"a": pl.Categorical})).lines) == [["Asientos", "14", ""], ["", "", ""]]
    records = read_table([{"a": pd.NA, "b": pd.NaT, "c": np.nan, "d": np.array([1, 2])}])
    assert list(records.lines) == [["", "", "", "[1 2]"]]


def check_series_is_a_table_of_one_column(catalogue: Client) -> None:
    """Check that its name is the header, and `nombre` is if it has none."""
    texts = ["Asientos, Ags.", None]
    for series, header in (
        (pd.Series(texts, [7, 8]), "nombre"),
        (pd.Series(texts, [7, 8], name=1), "nombre"),
        (pd.Series(texts, [7, 8], name="Lugar"), "Lugar"),
        (pl.Series(texts), "nombre"),
        (pl.Series("Lugar", texts), "Lugar"),
    ):
        matched = catalogue.match(series)
        assert [*matched.columns[:3]] == [header, "match_outcome", "match_cvegeo"]
        assert isinstance(series, pl.Series) or matched.index.tolist() == [7, 8]
        assert next(iter(matched["match_cvegeo"])) == "010020001"


def check_no_rows_get_the_columns(catalogue: Client) -> None:
    """Check that an empty table gets as many columns as any other, of the same types."""
    expected = catalogue.match(pd.DataFrame(ROWS), **COLUMNS)
    assert catalogue.match(pd.DataFrame(ROWS)[:0], **COLUMNS).dtypes[3:].equals(expected.dtypes[3:])
    assert catalogue.match(pl.DataFrame(ROWS)[:0], **COLUMNS).schema == catalogue.match(pl.DataFrame(ROWS)).schema
    assert catalogue.match(pd.Series([])).columns.tolist()[1:] == expected.columns.tolist()[3:]
    for empty in (pd.DataFrame([]), pl.DataFrame([])):
        assert [*catalogue.match(empty).columns] == expected.columns.tolist()[3:]


service = sys.argv[1]
frame = pd.DataFrame(ROWS, index=[7, 8, 9])
with Client(service) as client:
    of_pandas = client.match(frame, **COLUMNS)
    again = client.match(of_pandas, **COLUMNS)
    places = client.download(estado_id=1)
    of_polars = client.match(pl.DataFrame(ROWS), **COLUMNS)
    polars_places = client.download(to="polars", estado_id=1)
    check_series_is_a_table_of_one_column(client)
    check_no_rows_get_the_columns(client)
    # A lazy frame is collected, and rows without a point stay.
    assert client.match(pl.LazyFrame(ROWS), **COLUMNS).equals(of_polars)
    near = client.nearest(pd.DataFrame({"lat": [21.88, None], "lon": [-102.29, None]}, index=["a", "b"]))
assert near.index.tolist() == ["a", "b"]
assert near["nearest_cvegeo"].fillna("").tolist() == ["010010001", ""]
assert near["nearest_distancia"].dtype == "float64"
check_answers_have_types()
check_any_type_is_sent_as_text()
assert frame.columns.tolist() == list(ROWS), "the table that is given stays as it is"
assert again.equals(of_pandas), "answers replace those of an earlier call"
assert places["cvegeo"].tolist() == polars_places["cvegeo"].to_list()
assert [*map(list, described(of_polars))] == described(of_pandas)
json.dump([of_pandas.columns.tolist(), described(of_pandas), places["cvegeo"].tolist()], sys.stdout)
