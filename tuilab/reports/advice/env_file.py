"""Write the recommended settings as a file for a shell.

If the name of the machine is known, the file sets nothing on a machine with another name.
"""

import shlex
import time
from collections.abc import Sequence

from tuilab import __version__
from tuilab.catalogue.scenario import RANKS, Scenario
from tuilab.judging.judgement import Judgement
from tuilab.record.timing.clocks import CPU
from tuilab.reports.advice.advised import Advice, AdvisedSetting, UnusedRun
from tuilab.reports.advice.validity import Facts
from tuilab.runs import command_line
from tuilab.text.display import brief, plural, show
from tuilab.text.words import format_number, size
from tuilab.text.wrapping import wrap

_MAX_WIDTH = 110
_MIN_WIDTH = 20
_MAX_WALL_NS = 2**62  # a later time is not shown
# Lengths in characters.
_COMMENT_LENGTH = 3000
_SENTENCE_LENGTH = 300
_DEFAULT_LENGTH = 200
_VALUE_LENGTH = 80
_NAME_LENGTH = 60


def env_file(advice: Advice, width: int = _MAX_WIDTH) -> str:
    """Return the file to source before a program, or before torchrun starts ranks.

    The reasons are comments of this width.
    """
    unchanged = [_describe_unchanged(setting) for setting in advice.unchanged]
    conflicts = [_describe_value(setting) for setting in advice.conflicts]
    unused = [_describe_unused(run) for run in advice.unused]
    unknown = []
    for name, scenario in advice.unknown:
        unknown.append(_describe_unknown(name, scenario, advice.ranks))
    comments = {
        "Default kept:": unchanged,
        "Not set, because the runs disagree:": conflicts,
        "Runs that do not count:": unused,
        "Not measured yet on this machine; to measure:": unknown,
    }
    paragraphs = [_make_head(advice, width), *_export_settings(advice, width)]
    for heading, lines in comments.items():
        if lines:
            paragraphs.append(f"# {heading}\n{_format_comment(lines, width, indent='  ')}")
    return "\n\n".join(paragraphs) + "\n"


def command_to_compare(name: str, scenario: Scenario, ranks: int) -> list[str]:
    """Return the command that compares the values of a variable."""
    command = ["tuilab", "run", scenario.id]
    if ranks and (name, RANKS) in scenario.settings:
        command += ["--ranks", str(ranks)]
    return [*command, "--headless"]


def describe_comparison(setting: AdvisedSetting) -> str:
    """Return the times or costs of the other values, as multiples of those of the best one.

    The best value is the winner, or the default if no value won.
    """
    declared = setting.declared
    costs = {}
    for candidate in declared.candidates:
        if candidate.cost is not None:
            costs[candidate.value] = _format_cost(candidate.cost, declared.unit)
    comparisons = []
    for value, judgement in setting.choice.against.items():
        name = value
        if value == declared.default:
            name += " (the default)"
        words = f"{show(name, _VALUE_LENGTH)} x{_format_ratio(judgement)}"
        if value in costs:
            words += f", {costs[value]}"
        comparisons.append(words)
    comparison = f"Other values relative to it: {'; '.join(comparisons)}"
    own_cost = costs.get(setting.choice.value or declared.default)
    if own_cost:
        comparison = f"It takes {own_cost}. {comparison}"
    return comparison


def _format_cost(cost: float, unit: str) -> str:
    if unit == "B":
        return size(cost)
    return format_number(cost, unit)


def _format_ratio(judgement: Judgement) -> str:
    """Return how many times as long a value takes, with its interval; n/a if not known."""
    if judgement.estimate is None:
        return "n/a"
    words = brief(judgement.estimate)
    if judgement.low is not None and judgement.high is not None:
        words += f" [{brief(judgement.low)}, {brief(judgement.high)}]"
    if judgement.measure == CPU:
        words += " in CPU time"
    return words


# ---- the head


def _make_head(advice: Advice, width: int) -> str:
    """Return the comment that begins the file: its day, its audience and the machine."""
    day = time.strftime("%Y-%m-%d", time.gmtime())
    audience = _describe_audience(advice.ranks)
    lines = [f"box.env of {day}, by tuilab {show(__version__)}: settings for {audience}."]
    if advice.settings:
        lines.append(f"Measured on {_describe_machine(advice.facts)}.")
        lines.append(
            "Use: . ./box.env (sh, bash, zsh)."
            " If the hardware, the driver or torch has changed, measure again."
        )
    else:
        no_setting = "no value measurably beat the default on this machine"
        lines.append(f"No setting is recommended: {no_setting}.")
    return _format_comment(lines, width)


def _describe_audience(ranks: int) -> str:
    if ranks:
        started = f"that torchrun starts on this machine (--nproc-per-node {ranks})"
        return f"each of {plural(ranks, 'rank')} {started}"
    for_ranks = "for the ranks of torchrun: tuilab advise --ranks N"
    return f"one program that has this machine to itself ({for_ranks})"


def _describe_machine(facts: Facts) -> str:
    """Return the known facts of the machine in one line, names before versions."""
    words = [facts[name] for name in ("host", "CPU", "GPU") if name in facts]
    if "cores" in facts:
        words.append(f"{facts['cores']} cores")
    for name in ("torch", "driver"):
        if name in facts:
            words.append(f"{name} {facts[name]}")
    return show(", ".join(words), _SENTENCE_LENGTH)


# ---- settings


def _export_settings(advice: Advice, width: int) -> list[str]:
    """Return the lines that set the variables, each below the reasons; none without settings.

    If the name of the machine is known, they are in an `if` that compares it with `uname -n`.
    """
    if not advice.settings:
        return []
    exports = []
    for setting in advice.settings:
        comment = _format_comment(_list_reasons(setting), width)
        exports.append(f"{comment}\nexport {setting.name}={shlex.quote(setting.choice.value)}")
    host = advice.facts.get("host", "")
    if not host:
        return exports
    refusal = f"box.env sets nothing: it was measured on {show(host, _NAME_LENGTH)}"
    condition = f'[ "$(uname -n)" != {shlex.quote(host)} ]'
    guard = f"if {condition}; then\n    echo {shlex.quote(refusal)} >&2\nelse"
    return [guard, *exports, "fi"]


def _list_reasons(setting: AdvisedSetting) -> list[str]:
    """Return why a value is set, its drawback if there is one, and the run that says so."""
    reasons = [_describe_value(setting)]
    if setting.raced.against:
        reasons.append(f"drawback: {show(setting.raced.against)}")
    source = _describe_source(setting)
    if source:
        reasons.append(source)
    return reasons


def _describe_value(setting: AdvisedSetting) -> str:
    about = show(setting.declared.about, _SENTENCE_LENGTH)
    return f"{setting.name}={setting.choice.value}: {about}. {describe_comparison(setting)}"


def _describe_source(setting: AdvisedSetting) -> str:
    """Return the run, its day and the command that repeats it; empty without a record."""
    subject = setting.subject
    run = subject.summary.run
    if run is None:
        return ""
    day = "n/a"
    if 0 < run.wall_ns < _MAX_WALL_NS:
        day = time.strftime("%Y-%m-%d", time.gmtime(run.wall_ns / 1e9))
    words = command_line.rerun_words(run, subject.summary.planned_repeats)
    return f"{subject.name}, run {subject.id} of {day} ({show(command_line.line(words))})"


# ---- what is not set


def _describe_unchanged(setting: AdvisedSetting) -> str:
    """Return why a variable is not set: its default won, or nothing is decided."""
    declared = setting.declared
    source = _describe_source(setting)
    if not setting.choice.is_decided:
        about = show(declared.about, _SENTENCE_LENGTH)
        return f"{setting.name}: not decided ({about}): {show(setting.choice.why)}. {source}"
    default = show(declared.default, _DEFAULT_LENGTH)
    about = show(declared.about[:1].upper() + declared.about[1:], _SENTENCE_LENGTH)
    result = f"{setting.name}: no value beat the default, {default}"
    return f"{result}. {about}. {describe_comparison(setting)}. {source}"


def _describe_unused(run: UnusedRun) -> str:
    source = f"{run.subject.name}, run {run.subject.id}"
    return f"{show(run.name, _NAME_LENGTH)}: {source}: {show(run.why)}"


def _describe_unknown(name: str, scenario: Scenario, ranks: int) -> str:
    return f"{name}: {command_line.line(command_to_compare(name, scenario, ranks))}"


def _format_comment(lines: Sequence[str], width: int, indent: str = "") -> str:
    """Return lines as a comment of a shell."""
    prefix = f"# {indent}"
    room = max(min(width, _MAX_WIDTH) - len(prefix), _MIN_WIDTH)
    wrapped = []
    for line in lines:
        for part in wrap(show(line, _COMMENT_LENGTH), room, hang="  ", keeps_words=True):
            wrapped.append(prefix + part)
    return "\n".join(wrapped)
