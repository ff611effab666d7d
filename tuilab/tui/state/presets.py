"""The presets of a form: its defaults, what the lesson says to try next, and earlier runs."""

import shlex
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from tuilab.catalogue.params import default_overrides, has_gpus, option_of, parse
from tuilab.catalogue.scenario import Param, Scenario
from tuilab.catalogue.stated_claims import changes_of
from tuilab.errors import UsageError
from tuilab.runs import store
from tuilab.runs.past_runs import PastRun
from tuilab.tui.state.draft import BUDGET, REPEAT, TIMEOUT, Draft, is_option, spelt

if TYPE_CHECKING:
    from tuilab.record.events import RunStarted

_MAX_PRESETS = 12


class Preset(NamedTuple):
    """Named values for a form, by field."""

    name: str
    typed: dict[str, str]
    is_quick: bool = False
    keeps_device: bool = False  # a lesson says what to try, but not on which device

    def fill(self, draft: Draft) -> None:
        """Put the values into a draft. A value that is the default is left out."""
        devices = {}
        if self.keeps_device:
            for key, text in draft.typed.items():
                if has_gpus(draft.fields[key]):
                    devices[key] = text
        draft.clear()
        draft.typed |= devices
        draft.is_quick = self.is_quick
        for key, param in draft.fields.items():
            if key not in self.typed:
                continue
            text = self.typed[key]
            if is_option(key) or text != spelt(param, draft.standard(param)):
                draft.type(key, text)


DEFAULTS = Preset("defaults", {})


def presets(scenario: Scenario, runs: Sequence[PastRun] = ()) -> list[Preset]:
    """Return the defaults, the changes of the lesson, and the values of earlier runs.

    Of presets with the same values, the first is returned, in the place of the last.
    """
    candidates = [DEFAULTS, *try_next(scenario)]
    for run in runs:
        preset = of_run(run, scenario)
        if preset:
            candidates.append(preset)
    first_by_values = {}
    for preset in reversed(candidates):
        values = tuple(preset.typed.items()), preset.is_quick
        first_by_values[values] = preset  # replaces a later preset, and keeps its place
    different_presets = list(first_by_values.values())
    different_presets.reverse()
    return different_presets[:_MAX_PRESETS]


def try_next(scenario: Scenario) -> list[Preset]:
    """Return the changes that the lesson says to try, if they are options of this scenario."""
    options = []
    for change in changes_of(scenario.sections.get("Try next", "")):
        typed = _read_options(scenario, change.options)
        if typed:
            options.append(Preset(change.options, typed, keeps_device=True))
    return options


def of_run(past_run: PastRun, scenario: Scenario) -> Preset | None:
    """Return the values of an earlier run.

    Return None if it had only defaults, or is of another scenario.
    """
    run = past_run.run
    if run is None or run.scenario != scenario.id:
        return None
    typed = dict(past_run.changes) | _device_of(run, scenario)
    if run.budget_s:
        typed[BUDGET] = f"{run.budget_s:g}s"
    elif run.repeats != Draft(scenario, run.quick).fields[REPEAT].default:
        typed[REPEAT] = str(run.repeats)
    if run.timeout_s:
        typed[TIMEOUT] = f"{run.timeout_s:g}s"
    if not typed and not run.quick:
        return None
    return Preset(f"run {store.short_id(past_run.run_dir.name)}", typed, run.quick)


def _device_of(run: "RunStarted", scenario: Scenario) -> dict[str, str]:
    """Return the device of a run, if the default device is set to another one meanwhile."""
    devices = {}
    for name in default_overrides(scenario.params):
        if name in run.params:
            devices[name] = str(run.params[name])
    return devices


def _read_options(scenario: Scenario, text: str) -> dict[str, str]:
    """Return the values of the options in a text; nothing if one is not of this scenario."""
    params = {option_of(param.name).removeprefix("--"): param for param in scenario.params}
    typed: dict[str, str] = {}
    try:
        words = shlex.split(text)
        while words:
            typed |= _take_option(params, words)
    except (ValueError, KeyError, IndexError, UsageError):
        return {}
    return typed


def _take_option(params: Mapping[str, Param], words: list[str]) -> dict[str, str]:
    """Remove one option with its value from the front of a command line, and return it.

    Raise KeyError, IndexError, ValueError or UsageError if it is no option with a valid value.
    """
    option, equals_sign, value = words.pop(0).removeprefix("--").partition("=")
    is_off = option.startswith("no-") and option not in params
    if is_off:
        option = option.removeprefix("no-")
    param = params[option]
    if not equals_sign:
        value = _take_value(param, words, is_off=is_off)
    parse(param, value)
    return {param.name: value}


def _take_value(param: Param, words: list[str], *, is_off: bool) -> str:
    """Return the value of an option without `=`: that of a flag, else the next word, removed.

    Raise IndexError if no word is left.
    """
    if param.type == "bool":
        if is_off:
            return "false"
        if not words or words[0].startswith("--"):
            return "true"
    return words.pop(0)
