"""Where the values of a form can come from: what the lesson says to try next, and earlier runs."""

import shlex
from collections.abc import Sequence
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

_MOST = 12


class Preset(NamedTuple):
    """Values for a form, by field, and what they are called."""

    name: str
    typed: dict[str, str]
    is_quick: bool = False
    keeps_device: bool = False  # it says what to try, not where

    def fill(self, draft: Draft) -> None:
        """Put the values in a draft."""
        devices = {
            key: text
            for key, text in draft.typed.items()
            if self.keeps_device and has_gpus(draft.fields[key])
        }
        draft.clear()
        draft.typed |= devices
        draft.is_quick = self.is_quick
        for key, param in draft.fields.items():
            if key in self.typed and (
                is_option(key) or self.typed[key] != spelt(param, draft.standard(param))
            ):
                draft.type(key, self.typed[key])


DEFAULTS = Preset("defaults", {})


def presets(scenario: Scenario, runs: Sequence[PastRun] = ()) -> list[Preset]:
    """Return what a form can start from: the defaults, the lesson's changes, the values of earlier runs."""
    found = [
        DEFAULTS,
        *try_next(scenario),
        *(preset for run in runs if (preset := of_run(run, scenario))),
    ]
    unlike = {
        (tuple(preset.typed.items()), preset.is_quick): preset for preset in reversed(found)
    }  # the first of equals stays
    return list(reversed(unlike.values()))[:_MOST]


def try_next(scenario: Scenario) -> list[Preset]:
    """Return the changes that the lesson says to try, as far as they are options of this scenario."""
    texts = [change.options for change in changes_of(scenario.sections.get("Try next", ""))]
    return [
        Preset(text, typed, keeps_device=True)
        for text in texts
        if (typed := _read_options(scenario, text))
    ]


def of_run(run: PastRun, scenario: Scenario) -> Preset | None:
    """Return the values of an earlier run; None when it had nothing but defaults or is of another scenario."""
    if run.run is None or run.run.scenario != scenario.id:
        return None
    typed = dict(run.changes) | _device_of(run.run, scenario)
    if run.run.budget_s:
        typed[BUDGET] = f"{run.run.budget_s:g}s"
    elif run.run.repeats != Draft(scenario, run.run.quick).fields[REPEAT].default:
        typed[REPEAT] = str(run.run.repeats)
    if run.run.timeout_s:
        typed[TIMEOUT] = f"{run.run.timeout_s:g}s"
    preset = Preset(f"run {store.short_id(run.run_dir.name)}", typed, run.run.quick)
    return preset if typed or run.run.quick else None


def _device_of(run: "RunStarted", scenario: Scenario) -> dict[str, str]:
    """Return the device of a run, where the user has set another one for good since."""
    return {
        name: str(run.params[name])
        for name in default_overrides(scenario.params)
        if name in run.params
    }


def _read_options(scenario: Scenario, text: str) -> dict[str, str]:
    """Return the values that options spell; none when one of them is not of this scenario."""
    known = {option_of(param.name).removeprefix("--"): param for param in scenario.params}
    typed: dict[str, str] = {}
    try:
        words = shlex.split(text)
        while words:
            typed |= _take_option(known, words)
    except (ValueError, KeyError, IndexError, UsageError):
        return {}
    return typed


def _take_option(known: dict[str, Param], words: list[str]) -> dict[str, str]:
    """Take one option with its value from the front of a command line."""
    option, has_value, value = words.pop(0).removeprefix("--").partition("=")
    is_off = option.startswith("no-") and option not in known
    param = known[option.removeprefix("no-") if is_off else option]
    if not has_value:
        is_flag = param.type == "bool" and (not words or words[0].startswith("--") or is_off)
        value = ("false" if is_off else "true") if is_flag else words.pop(0)
    parse(param, value)
    return {param.name: value}
