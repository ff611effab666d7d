"""What `compare --fail-on` asks for: a gate that a change has to pass, as in CI."""

import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

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
from tuilab.runs.comparing.comparison import Comparison, regressions, slowdowns, verdict_words
from tuilab.runs.comparing.differences import facts_of
from tuilab.text.display import plural, show

_SLOWER = re.compile(r"slower:(\d{1,4}(?:\.\d{1,3})?)%?")
_BOX = ("environment", "model"), ("environment", "usable cores"), ("environment", "GPU of the run")


class Gate(NamedTuple):
    """One thing that must not be."""

    kind: str
    share: float = 0.0  # by which a call may be slower

    @property
    def name(self) -> str:
        return f"{self.kind}:{100 * self.share:g}%" if self.kind == "slower" else self.kind


class GateType(ParamType):
    """A gate, as it is written on the line."""

    name = "gate"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Gate:
        if isinstance(value, Gate):
            return value
        if value in ("regression", "difference"):
            return Gate(value)
        if not (found := _SLOWER.fullmatch(value)):
            self.fail(
                f"'{show(value, 60)}' is not a gate; use regression, difference or slower:5%",
                param,
                ctx,
            )
        return Gate("slower", float(found[1]) / 100)

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[Any]:
        from click.shell_completion import CompletionItem

        return [
            CompletionItem(word)
            for word in ("regression", "difference", "slower:5%")
            if word.startswith(incomplete)
        ]


def stopped_by(gate: Gate, looks: Sequence[ReportedRun], result: Comparison) -> list[str]:
    """Return a sentence for each thing that a gate stops."""
    first, *others = looks
    names = f"{plural(len(looks), 'run')} of {' and '.join(dict.fromkeys(result.names))}"
    ended = [
        f"run {at} {look.state}, the first run {first.state}"
        for at, look in enumerate(others, 2)
        if look.state != first.state
        and (gate.kind == "difference" or first.state == RunState.SUCCEEDED)
    ]
    if gate.kind == "slower" and is_watched(first):
        worse = _slower_steps(gate, looks)
    elif gate.kind == "slower":
        _check_times(looks)
        worse = slowdowns(result, gate.share)
    elif gate.kind == "difference":
        pairs = [pair for pair in result.claims if verdict_words(pair) or None in pair.sides]
        worse = [
            f"{pair.text}: {verdict_words(pair) or 'not claimed in every run'}" for pair in pairs
        ]
    else:
        worse = regressions(result)
    return [f"{names}: {sentence}" for sentence in [*ended, *worse]]


def undecided_by(gate: Gate, looks: Sequence[ReportedRun]) -> list[str]:
    """Return a sentence for each process of a watched command that may be slower than a gate allows, but not surely."""
    if gate.kind != "slower" or not is_watched(looks[0]):
        return []
    sentences = []
    for name, at, shift in _step_shifts(looks):
        if shift.low <= 1 + gate.share < shift.high:
            others = about_others({1: looks[0], at: looks[at - 1]})
            reason = f", as {others}" if others else ""
            told = f"run {at}: {name} takes {shift.words} as long: not decided{reason}"
            sentences.append(f"{told}; compare both commands with `tuilab ab`")
    return sentences


def _slower_steps(gate: Gate, looks: Sequence[ReportedRun]) -> list[str]:
    """Return a sentence for each process of a watched command whose steps surely take longer by more than a share."""
    _check_steps(looks)
    _check_box(looks)
    sentences = []
    for name, at, shift in _step_shifts(looks):
        if shift.low > 1 + gate.share:
            others = about_others({1: looks[0], at: looks[at - 1]})
            behind = f"; {others}" if others else ""
            sentences.append(f"run {at}: {name} takes {shift.words} as long{behind}")
    return sentences


def _step_shifts(looks: Sequence[ReportedRun]) -> Iterator[tuple[str, int, Shift]]:
    """Yield how the steps of later runs differ from those of the first: of which process, of which run, by how much."""
    every = [times_of_steps(look) for look in looks]
    for arm in every[0]:
        for at, shift in enumerate(shifts_of_steps(looks, every, arm), 2):
            if shift:
                yield f"a step of {show(arm, 60)}" if arm else "a step", at, shift


def _check_steps(looks: Sequence[ReportedRun]) -> None:
    """Refuse to hold the steps of commands against each other where there are too few."""
    names = set(times_of_steps(looks[0]))
    for look in looks:
        if not is_watched(look):
            raise UsageError(
                f"--fail-on slower: {show(look.id)} is not a run of `tuilab exec`, but the first one is; "
                "compare runs of the same kind"
            )
        times = times_of_steps(look)
        if not times:
            why = look.summary.unavailable.get("steps")
            raise UsageError(
                f"--fail-on slower: no step of {show(look.id)} was timed{f' ({show(why, 200)})' if why else ''}"
            )
        if set(times) != names:
            raise UsageError(
                f"--fail-on slower: {show(look.id)} has steps of other processes than the first run; "
                "compare runs of the same command"
            )
        if few := [one.count for one in times.values() if one.count < LEAST]:
            raise UsageError(
                f"--fail-on slower: {show(look.id)} has {plural(few[0], 'step')} after its first ones, but {LEAST} are needed; "
                "let it run for more steps"
            )


def _check_times(looks: Sequence[ReportedRun]) -> None:
    """Refuse to hold times against each other that say nothing about a change."""
    _check_box(looks)
    for at, look in enumerate(looks, 1):
        times = times_of_processes(look.summary)
        if at == 1 and not times:
            raise UsageError(
                f"--fail-on slower: {show(look.id)} has no timed calls; drop --fail-on slower"
            )
        if alone := [arm for arm, found in times.items() if len(found) < 2]:
            raise UsageError(
                f"--fail-on slower: {show(look.id)} timed {show(alone[0], 60)} in only one process, so the variation between "
                f"processes is unknown; run it again with --repeat {REPEATS}"
            )


def _check_box(looks: Sequence[ReportedRun]) -> None:
    """Refuse to hold times of other hardware against each other."""
    boxes = []
    for look in looks:
        facts = facts_of(look.summary)
        boxes.append([facts.get(name, "") for name in _BOX])
        if other := next(
            (pair for pair in zip(boxes[0], boxes[-1], strict=True) if pair[0] != pair[1]), None
        ):
            raise UsageError(
                f"--fail-on slower: {show(look.id)} ran on other hardware ({show(other[1], 60)}, not {show(other[0], 60)}); "
                "compare runs of the same machine"
            )
