"""Write text into Markdown so that it is shown as it is, whatever it contains."""

import re
from collections.abc import Sequence

from tuilab.text.display import show, show_lines

_ACTIVE = re.compile(r"([\\`*_\[\]<>|~$&#])")
_BLOCK = re.compile(r"^(\s*\d*)([-+=>]|[.)](?=\s))")
_LINK = re.compile(r"(?i)(://|\bwww\.|@)")
_TICKS = re.compile(r"`+")


def escape(text: object, limit: int = 2000) -> str:
    """Return text as one line without active markup, links or mentions."""
    line = _ACTIVE.sub(r"\\\1", show(text, limit))
    line = _BLOCK.sub(r"\1\\\2", line)
    return _LINK.sub(_break_link, line)


def _break_link(match: re.Match[str]) -> str:
    """Return the start of a link or a mention so that Markdown does not turn it into one.

    A space without width follows `@`, because an escaped `@` would still mention a user.
    """
    start = match[0]
    if start == "://":
        return "\\:\\/\\/"
    if start == "@":
        return "@\u200b"
    return start.replace(".", "\\.")  # www.


def fence(text: str, kind: str = "") -> str:
    """Return text as a code block that nothing in the text can end."""
    shown = show_lines(text).rstrip("\n")
    longest = max(map(len, _TICKS.findall(shown)), default=0)
    fence_line = "`" * max(3, longest + 1)
    return f"{fence_line}{kind}\n{shown}\n{fence_line}"


def table(heads: Sequence[object], rows: Sequence[Sequence[object]]) -> str:
    """Return a table with escaped cells, or an empty string if there are no rows."""
    if not rows:
        return ""
    rule = f"|{' --- |' * len(heads)}"
    return "\n".join([_make_row(heads), rule, *map(_make_row, rows)])


def _make_row(cells: Sequence[object]) -> str:
    escaped = [escape(cell) for cell in cells]
    return f"| {' | '.join(escaped)} |"


def bullets(items: Sequence[str]) -> str:
    """Return a list with escaped items."""
    return "\n".join(f"- {escape(item)}" for item in items)
