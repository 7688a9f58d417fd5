"""The demo catalogue: the same file everywhere, with the shape of INEGI's."""

import hashlib
import re
from collections import Counter
from itertools import islice, pairwise

import pytest

from localidades_api.importer.demo.generate import DEMO_SHA256, ESTADOS, generate_demo

DEGREES = re.compile(r'([0-9]{2,3})°([0-5][0-9])\u00b4([0-5][0-9]\.[0-9]{3})"([NW])')


def fields(line: str) -> list[str]:
    return line[1:-1].split('","')


def decimal(written: str) -> float:
    match = DEGREES.fullmatch(written)
    assert match, written
    degrees, minutes, seconds, side = match.groups()
    value = int(degrees) + int(minutes) / 60 + float(seconds) / 3600
    return value if side == "N" else -value


@pytest.mark.tail
def test_whole_demo_is_the_same_bytes_everywhere_with_the_shape_of_the_real_catalogue() -> None:
    catalogue = list(generate_demo())
    assert hashlib.sha256("\r\n".join(catalogue).encode()).hexdigest() == DEMO_SHA256
    lines = catalogue[1:]
    assert len(lines) == 304_400
    keys = [line[1:10] for line in lines]
    assert all(earlier < later for earlier, later in pairwise(keys))
    assert all(len(key) == 9 and key.isascii() and key.isdigit() for key in keys)
    counts = Counter(key[:2] for key in {line[1:6] for line in lines})
    assert (len(counts), counts["20"], counts["21"], counts["30"], counts["02"]) == (32, 570, 217, 212, 5)
    names = Counter((line[1:6], fields(line)[8]) for line in lines)
    assert 0.08 <= sum(count - 1 for count in names.values()) / len(lines) <= 0.12  # share a name


def test_positions_agree_and_populations_add_up() -> None:
    boxes = {estado.clave: estado for estado in ESTADOS}
    for row in map(fields, islice(generate_demo(), 1, 9_000, 9)):
        latitude, longitude = map(float, row[12:14])
        # Six decimals of a degree are a third of a thousandth of a second.
        assert (decimal(row[10]), decimal(row[11])) == pytest.approx((latitude, longitude), abs=6e-7)
        box = boxes[row[2]]
        assert box.south < latitude < box.north
        assert -box.west < longitude < -box.east
        ambito, population = row[9], row[16:]
        if "-" in population:
            assert (ambito, population) == ("R", ["-"] * 4)
            continue
        total, men, women, homes = map(int, population)
        assert total == men + women
        assert 1 <= homes <= total
        assert ambito == ("U" if total >= 2_500 else "R")
