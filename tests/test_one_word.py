"""One word for one thing: states and verdicts are spelt in one place, and every view has the same groups, marks and order."""

import ast
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import tuilab
from tuilab.cli.schemas import schema_of
from tuilab.drawings.glyphs import VERDICT_MARKS, Style
from tuilab.record.events import StateChanged
from tuilab.record.folding.fold import fold
from tuilab.record.states import BROKEN_STATES, FINAL_STATES, RUNNING_STATES, RunState
from tuilab.record.verdicts import FAILED, NOT_JUDGED, QUEUED, RUNNING, WORST_FIRST, Verdict
from tuilab.reports.pages import mark_and_kind
from tuilab.runs.entry import RunEntry
from tuilab.tui.looks import marks

HOUSE = Path(tuilab.__file__).parent
SPELT = {"record/states.py", "record/verdicts.py"}
OTHER_THINGS = {
    ("doctor/ask_all.py", "stopping"): "a module of checks",
    ("drawings/gpu_strips.py", "lost"): "a GPU that no longer answers",
    ("probes/gpu/own_process.py", "lost"): "a GPU that no longer answers",
    ("tui/screens/command.py", "stopped"): "how a subcommand ended",
    ("tui/widgets/gauges.py", "lost"): "a GPU that no longer answers",
    ("tui/widgets/lab/catalogue.py", "failed"): "what people read for FAILED",
    ("tui/widgets/lab/catalogue.py", "running"): "what people read for a run that goes on",
    ("tui/widgets/lab/catalogue.py", "queued"): "what people read for a run that waits",
    ("scrub/secrecy.py", "failed"): "a value that is no secret",
}


def words(path: Path) -> Iterator[str]:
    """Yield the texts of a module that are a state or a verdict, and nothing more."""
    known = {*RunState, *Verdict, FAILED, NOT_JUDGED}
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value in known:
            yield node.value


def test_states_and_verdicts_are_spelt_where_they_are_defined_alone() -> None:
    modules = {path.relative_to(HOUSE).as_posix(): path for path in HOUSE.rglob("*.py")}

    assert {
        (name, word) for name in modules.keys() - SPELT for word in words(modules[name])
    } == OTHER_THINGS.keys()


def test_every_state_that_is_recorded_is_of_a_run_that_goes_on_or_is_over() -> None:
    assert not RUNNING_STATES & FINAL_STATES
    assert {*RunState} == RUNNING_STATES | FINAL_STATES | {RunState.LOST, RunState.UNREADABLE}
    assert {*RunState} == RUNNING_STATES | BROKEN_STATES | {RunState.STOPPED, RunState.SUCCEEDED}


def test_a_state_that_we_do_not_know_is_read_and_not_taken_for_an_end() -> None:
    summary = fold([("supervisor", StateChanged(state="pondering"))])

    assert (summary.state, summary.is_over) == ("pondering", False)
    assert marks.state_words(summary.state).plain == "! pondering"


def test_only_a_run_with_an_end_in_its_record_is_over() -> None:
    states = ["pondering", "", *RunState]

    assert {
        state for state in states if RunEntry("a run", "tour", state=state).is_over
    } == FINAL_STATES


def test_every_verdict_has_a_mark_and_a_place_among_the_worst() -> None:
    assert sorted(WORST_FIRST) == sorted(Verdict)
    assert VERDICT_MARKS.keys() == {*Verdict, FAILED}


@pytest.mark.parametrize("verdict", VERDICT_MARKS)
def test_a_verdict_has_one_mark_in_text_reports_and_screens(verdict: str) -> None:
    assert Style().mark(verdict) == mark_and_kind(verdict)[0] == marks.mark(verdict).plain
    assert marks.verdict_words(verdict).plain == f"{Style().mark(verdict)} {verdict.lower()}"


def test_a_word_that_is_no_verdict_has_no_mark_of_one() -> None:
    assert (marks.mark("").plain, marks.mark("MAYBE").plain, marks.mark("pending").plain) == (
        " ",
        " ",
        "…",
    )
    assert (Style().mark("MAYBE"), mark_and_kind("MAYBE")) == ("…", ("…", "open"))
    assert marks.mark(RUNNING).plain == "●"
    assert marks.mark(QUEUED).plain == "○"


def enums(part: Any) -> Iterator[set[str | None]]:
    """Yield every set of words that a schema allows."""
    if isinstance(part, dict) and isinstance(part.get("enum"), list):
        yield set(part["enum"])
    elif isinstance(part, dict | list):
        for inner in part.values() if isinstance(part, dict) else part:
            yield from enums(inner)


def test_the_schema_of_reports_allows_every_state_and_verdict() -> None:
    allowed = [*enums(json.loads(schema_of("tuilab.report/2")))]

    assert {*RunState} in allowed
    assert {*Verdict} in allowed
