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
    states = {finding.status for finding in findings.values()}
    return 2 if "fail" in states else 1 if "warn" in states else 0


def problems(findings: Mapping[str, DoctorFinding]) -> dict[str, DoctorFinding]:
    """Return the warnings and failures."""
    return {
        name: finding for name, finding in findings.items() if finding.status in ("warn", "fail")
    }


def render(findings: Mapping[str, DoctorFinding], style: Style, width: int, pad: int) -> str:
    """Return the answers of a group as text, each with its next step below."""
    lines: list[str] = []
    kind = ""
    for name, finding in findings.items():
        lines += [""] if kind and name.partition(".")[0] != kind else []
        kind = name.partition(".")[0]
        lines += _rows(name, finding, style, pad, width)
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
    pad = min(max((len(fact.name) for fact in facts), default=0), 24)
    lines: list[str] = []
    section = ""
    for fact in facts:
        if fact.section != section:
            lines += (
                ["", style.bold(show(fact.section))]
                if section
                else [style.bold(show(fact.section))]
            )
            section = fact.section
        value = show(fact.value, 300) if fact.value else f"n/a: {show(fact.reason, 300)}"
        value += f"  ({show(fact.note, 200)})" if fact.note else ""
        first, *more_lines = wrap(value, max(width - pad - 4, 30)) or [""]
        lines += [
            f"  {show(fact.name, 60).ljust(pad)}  {first}",
            *(" " * (pad + 4) + line for line in more_lines),
        ]
    return "\n".join(lines)


def _rows(name: str, finding: DoctorFinding, style: Style, pad: int, width: int) -> list[str]:
    rich, plain, colour = _MARKS.get(finding.status, _MARKS["n/a"])
    indent = " " * (pad + 4)
    room = max(width - len(indent), 30)
    sentence = f"n/a: {finding.found}" if finding.status == "n/a" else finding.found
    first, *more_lines = wrap(sentence, room) or [""]
    head = f"{style.paint(rich if style.is_utf8 else plain, colour)} {name.ljust(pad)}  "
    steps = wrap(f"→ {finding.next_step}", room, hang="  ") if finding.next_step else []
    arrow = [line if style.is_utf8 else line.replace("→", "->") for line in steps]
    is_dim = finding.status == "n/a"
    shown = [head + (style.dim(first) if is_dim else first)]
    return (
        shown
        + [indent + (style.dim(line) if is_dim else line) for line in more_lines]
        + [indent + style.dim(line) for line in arrow]
    )
