"""Every scenario runs on a CPU as it comes; what it claims exactly holds, and claims about time are not judged here."""

from collections.abc import Callable
from typing import Any

import pytest

from tuilab.catalogue import catalog

WITH_VALUES = {
    "omp-threads",
    "omp-bind",
    "numa",
    "loader-start",
}  # where test_cpu.py and test_data.py run them so
NAMES = [scenario.id for scenario in catalog.load() if scenario.id not in WITH_VALUES]


@pytest.mark.lessons
@pytest.mark.timeout(420)
@pytest.mark.parametrize("name", NAMES)
def test_a_scenario_with_its_defaults_succeeds_and_its_exact_claims_hold(
    as_it_comes: Callable[[str], dict[str, Any]], name: str
) -> None:
    as_it_comes(name)
