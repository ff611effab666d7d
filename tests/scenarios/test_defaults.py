"""Every scenario runs on a CPU as it comes; what it claims exactly holds, and claims about time are not judged here.

So what claims some is repeated once: the repeats that this takes by itself would find out nothing more.
"""

import json
from collections.abc import Callable
from subprocess import CompletedProcess

import pytest

from tuilab.catalogue import catalog

pytestmark = [pytest.mark.library, pytest.mark.timeout(420)]
REPEATS = {scenario.id: "2" if scenario.is_timed else "1" for scenario in catalog.load()}


@pytest.mark.parametrize("name", REPEATS)
def test_a_scenario_with_its_defaults_succeeds_and_its_exact_claims_hold(
    tuilab: Callable[..., "CompletedProcess[str]"], name: str
) -> None:
    done = tuilab("run", name, "--headless", "--json", "--quiet", "--repeat", REPEATS[name], timeout=400)

    (run,) = json.loads(done.stdout)["runs"]
    assert run["state"] == "succeeded", run["reason"]
    undecided = [claim["text"] for claim in run["claims"] if claim["verdict"] is None]
    refuted = [claim["text"] for claim in run["claims"] if claim["measured"] and claim["verdict"] == "REFUTED"]
    assert (undecided, refuted) == ([], [])
