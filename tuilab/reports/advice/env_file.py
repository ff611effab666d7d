"""The recommended settings as a file for a shell, which names the machine that they were measured on."""

import shlex
import time
from collections.abc import Sequence

from tuilab import __version__
from tuilab.catalogue.scenario import RANKS, Scenario
from tuilab.judging.judgement import Judgement
from tuilab.record.timing.clocks import CPU
from tuilab.reports.advice.advised import Advice, Advised, Unused
from tuilab.reports.advice.validity import Facts
from tuilab.runs import command_line
from tuilab.text.display import brief, plural, show
from tuilab.text.words import format_number, size
from tuilab.text.wrapping import wrap

_WIDTH = 110


def env_file(advice: Advice, width: int = _WIDTH) -> str:
    """Return what to source before a program, or before torchrun starts ranks; the reasons are comments, so wide at most."""
    told = {
        "Default kept:": [_stays(one) for one in advice.stays],
        "Not set, because the runs disagree:": [_value(one) for one in advice.conflicts],
        "Runs that do not count:": [_unused(one) for one in advice.unused],
        "Not measured yet on this machine; to measure:": [
            _unknown(*one, advice.ranks) for one in advice.unknown
        ],
    }
    parts = [_head(advice, width), *_settings(advice, width)]
    parts += [_comments(heading, lines, width) for heading, lines in told.items() if lines]
    return "\n\n".join(parts) + "\n"


def scope(ranks: int) -> str:
    """Return for whom settings are."""
    if ranks:
        return f"each of {plural(ranks, 'rank')} that torchrun starts on this machine (--nproc-per-node {ranks})"
    return "one program that has this machine to itself (for the ranks of torchrun: tuilab advise --ranks N)"


def _head(advice: Advice, width: int) -> str:
    day = time.strftime("%Y-%m-%d", time.gmtime())
    lines = [
        f"box.env of {day}, by tuilab {show(__version__)}: settings for {scope(advice.ranks)}."
    ]
    if not advice.settings:
        lines.append(
            "No setting is recommended: no value measurably beat the default on this machine."
        )
        return _comments("", lines, width)
    lines.append(f"Measured on {box_words(advice.facts)}.")
    lines.append(
        "Use: . ./box.env (sh, bash, zsh). If the hardware, the driver or torch has changed, measure again."
    )
    return _comments("", lines, width)


def box_words(facts: Facts) -> str:
    """Return what a box was, in a line."""
    names = {"host": "", "CPU": "", "GPU": "", "cores": " cores"}
    told = [f"{facts[name]}{unit}" for name, unit in names.items() if name in facts]
    return show(
        ", ".join(
            [*told, *(f"{name} {facts[name]}" for name in ("torch", "driver") if name in facts)]
        ),
        300,
    )


def _settings(advice: Advice, width: int) -> list[str]:
    if not advice.settings:
        return []
    blocks = [
        f"{_comments('', _reasons(one), width)}\nexport {one.name}={shlex.quote(one.choice.value)}"
        for one in advice.settings
    ]
    host = advice.facts.get("host", "")
    if not host:
        return blocks
    refusal = shlex.quote(f"box.env sets nothing: it was measured on {show(host, 60)}")
    guard = f'if [ "$(uname -n)" != {shlex.quote(host)} ]; then\n    echo {refusal} >&2\nelse'
    return [guard, *blocks, "fi"]


def _reasons(one: Advised) -> list[str]:
    return [
        _value(one),
        *([f"drawback: {show(one.raced.against)}"] if one.raced.against else []),
        *_source(one),
    ]


def _value(one: Advised) -> str:
    return f"{one.name}={one.choice.value}: {show(one.said.about, 300)}. {compared(one)}"


def _stays(one: Advised) -> str:
    if not one.choice.is_decided:
        return f"{one.name}: not decided ({show(one.said.about, 300)}): {show(one.choice.why)}. {' '.join(_source(one))}"
    return (
        f"{one.name}: no value beat the default, {show(one.said.default, 200)}. {_sentence(one.said.about)}. {compared(one)}. "
        f"{' '.join(_source(one))}"
    )


def compared(one: Advised) -> str:
    """Return how many times as long, or as much, the other values take as what stands."""
    costs = {
        each.value: _amount(each.cost, one.said.unit)
        for each in one.said.candidates
        if each.cost is not None
    }
    told = []
    for value, judged in one.choice.against.items():
        name = f"{value} (the default)" if value == one.said.default else value
        told.append(
            f"{show(name, 80)} x{_times(judged)}{f', {costs[value]}' if value in costs else ''}"
        )
    own = costs.get(one.choice.value or one.said.default, "")
    cost = f"It takes {own}. " if own else ""
    return f"{cost}Other values relative to it: {'; '.join(told)}"


def _amount(cost: float, unit: str) -> str:
    return size(cost) if unit == "B" else format_number(cost, unit)


def _sentence(words: str) -> str:
    return show(words[:1].upper() + words[1:], 300)


def _times(judged: Judgement) -> str:
    if judged.estimate is None:
        return "n/a"
    between = (
        f" [{brief(judged.low)}, {brief(judged.high)}]"
        if judged.low is not None and judged.high is not None
        else ""
    )
    on_clock = " in CPU time" if judged.measure == CPU else ""
    return f"{brief(judged.estimate)}{between}{on_clock}"


def _source(one: Advised) -> list[str]:
    run, summary = one.subject.summary.run, one.subject.summary
    if run is None:
        return []
    day = (
        time.strftime("%Y-%m-%d", time.gmtime(run.wall_ns / 1e9))
        if 0 < run.wall_ns < 2**62
        else "n/a"
    )
    again = command_line.line(command_line.rerun_words(run, summary.planned_repeats))
    return [f"{one.subject.name}, run {one.subject.id} of {day} ({show(again)})"]


def _unused(one: Unused) -> str:
    return f"{show(one.name, 60)}: {one.subject.name}, run {one.subject.id}: {show(one.why)}"


def _unknown(name: str, scenario: Scenario, ranks: int) -> str:
    return f"{name}: {command_line.line(command_to_race(name, scenario, ranks))}"


def command_to_race(name: str, scenario: Scenario, ranks: int) -> list[str]:
    """Return the command that holds the values of a variable against each other."""
    is_for_ranks = bool(ranks) and (name, RANKS) in scenario.settings
    return [
        "tuilab",
        "run",
        scenario.id,
        *(["--ranks", str(ranks)] if is_for_ranks else []),
        "--headless",
    ]


def _comments(heading: str, lines: Sequence[str], width: int) -> str:
    indent = "  " if heading else ""
    room = max(min(width, _WIDTH) - len("# ") - len(indent), 20)
    folded = [
        indent + part
        for line in lines
        for part in wrap(show(line, 3000), room, hang="  ", keeps_words=True)
    ]
    return "\n".join(f"# {line}" for line in [*([heading] if heading else []), *folded])
