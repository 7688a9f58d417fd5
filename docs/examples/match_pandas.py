"""Give the rows of a CSV their keys and population: `python match_pandas.py visits.csv http://127.0.0.1:8000`."""

import io
import sys
from urllib.request import Request, urlopen

import pandas as pd

FILE, SERVICE = (*sys.argv[1:], "http://127.0.0.1:8000")[:2]
MATCH = f"{SERVICE}/api/census/localidades/match/?fields=nombre,poblacion"


def read_text(source: str | io.BytesIO) -> pd.DataFrame:
    """Read CSV with every cell as text: keys keep their leading zeros, and no name is taken for a missing value."""
    return pd.read_csv(source, dtype=str, keep_default_na=False)


def match(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the rows with the columns of their answers; raise an exception unless every row has one."""
    body, header = rows.to_csv(index=False).encode(), {"Content-Type": "text/csv"}
    with urlopen(Request(MATCH, body, header), timeout=60) as answer:  # noqa: S310  # seconds without a byte
        return read_text(io.BytesIO(answer.read()))


rows = match(read_text(FILE))
is_certain = rows["match_outcome"].isin(["exact", "sure"])
certain = rows[is_certain]
print(certain[[rows.columns[0], "match_cvegeo", "match_nombre", "match_poblacion"]].to_string(index=False))
certain.to_csv("certain.csv", index=False)
rows[~is_certain].to_csv("to-decide.csv", index=False)
