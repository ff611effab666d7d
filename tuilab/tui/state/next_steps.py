"""What there is to try after a run: what its lesson says, and the forms that a key opens."""

from dataclasses import dataclass

from tuilab.catalogue.params import parse
from tuilab.catalogue.scenario import Scenario, Value
from tuilab.record.summary import RunSummary
from tuilab.tui.state.presets import Preset, try_next

_MOST = 3  # that have a key


@dataclass(frozen=True)
class NextSteps:
    """The words of a lesson, and those of its options that a key opens, as it spells them."""

    scenario: Scenario | None = None
    options: tuple[Preset, ...] = ()

    @property
    def text(self) -> str:
        return self.scenario.sections.get("Try next", "") if self.scenario else ""

    def form(self, number: int) -> tuple[str, dict[str, Value]] | None:
        """Return the path of the scenario and the values of the option of a number, from 1 on; None when there is none."""
        if self.scenario is None or number > len(self.options):
            return None
        typed = self.options[number - 1].typed
        return self.scenario.path, {
            p.name: parse(p, typed[p.name]) for p in self.scenario.params if p.name in typed
        }


def next_steps(summary: RunSummary, scenario: Scenario | None) -> NextSteps:
    """Return what there is to try after a run of a scenario."""
    if scenario is None:
        return NextSteps()
    other = [
        option for option in try_next(scenario) if not _is_as_it_ran(option, scenario, summary)
    ]
    return NextSteps(scenario, tuple(other[:_MOST]))


def _is_as_it_ran(option: Preset, scenario: Scenario, summary: RunSummary) -> bool:
    """Say whether the run had all values of an option already."""
    params = {param.name: param for param in scenario.params}
    ran = summary.run.params if summary.run else {}
    return all(
        name in ran and parse(params[name], text) == ran[name]
        for name, text in option.typed.items()
    )
