"""The next steps after a run: the words of its lesson, and the forms that keys open."""

from dataclasses import dataclass

from tuilab.catalogue.params import parse
from tuilab.catalogue.scenario import Scenario, Value
from tuilab.record.summary import RunSummary
from tuilab.tui.state.presets import Preset, try_next

_MAX_OPTIONS = 3  # with a key


@dataclass(frozen=True)
class NextSteps:
    """The section "Try next" of a lesson, and its options that have a key."""

    scenario: Scenario | None = None
    options: tuple[Preset, ...] = ()

    @property
    def text(self) -> str:
        """The text of the section; empty without a scenario or without that section."""
        if self.scenario is None:
            return ""
        return self.scenario.sections.get("Try next", "")

    def form(self, number: int) -> tuple[str, dict[str, Value]] | None:
        """Return the path of the scenario and the values of an option, counted from 1.

        Return None if there is no such option.
        """
        if self.scenario is None or number > len(self.options):
            return None
        typed = self.options[number - 1].typed
        values = {}
        for param in self.scenario.params:
            if param.name in typed:
                values[param.name] = parse(param, typed[param.name])
        return self.scenario.path, values


def next_steps(summary: RunSummary, scenario: Scenario | None) -> NextSteps:
    """Return the next steps after a run of a scenario, without options that the run had."""
    if scenario is None:
        return NextSteps()
    options = []
    for option in try_next(scenario):
        if not _has_run(option, scenario, summary):
            options.append(option)
    return NextSteps(scenario, tuple(options[:_MAX_OPTIONS]))


def _has_run(option: Preset, scenario: Scenario, summary: RunSummary) -> bool:
    """Return whether the run had all values of an option already."""
    params = {param.name: param for param in scenario.params}
    values = summary.run.params if summary.run else {}
    for name, text in option.typed.items():
        if name not in values or parse(params[name], text) != values[name]:
            return False
    return True
