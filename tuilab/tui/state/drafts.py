"""The forms of all scenarios as the user left them, and what is run with them."""

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
    """A draft for each scenario that the user has come to."""

    def __init__(self) -> None:
        self._drafts: dict[str, Draft] = {}  # by the path of the scenario
        self._asked: set[str] = set()  # scenarios whose prediction was asked for

    def of(self, scenario: Scenario) -> Draft:
        """Return what the form of a scenario holds."""
        draft = self._drafts.setdefault(scenario.path, Draft(scenario))
        if draft.scenario is not scenario:  # its file was read again
            draft = self._drafts[scenario.path] = replace(draft, scenario=scenario)
        return draft

    def what_is_wrong(self, draft: Draft | None) -> str:
        """Return which fields of a form cannot be used, or nothing."""
        wrong = (
            [draft.fields[key].name for key in draft.problems]
            if draft and not draft.scenario.error
            else []
        )
        return f"✗ check {', '.join(wrong)}" if wrong else ""

    def has_to_ask(self, draft: Draft) -> bool:
        """Say whether this lesson was never done, and nobody has said what it may bring."""
        if GUESS not in draft.fields or draft.problems or draft.scenario.path in self._asked:
            return False
        from tuilab.runs import lesson_score  # the first picture does not wait for what reads it

        return not draft.text(GUESS).strip() and draft.scenario.id not in lesson_score.read()

    def note_asked(self, draft: Draft) -> None:
        """Note that nobody is to be asked again what a scenario may bring."""
        self._asked.add(draft.scenario.path)


def fill(draft: Draft, values: Mapping[str, Value], *, is_quick: bool) -> None:
    """Put the values of a run into a draft, or as many of them as the scenario still has."""
    draft.clear()
    draft.is_quick = is_quick
    for param in draft.scenario.params:
        if param.name in values and values[param.name] != draft.standard(param):
            draft.type(param.name, spelt(param, values[param.name]))


def order_of(draft: Draft, desk: Session) -> "RunOrder":
    """Return what is run of a draft; UsageError while it holds something that cannot be used."""
    return draft.order(desk.root, command_line.run_words(draft, desk.root, desk.folders)[1:])


def orders_of_topic(scenarios: Sequence[Scenario], command: str, desk: Session) -> "list[RunOrder]":
    """Return what is run of a topic: every scenario that can be, with its defaults."""
    from tuilab.engine import launch

    argv = shlex.split(command)[1:]
    return [
        launch.order(scenario, {}, root=desk.root, argv=argv)
        for scenario in scenarios
        if not scenario.error
    ]
