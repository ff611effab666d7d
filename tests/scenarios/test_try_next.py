"""Every change that a lesson says to try next refutes the claims that it names, and no other.

That is said of exact claims alone: what a change does to a claim about time depends on the box, and takes repeats.
"""

import shlex
from collections.abc import Callable
from typing import Any

import pytest

from tuilab.catalogue import catalog
from tuilab.catalogue.stated_claims import Change, changes_of
from tuilab.record.verdicts import CLAIMED_FOR

Result = Callable[..., dict[str, Any]]
BY_CHANCE = {"one-core"}  # on which cores an unbound process runs is the scheduler's affair
INTERCEPTS = {
    "--steps 2000": 0.2,
    "--beta2 0.99": 0.001,
    "--span 1": 0.001,
}  # of curve-fit: how near to 3 all seeds come
CHANGES = [
    (found.id, change)
    for found in catalog.load()
    for change in changes_of(found.sections["Try next"])
]


def case(name: str, change: Change) -> Any:
    suite = (
        pytest.mark.tools if "--compile" in change.options else pytest.mark.library
    )  # a compiler is a tool
    return pytest.param(name, change, id=f"{name} {change.options}", marks=suite)


@pytest.mark.parametrize(("name", "change"), [case(*change) for change in CHANGES])
def test_a_change_refutes_what_the_lesson_says(result: Result, name: str, change: Change) -> None:
    run = result(name, "--repeat", "1", *shlex.split(change.options))
    if run["state"] == "succeeded" and set(run["verdicts"].values()) == {"NOT TESTABLE HERE"}:
        pytest.skip("this box lacks what the change needs: " + run["claims"][0]["why"])

    refuted = {
        claim["key"]
        for claim in run["claims"]
        if claim["verdict"] == "REFUTED" and claim["measured"]
    }
    missing = [claim for claim in run["claims"] if claim["verdict"] == "NOT TESTABLE HERE"]
    untestable = {claim["key"] for claim in missing if not claim["why"].startswith(CLAIMED_FOR)}
    assert refuted - BY_CHANCE == set(change.refutes) - untestable
    assert run["state"] == "succeeded"
    if name == "curve-fit":
        ends = [series["last"] for series in run["series"] if series["name"] == "intercept"]
        assert ends == pytest.approx([3.0] * 5, abs=INTERCEPTS[change.options])


def test_every_scenario_says_of_some_change_what_it_refutes() -> None:
    assert {found.id for found in catalog.load()} == {
        name for name, change in CHANGES if change.refutes
    }
