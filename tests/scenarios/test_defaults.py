"""Every scenario runs on a CPU as it comes; what it claims exactly holds, and claims about time are not judged here."""

import json
from collections.abc import Callable
from subprocess import CompletedProcess

import pytest

from tuilab.catalogue import catalog

pytestmark = [pytest.mark.library, pytest.mark.timeout(420)]


@pytest.mark.parametrize("name", [scenario.id for scenario in catalog.load()])
def test_a_scenario_with_its_defaults_succeeds_and_its_exact_claims_hold(
    as_it_comes: Callable[[str], "CompletedProcess[str]"], name: str
) -> None:
    done = as_it_comes(name)

    (run,) = json.loads(done.stdout)["runs"]
    assert run["state"] == "succeeded", run["reason"]
    undecided = [claim["text"] for claim in run["claims"] if claim["verdict"] is None]
    refuted = [claim["text"] for claim in run["claims"] if claim["measured"] and claim["verdict"] == "REFUTED"]
    assert (undecided, refuted) == ([], [])
