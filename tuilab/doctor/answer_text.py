"""The answers of the doctor as text, for `tuilab doctor` and for its screen."""

from collections import Counter
from collections.abc import Mapping, Sequence

from tuilab.doctor import DoctorFinding
from tuilab.doctor.facts import Fact
from tuilab.drawings.glyphs import Style
from tuilab.text.display import plural, show
from tuilab.text.wrapping import wrap

_MARKS = {
    "pass": ("✓", "+", 32),
    "warn": ("!", "!", 33),
    "fail": ("✗", "x", 31),
    "n/a": ("–", "-", 2),
}


def exit_code(findings: Mapping[str, DoctorFinding]) -> int:
    """Return 2 when anything failed, 1 when there is a warning, else 0."""
    statuses = {finding.status for finding in findings.values()}
    if "fail" in statuses:
        return 2
    if "warn" in statuses:
        return 1
    return 0


def problems(findings: Mapping[str, DoctorFinding]) -> dict[str, DoctorFinding]:
    """Return the warnings and failures."""
    return {
        name: finding for name, finding in findings.items() if finding.status in ("warn", "fail")
    }


def render(findings: Mapping[str, DoctorFinding], style: Style, width: int, pad: int) -> str:
    """Return the answers of a group as text, each with its next step below."""
    lines: list[str] = []
    last_kind = ""
    for name, finding in findings.items():
        kind = name.partition(".")[0]
        if last_kind and kind != last_kind:
            lines.append("")
        last_kind = kind
        lines += _render_finding(name, finding, style, pad, width)
    return "\n".join(lines)


def counts(findings: Mapping[str, DoctorFinding]) -> str:
    """Return the number of checks by result, in a line."""
    count = Counter(finding.status for finding in findings.values())
    return (
        f"{plural(len(findings), 'check')}: {count['pass']} passed,"
        f" {plural(count['warn'], 'warning')}, {count['fail']} failed, {count['n/a']} not"
        " applicable"
    )


def render_facts(facts: Sequence[Fact], style: Style, width: int) -> str:
    """Return the facts, section by section; an unknown one has its reason."""
    longest_name = max((len(fact.name) for fact in facts), default=0)
    pad = min(longest_name, 24)
    indent = " " * (pad + 4)
    room = max(width - len(indent), 30)
    lines: list[str] = []
    section = ""
    for fact in facts:
        if fact.section != section:
            if section:
                lines.append("")
            lines.append(style.bold(show(fact.section)))
            section = fact.section
        value_lines = wrap(_describe_value(fact), room) or [""]
        lines.append(f"  {show(fact.name, 60).ljust(pad)}  {value_lines[0]}")
        lines += [indent + line for line in value_lines[1:]]
    return "\n".join(lines)


def _describe_value(fact: Fact) -> str:
    """Return the value of a fact, or why it is unknown, with the note in parentheses."""
    value = show(fact.value, 300)
    if not fact.value:
        value = f"n/a: {show(fact.reason, 300)}"
    if fact.note:
        value += f"  ({show(fact.note, 200)})"
    return value


def _render_finding(
    name: str, finding: DoctorFinding, style: Style, pad: int, width: int
) -> list[str]:
    """Return the lines of a finding: its mark and name with what was found, then the next step.

    `pad` is the width of the column of names. The mark shows the status, in ASCII if need be.
    """
    utf8_mark, ascii_mark, colour = _MARKS.get(finding.status, _MARKS["n/a"])
    mark = utf8_mark if style.is_utf8 else ascii_mark
    indent = " " * (pad + 4)
    room = max(width - len(indent), 30)
    if finding.status == "n/a":
        sentence_lines = [style.dim(line) for line in wrap(f"n/a: {finding.found}", room)]
    else:
        sentence_lines = wrap(finding.found, room) or [""]
    lines = [f"{style.paint(mark, colour)} {name.ljust(pad)}  {sentence_lines[0]}"]
    lines += [indent + line for line in sentence_lines[1:]]
    if finding.next_step:
        step_lines = wrap(f"→ {finding.next_step}", room, hang="  ")
        if not style.is_utf8:
            step_lines = [line.replace("→", "->") for line in step_lines]
        lines += [indent + style.dim(line) for line in step_lines]
    return lines
