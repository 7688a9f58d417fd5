"""The demo catalogue: the same file everywhere, with the shape of INEGI's."""

import hashlib
from collections import Counter
from itertools import pairwise

import pytest

from localidades_api.importer.demo.generate import DEMO_SHA256, generate_demo


def fields(line: str) -> list[str]:
    return line[1:-1].split('","')


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
