"""Compares every record of each download, as analysts' programs read it, with the service's NDJSON.

`python -m benchmarks.readers RELEASE.zip`, with the environments of `make test`, and R. The statements are those of the
guide to files, which tests run on 148 places, and two for NDJSON. Records are compared by their hashes.
"""

import argparse
import http.client
import json
import re
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from urllib.parse import urlsplit

from benchmarks.contenders import OURS_COLD
from benchmarks.lab import Options, open_lab, run_command
from benchmarks.processes import PATH, BenchmarkError, Server
from benchmarks.record_hashes import hash_record
from tests.processes.readers import GUIDE_LINES, run_line, run_line_of_r
from tests.support.downloads import KEYS, read_csv

_FORMATS = ("ndjson", "csv", "xlsx", "parquet", "gpkg")
_GUIDE_RELEASE = "2018-09"  # in the names of its files
_KEYS = ", ".join(f'"{name}": str' for name in sorted(KEYS))
_OF_NDJSON = (
    (
        "python",
        f'localidades = pandas.read_json("localidades-{_GUIDE_RELEASE}.ndjson", lines=True, precise_float=True,'
        f" dtype={{{_KEYS}}})",
    ),
    ("sql", f"SELECT * FROM read_ndjson('localidades-{_GUIDE_RELEASE}.ndjson')"),
)
_HASHES = "from benchmarks.record_hashes import hash_record\nprint(*map(hash_record, records), sep='\\n')"
_PATIENCE = 900.0  # seconds for one program


def main() -> None:
    """Read every file with every program, and print how many records differ."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.readers", description=__doc__)
    parser.add_argument("catalogue", type=Path, help="a file of INEGI's")
    arguments = parser.parse_args()
    run_command(lambda: _measure(arguments.catalogue))


def _measure(catalogue: Path) -> None:
    with open_lab(Options(1, 0), catalogue) as lab:
        files = lab.folder / "files"
        files.mkdir()
        with lab.start(OURS_COLD, lab.url) as server:
            names = [_download(server, format_, files) for format_ in _FORMATS]
        expected = list(_hashes_of(files / names[0]))
        if len(expected) != lab.localities:
            raise BenchmarkError(f"A download has {len(expected)} records, its release {lab.localities}.")
        release = names[0].removeprefix("localidades-").removesuffix(".ndjson")
        for language, line in (*GUIDE_LINES, *_OF_NDJSON):
            _compare(language, line.replace(_GUIDE_RELEASE, release), files, expected)


def _download(server: Server, format_: str, folder: Path) -> str:
    with closing(http.client.HTTPConnection(urlsplit(server.base).netloc, timeout=300)) as connection:
        connection.request("GET", f"{PATH}download/?format={format_}")
        response = connection.getresponse()
        (name,) = re.findall('filename="(.+)"', response.headers["content-disposition"])
        (folder / name).write_bytes(response.read())
    return str(name)


def _hashes_of(ndjson: Path) -> Iterator[str]:
    with ndjson.open(encoding="utf-8") as lines:
        for line in lines:
            yield hash_record(json.loads(line))


def _compare(language: str, line: str, folder: Path, expected: list[str]) -> None:
    began = time.perf_counter()
    if language == "r":
        found = [hash_record(record) for record in read_csv(run_line_of_r(line, folder, _PATIENCE))]
    else:
        found = run_line(language, line, folder, _HASHES, _PATIENCE).split()
    different = sum(one != other for one, other in zip(found, expected, strict=False))
    print(
        f"{line[:72]:72} {len(found):8,} of {len(expected):,} records, {different} differ"
        f" ({time.perf_counter() - began:.0f} s)".replace("\n", " "),
        flush=True,
    )


if __name__ == "__main__":
    main()
