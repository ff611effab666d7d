"""The forms of all scenarios as the user left them, and the orders of runs made from them."""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from tuilab.catalogue.scenario import Scenario, Value
from tuilab.tui.state import command_line
from tuilab.tui.state.draft import GUESS, Draft, spelt
from tuilab.tui.state.session import Session

if TYPE_CHECKING:
    from tuilab.engine.messages import RunOrder


class Drafts:
    """A draft for each scenario that the user has visited."""

    def __init__(self) -> None:
        self._drafts: dict[str, Draft] = {}  # by the path of the scenario
        self._asked_paths: set[str] = set()  # of scenarios whose prediction was asked for

    def of(self, scenario: Scenario) -> Draft:
        """Return the draft of a scenario, which is created at the first call.

        If the file of the scenario was read again, the typed texts stay.
        """
        draft = self._drafts.setdefault(scenario.path, Draft(scenario))
        if draft.scenario is not scenario:  # its file was read again
            draft = replace(draft, scenario=scenario)
            self._drafts[scenario.path] = draft
        return draft

    def what_is_wrong(self, draft: Draft | None) -> str:
        """Return which fields of a form have wrong values, or nothing."""
        if draft is None or draft.scenario.error:
            return ""
        names = [draft.fields[key].name for key in draft.problems]
        if not names:
            return ""
        return f"✗ check {', '.join(names)}"

    def has_to_ask(self, draft: Draft) -> bool:
        """Return whether to ask for a prediction: the lesson is new, and there is none yet."""
        if GUESS not in draft.fields or draft.problems:
            return False
        if draft.scenario.path in self._asked_paths or draft.text(GUESS).strip():
            return False
        from tuilab.runs import lesson_score  # imported here: the first picture does not need it

        return draft.scenario.id not in lesson_score.read()

    def note_asked(self, draft: Draft) -> None:
        """Note that the prediction of a scenario was asked for."""
        self._asked_paths.add(draft.scenario.path)


def fill(draft: Draft, values: Mapping[str, Value], *, is_quick: bool) -> None:
    """Put the values of a run into a draft, for the parameters that the scenario still has."""
    draft.clear()
    draft.is_quick = is_quick
    for param in draft.scenario.params:
        if param.name not in values:
            continue
        value = values[param.name]
        if value != draft.standard(param):
            draft.type(param.name, spelt(param, value))


def order_of(draft: Draft, session: Session) -> "RunOrder":
    """Return the order of a draft. Raise UsageError if it has a wrong value."""
    argv = command_line.run_words(draft, session.root, session.folders)[1:]  # without `tuilab`
    return draft.order(session.root, argv)


def orders_of_topic(
    scenarios: Sequence[Scenario], command: str, session: Session
) -> "list[RunOrder]":
    """Return the orders of all usable scenarios of a topic, with their defaults.

    `command` is the command line that does the same; it is recorded with the runs.
    """
    from tuilab.engine import launch

    argv = shlex.split(command)[1:]  # without `tuilab`
    orders = []
    for scenario in scenarios:
        if not scenario.error:
            orders.append(launch.order(scenario, {}, root=session.root, argv=argv))
    return orders
