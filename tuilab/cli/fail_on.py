"""Check the gates of `compare --fail-on`, which a change has to pass, for example in CI.

A function that refuses a comparison raises UsageError.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, NoReturn

import click

from tuilab.cli.options import ParamType
from tuilab.defaults import REPEATS
from tuilab.errors import UsageError
from tuilab.record.states import RunState
from tuilab.reports.reported_run import ReportedRun
from tuilab.reports.step_times import (
    LEAST,
    about_others,
    is_watched,
    shifts_of_steps,
    times_of_steps,
)
from tuilab.runs.comparing.call_times import times_of_processes
from tuilab.runs.comparing.claim_pairs import Shift
from tuilab.runs.comparing.comparison import Comparison, difference_words, regressions, slowdowns
from tuilab.runs.comparing.differences import facts_of
from tuilab.text.display import plural, show

_SLOWER = re.compile(r"slower:([0-9]{1,4}(?:\.[0-9]{1,3})?)%?")
_HARDWARE = (
    ("environment", "model"),
    ("environment", "usable cores"),
    ("environment", "GPU of the run"),
)


class Gate(NamedTuple):
    """A kind of change that must not happen: `regression`, `difference` or `slower`."""

    kind: str
    share: float = 0.0  # of `slower`: the share by which a call may take longer

    @property
    def name(self) -> str:
        if self.kind == "slower":
            return f"{self.kind}:{100 * self.share:g}%"
        return self.kind


class GateType(ParamType):
    """A gate, as it is written on the command line."""

    name = "gate"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Gate:
        if isinstance(value, Gate):
            return value
        if value in ("regression", "difference"):
            return Gate(value)
        match = _SLOWER.fullmatch(value)
        if match is None:
            gates = "regression, difference or slower:5%"
            self.fail(f"'{show(value, 60)}' is not a gate; use {gates}", param, ctx)
        return Gate("slower", float(match[1]) / 100)

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[Any]:
        from click.shell_completion import CompletionItem

        gates = ("regression", "difference", "slower:5%")
        return [CompletionItem(gate) for gate in gates if gate.startswith(incomplete)]


def find_failures(gate: Gate, runs: Sequence[ReportedRun], comparison: Comparison) -> list[str]:
    """Return a sentence for each reason why compared runs do not pass a gate; none if they do.

    The gate `slower` raises UsageError if the times of the runs cannot be compared.
    """
    sentences = _find_worse_ends(gate, runs)
    if gate.kind == "slower" and is_watched(runs[0]):
        sentences += _find_slower_steps(gate, runs)
    elif gate.kind == "slower":
        _check_call_times(runs)
        sentences += slowdowns(comparison, gate.share)
    elif gate.kind == "difference":
        sentences += _find_differences(comparison)
    else:
        sentences += regressions(comparison)
    names = f"{plural(len(runs), 'run')} of {' and '.join(dict.fromkeys(comparison.names))}"
    return [f"{names}: {sentence}" for sentence in sentences]


def _find_worse_ends(gate: Gate, runs: Sequence[ReportedRun]) -> list[str]:
    """Return a sentence for each later run that ended in another state than the first run.

    If the first run did not succeed, only the gate `difference` minds.
    """
    first, *later_runs = runs
    if gate.kind != "difference" and first.state != RunState.SUCCEEDED:
        return []
    sentences = []
    for number, run in enumerate(later_runs, 2):
        if run.state != first.state:
            sentences.append(f"run {number} {run.state}, the first run {first.state}")
    return sentences


def _find_differences(comparison: Comparison) -> list[str]:
    """Return a sentence for each claim that differs between the runs, or that a run lacks.

    A claim differs if its verdict, its estimate or its exact value does.
    """
    sentences = []
    for pair in comparison.claims:
        change = difference_words(pair)
        if change:
            sentences.append(f"{pair.text}: {change}")
        elif None in pair.sides:
            sentences.append(f"{pair.text}: not claimed in every run")
    return sentences


# ---- steps of watched commands


def find_undecided(gate: Gate, runs: Sequence[ReportedRun]) -> list[str]:
    """Return a sentence for each process of a watched command that may fail a gate, but not surely.

    Only the gate `slower` leaves something undecided. Call `find_failures` first: it refuses runs
    whose steps cannot be compared.
    """
    if gate.kind != "slower" or not is_watched(runs[0]):
        return []
    sentences = []
    for step in _list_step_shifts(runs):
        if step.shift.low <= 1 + gate.share < step.shift.high:
            disturbances = _describe_disturbances(step, runs)
            reason = f", as {disturbances}" if disturbances else ""
            finding = f"{step.takes_as_long}: not decided{reason}"
            sentences.append(f"{finding}; compare both commands with `tuilab ab`")
    return sentences


def _find_slower_steps(gate: Gate, runs: Sequence[ReportedRun]) -> list[str]:
    """Return a sentence for each process whose steps surely take longer than the gate allows."""
    _check_steps(runs)
    _check_hardware(runs)
    sentences = []
    for step in _list_step_shifts(runs):
        if step.shift.low > 1 + gate.share:
            disturbances = _describe_disturbances(step, runs)
            addition = f"; {disturbances}" if disturbances else ""
            sentences.append(f"{step.takes_as_long}{addition}")
    return sentences


class _StepShift(NamedTuple):
    """How much longer a step of one process takes in a later run than in the first run."""

    run_number: int  # from 2
    process: str  # empty if the command has only one
    shift: Shift

    @property
    def takes_as_long(self) -> str:
        name = f"a step of {show(self.process, 60)}" if self.process else "a step"
        return f"run {self.run_number}: {name} takes {self.shift.words} as long"


def _list_step_shifts(runs: Sequence[ReportedRun]) -> Iterator[_StepShift]:
    """Yield the shifts of all processes that have one, run after run for each process."""
    times = [times_of_steps(run) for run in runs]
    for process in times[0]:
        for number, shift in enumerate(shifts_of_steps(runs, times, process), 2):
            if shift:
                yield _StepShift(number, process, shift)


def _describe_disturbances(step: _StepShift, runs: Sequence[ReportedRun]) -> str:
    """Return what disturbed the first or the later run, or an empty string."""
    return about_others({1: runs[0], step.run_number: runs[step.run_number - 1]})


# ---- checks that times can be compared


def _check_steps(runs: Sequence[ReportedRun]) -> None:
    """Refuse to compare the steps of commands of different kinds, or of too few steps."""
    processes = set(times_of_steps(runs[0]))
    for run in runs:
        if not is_watched(run):
            _refuse(
                f"{show(run.id)} is not a run of `tuilab exec`, but the first one is; "
                "compare runs of the same kind"
            )
        times = times_of_steps(run)
        if not times:
            reason = run.summary.unavailable.get("steps")
            behind = f" ({show(reason, 200)})" if reason else ""
            _refuse(f"no step of {show(run.id)} was timed{behind}")
        if set(times) != processes:
            _refuse(
                f"{show(run.id)} has steps of other processes than the first run; "
                "compare runs of the same command"
            )
        for steps in times.values():
            if steps.count < LEAST:
                _refuse(
                    f"{show(run.id)} has {plural(steps.count, 'step')} after its first ones, "
                    f"but {LEAST} are needed; let it run for more steps"
                )


def _check_call_times(runs: Sequence[ReportedRun]) -> None:
    """Refuse to compare call times that say nothing about a change."""
    _check_hardware(runs)
    for number, run in enumerate(runs, 1):
        times = times_of_processes(run.summary)
        if number == 1 and not times:
            _refuse(f"{show(run.id)} has no timed calls; drop --fail-on slower")
        for arm, process_times in times.items():
            if len(process_times) < 2:
                _refuse(
                    f"{show(run.id)} timed {show(arm, 60)} in only one process, so the variation "
                    f"between processes is unknown; run it again with --repeat {REPEATS}"
                )


def _check_hardware(runs: Sequence[ReportedRun]) -> None:
    """Refuse to compare times that were measured on different hardware."""
    first_facts = facts_of(runs[0].summary)
    for run in runs:
        facts = facts_of(run.summary)
        for name in _HARDWARE:
            first_fact = first_facts.get(name, "")
            fact = facts.get(name, "")
            if fact != first_fact:
                _refuse(
                    f"{show(run.id)} ran on other hardware ({show(fact, 60)}, "
                    f"not {show(first_fact, 60)}); compare runs of the same machine"
                )


def _refuse(reason: str) -> NoReturn:
    raise UsageError(f"--fail-on slower: {reason}")
