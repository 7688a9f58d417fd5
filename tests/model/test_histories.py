"""Histories of releases against the model."""

from collections.abc import Callable
from pathlib import Path
from typing import cast

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.model.machine import Histories, HistoriesOfApplication
from tests.model.workers import HistoriesOfWorkers
from tests.support.waiting import in_thread

STEPS = 8  # changes in a history
SHARE = 10  # one in so many histories has several workers
GATE_SHARE = 16  # a history takes three seconds: the gate runs one for so many examples of other tests

pytestmark = [pytest.mark.hypothesis, pytest.mark.timeout(0)]  # as many histories as the profile says


def run_histories(machine: Callable[[], Histories], *, share: int = 1) -> None:
    """Run as many histories as the profile says, or one in `share` of them."""
    profile = settings.default
    assert profile is not None
    if settings.get_current_profile_name() == "project":
        share *= GATE_SHARE
    chosen = settings(
        max_examples=max(1, profile.max_examples // share),
        stateful_step_count=STEPS,
        suppress_health_check=(HealthCheck.too_slow, HealthCheck.filter_too_much),
        # Shrinking takes minutes, since each try is a history, and a history has few steps.
        phases=[Phase.explicit, Phase.generate],
    )
    factory = cast("type[Histories]", machine)  # any factory will do
    in_thread(lambda: run_state_machine_as_test(factory, settings=chosen))


def test_answers_belong_to_the_releases_of_their_time(server: str, migrated: str, tmp_path: Path) -> None:
    run_histories(lambda: HistoriesOfApplication(server, migrated, tmp_path))


@pytest.mark.tail
def test_workers_answer_for_the_releases_of_their_time(server: str, migrated: str, tmp_path: Path) -> None:
    run_histories(lambda: HistoriesOfWorkers(server, migrated, tmp_path), share=SHARE)
