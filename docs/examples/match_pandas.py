"""Match the rows of a DataFrame to keys, and join the catalogue's columns to those that are certain."""

import io
import sys

import httpx
import pandas as pd

SERVICE = sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:8000"
LOCALITIES = f"{SERVICE}/api/census/localidades"


def read_text(source: str | io.StringIO) -> pd.DataFrame:
    """Read CSV with every cell as text: keys keep their leading zeros, and no name is taken for a missing value."""
    return pd.read_csv(source, dtype=str, keep_default_na=False)


def match(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the rows with the columns of their answers; raise an exception unless every row has one."""
    body, header = rows.to_csv(index=False).encode(), {"Content-Type": "text/csv"}
    answer = httpx.post(f"{LOCALITIES}/match/", content=body, headers=header, timeout=60)  # seconds without a byte
    answer.raise_for_status()
    return read_text(io.StringIO(answer.content.decode()))


visits = match(read_text("docs/examples/visits.csv"))
is_certain = visits["match_outcome"].isin(["exact", "sure"])
places = read_text(f"{LOCALITIES}/download/?format=csv&estado_id=14")
joined = visits[is_certain].merge(places, left_on="match_cvegeo", right_on="cvegeo", validate="many_to_one")
print(joined[["folio", "cvegeo", "nombre", "poblacion"]].to_string(index=False))
visits[~is_certain].to_csv("to-decide.csv", index=False)
