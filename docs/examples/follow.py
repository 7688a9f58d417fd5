"""Keep a copy of the catalogue in SQLite: `python follow.py http://127.0.0.1:8000 localidades.sqlite`."""

import json
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing

import httpx

COLUMNS = (
    "id", "municipio_id", "cvegeo", "clave", "nombre", "ambito", "latitud", "longitud", "altitud", "carta",
    "poblacion", "poblacion_masculina", "poblacion_femenina", "viviendas",
)  # fmt: skip
WRITE = f"INSERT OR REPLACE INTO localidades VALUES ({', '.join('?' * len(COLUMNS))})"


def follow(service: str, path: str) -> str:
    """Bring the copy to the release that is served; it is the old one or the new one, and nothing between."""
    with httpx.Client(base_url=f"{service}/api/census/", timeout=60) as client, closing(sqlite3.connect(path)) as copy:
        copy.execute("CREATE TABLE IF NOT EXISTS held (release TEXT)")
        copy.execute(f"CREATE TABLE IF NOT EXISTS localidades (id INTEGER PRIMARY KEY, {', '.join(COLUMNS[1:])})")
        new = client.get("", headers={"Accept": "application/json"}).raise_for_status().json()["release"]
        old = copy.execute("SELECT release FROM held").fetchone()
        if old == (new,):
            return f"{path} holds {new} already"
        known = old and client.get(f"?release={old[0]}").is_success  # the operator may have removed it
        with copy:  # one transaction
            if known:
                for change in read(client, f"releases/{new}/changes/?since={old[0]}&format=ndjson"):
                    if change["after"] is None:
                        copy.execute("DELETE FROM localidades WHERE id = ?", [change["id"]])
                    else:
                        copy.execute(WRITE, [change["after"][name] for name in COLUMNS])
            else:
                copy.execute("DELETE FROM localidades")
                lines = read(client, f"localidades/download/?format=ndjson&release={new}")
                copy.executemany(WRITE, ([record[name] for name in COLUMNS] for record in lines))
            copy.execute("DELETE FROM held")
            copy.execute("INSERT INTO held VALUES (?)", [new])
        return f"{path} went from {old[0] if old else 'nothing'} to {new}"


def read(client: httpx.Client, target: str) -> Iterator[dict]:
    """Yield the records of a file as they arrive; a transfer that breaks off, or is short, raises."""
    with client.stream("GET", target) as answer:
        answer.raise_for_status()
        count, rest = 0, b""
        for chunk in answer.iter_bytes():
            *lines, rest = (rest + chunk).split(b"\n")  # httpx's iter_lines would split at other characters too
            count += len(lines)
            yield from map(json.loads, lines)
    if count != int(answer.headers["Catalogue-Records"]):
        raise RuntimeError(f"{target}: {count} records, not {answer.headers['Catalogue-Records']}")


if __name__ == "__main__":
    print(follow(*sys.argv[1:]))
