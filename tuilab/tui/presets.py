"""Where the values of a form can come from: what the lesson says to try next, and earlier runs."""

import re
import shlex
from collections.abc import Sequence
from typing import NamedTuple

from tuilab import store
from tuilab.errors import UsageError
from tuilab.params import parse
from tuilab.scenario import Param, Scenario
from tuilab.tui.draft import Draft
from tuilab.tui.past import PastRun

_CODE = re.compile(r"`(--[^`\n]{1,200})`")
_MOST = 12


class Preset(NamedTuple):
    """Values for a form, and what they are called."""

    name: str
    typed: dict[str, str]
    is_quick: bool = False
    repeat: str = ""
    budget: str = ""

    def fill(self, draft: Draft) -> None:
        """Put the values in a draft."""
        draft.clear()
        draft.is_quick, draft.repeat, draft.budget = self.is_quick, self.repeat, self.budget
        draft.typed.update({param.name: self.typed[param.name] for param in draft.scenario.params if param.name in self.typed})


DEFAULTS = Preset("defaults", {})


def presets(scenario: Scenario, runs: Sequence[PastRun] = ()) -> list[Preset]:
    """Return what a form can start from: the defaults, the lesson's changes, the values of earlier runs."""
    found = [DEFAULTS, *try_next(scenario), *(preset for run in runs if (preset := of_run(run, scenario)))]
    unlike = {(tuple(preset.typed.items()), *preset[2:]): preset for preset in reversed(found)}  # the first of equals stays
    return list(reversed(unlike.values()))[:_MOST]


def try_next(scenario: Scenario) -> list[Preset]:
    """Return the changes that the lesson says to try, as far as they are options of this scenario."""
    texts = _CODE.findall(scenario.sections.get("Try next", ""))
    return [Preset(text, typed) for text in texts if (typed := _read_options(scenario, text))]


def of_run(run: PastRun, scenario: Scenario) -> Preset | None:
    """Return the values of an earlier run; None when it had nothing but defaults or is of another scenario."""
    if run.run is None or run.run.scenario != scenario.id:
        return None
    usual = Draft(scenario, is_quick=run.run.quick).repeat_param.default
    budget = f"{run.run.budget_s:g}s" if run.run.budget_s else ""
    repeat = str(run.run.repeats) if not budget and run.run.repeats != usual else ""
    preset = Preset(f"run {store.short_id(run.run_dir.name)}", run.changes, run.run.quick, repeat, budget)
    return preset if any(preset[1:]) else None


def _read_options(scenario: Scenario, text: str) -> dict[str, str]:
    """Return the values that options spell; none when one of them is not of this scenario."""
    known = {param.name.replace("_", "-"): param for param in scenario.params}
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
