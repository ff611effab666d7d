"""Every scenario that takes a device runs on the GPU, and what it claims exactly holds there; times are not judged."""

import json
from collections.abc import Callable
from subprocess import CompletedProcess

import pytest

from tuilab.catalogue import catalog

NAMES = [scenario.id for scenario in catalog.load() if any(param.name == "device" for param in scenario.params)]


@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", NAMES)
def test_the_exact_claims_of_a_scenario_hold_on_a_gpu(tuilab: Callable[..., "CompletedProcess[str]"], name: str) -> None:
    done = tuilab("run", name, "--device", "cuda", "--headless", "--quick", "--json", "--quiet", timeout=280)

    (run,) = json.loads(done.stdout)["runs"]
    exact = {claim["key"] or claim["text"]: claim["verdict"] for claim in run["claims"] if claim["measured"]}
    assert run["state"] == "succeeded", run["reason"]
    assert exact == dict.fromkeys(exact, "SUPPORTED")
