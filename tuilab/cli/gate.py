"""What `compare --fail-on` asks for: a gate that a change has to pass, as in CI."""

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import click

from tuilab.cli.options import ParamType
from tuilab.errors import UsageError
from tuilab.record.states import RunState
from tuilab.reports.subject import Subject
from tuilab.runs.comparing.call_times import times_of_processes
from tuilab.runs.comparing.comparison import Comparison, regressions, slower, verdict_words
from tuilab.runs.comparing.differences import facts_of
from tuilab.text import plural, show

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
            self.fail(f"'{show(value, 60)}' is none of regression, difference and slower:5%", param, ctx)
        return Gate("slower", float(found[1]) / 100)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[Any]:
        from click.shell_completion import CompletionItem

        return [CompletionItem(word) for word in ("regression", "difference", "slower:5%") if word.startswith(incomplete)]


def stopped_by(gate: Gate, looks: Sequence[Subject], result: Comparison) -> list[str]:
    """Return a sentence for each thing that a gate stops."""
    first, *others = looks
    names = f"{plural(len(looks), 'run')} of {' and '.join(dict.fromkeys(result.names))}"
    ended = [
        f"run {at} {look.state}, and the first {first.state}"
        for at, look in enumerate(others, 2)
        if look.state != first.state and (gate.kind == "difference" or first.state == RunState.SUCCEEDED)
    ]
    if gate.kind == "slower":
        _check_times(looks)
        worse = slower(result, gate.share)
    elif gate.kind == "difference":
        pairs = [pair for pair in result.claims if verdict_words(pair) or None in pair.sides]
        worse = [f"{pair.text}: {verdict_words(pair) or 'not claimed in every run'}" for pair in pairs]
    else:
        worse = regressions(result)
    return [f"{names}: {sentence}" for sentence in [*ended, *worse]]


def _check_times(looks: Sequence[Subject]) -> None:
    """Refuse to hold times against each other that say nothing about a change."""
    boxes = []
    for at, look in enumerate(looks, 1):
        facts, times = facts_of(look.summary), times_of_processes(look.summary)
        if at == 1 and not times:
            raise UsageError(f"--fail-on slower: {show(look.id)} timed nothing; leave it out")
        if alone := [arm for arm, found in times.items() if len(found) < 2]:
            raise UsageError(
                f"--fail-on slower: {show(look.id)} timed {show(alone[0], 60)} in one process, and how much processes differ "
                "is not known; run it with --repeat 5"
            )
        boxes.append([facts.get(name, "") for name in _BOX])
        if other := next((pair for pair in zip(boxes[0], boxes[-1], strict=True) if pair[0] != pair[1]), None):
            raise UsageError(
                f"--fail-on slower: {show(look.id)} ran on other hardware ({show(other[1], 60)}, not {show(other[0], 60)}); "
                "compare runs of one box"
            )
