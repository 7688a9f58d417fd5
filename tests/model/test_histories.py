"""Histories of releases against the model."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.model.machine import Histories
from tests.support.waiting import in_thread

STEPS = 8  # changes in a history
SLOW = (HealthCheck.too_slow, HealthCheck.filter_too_much)


@pytest.mark.hypothesis
@pytest.mark.timeout(0)  # as many histories as the profile says
def test_answers_belong_to_the_releases_of_their_time(server: str, migrated: str, tmp_path: Path) -> None:
    # Shrinking takes minutes, since each try is a history; the one found has few steps.
    chosen = settings(stateful_step_count=STEPS, suppress_health_check=SLOW, phases=[Phase.explicit, Phase.generate])
    in_thread(lambda: run_state_machine_as_test(lambda: Histories(server, migrated, tmp_path), settings=chosen))
