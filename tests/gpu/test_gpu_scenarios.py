"""Every scenario that takes a device runs on the GPU, and what it claims exactly holds there; times are not judged."""

import json
from collections.abc import Callable
from subprocess import CompletedProcess
from typing import TYPE_CHECKING

import pytest

from tuilab.catalogue import catalog

if TYPE_CHECKING:
    from tests.gpu.page import Page

NAMES = [
    scenario.id
    for scenario in catalog.load()
    if any(param.name == "device" for param in scenario.params)
]


@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", NAMES)
def test_the_exact_claims_of_a_scenario_hold_on_a_gpu(
    tuilab: Callable[..., "CompletedProcess[str]"], page: "Page", name: str
) -> None:
    done = tuilab(
        "run", name, "--device", "cuda", "--headless", "--quick", "--json", "--quiet", timeout=280
    )

    (run,) = json.loads(done.stdout)["runs"]
    page.note("scenarios, --quick", name, f"{run['state']} in {run['elapsed_s']:.1f} s")
    for claim in run["claims"]:
        page.note("scenarios, --quick", f"  {claim['key']}", f"{claim['verdict']}: {claim['why']}")
    exact = {
        claim["key"] or claim["text"]: claim["verdict"]
        for claim in run["claims"]
        if claim["measured"]
    }
    assert run["state"] == "succeeded", run["reason"]
    assert exact == dict.fromkeys(exact, "SUPPORTED")
