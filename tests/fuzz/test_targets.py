"""Each target reads what it begins with; otherwise nothing behind a refusal would be fuzzed."""

import pytest

from tests.fuzz.targets import targets


@pytest.mark.parametrize("name", sorted(targets()))
def test_target_accepts_its_seeds_and_refuses_noise(name: str) -> None:
    target = targets()[name]
    assert all(map(target.read, target.seeds))
    assert name == "head" or not target.read(b"\x00\xff\x00")
