"""Text in Markdown that is shown as it is, whatever it holds."""

import re
from collections.abc import Sequence

from tuilab.text.display import show, show_lines

_ACTIVE = re.compile(r"([\\`*_\[\]<>|~$&#])")
_BLOCK = re.compile(r"^(\s*\d*)([-+=>]|[.)](?=\s))")
_AWAY = re.compile(r"(?i)(://|\bwww\.|@)")
_NO_LINK = {"://": "\\:\\/\\/", "@": "@\u200b"}
_TICKS = re.compile(r"`+")


def escape(text: object, limit: int = 2000) -> str:
    """Return text that Markdown shows as it is: no markup, no link, no mention, in one line."""
    line = _ACTIVE.sub(r"\\\1", show(text, limit))
    line = _BLOCK.sub(r"\1\\\2", line)
    return _AWAY.sub(lambda found: _NO_LINK.get(found[0], found[0].replace(".", "\\.")), line)


def fence(text: str, kind: str = "") -> str:
    """Return text as a block of code that nothing in it can end."""
    shown = show_lines(text).rstrip("\n")
    ticks = "`" * max(3, max((len(run) for run in _TICKS.findall(shown)), default=0) + 1)
    return f"{ticks}{kind}\n{shown}\n{ticks}"


def table(heads: Sequence[object], rows: Sequence[Sequence[object]]) -> str:
    """Return a table, whose cells are shown as they are; nothing if it has no rows."""
    if not rows:
        return ""
    lines = [heads, *rows]
    shown = [f"| {' | '.join(escape(cell) for cell in line)} |" for line in lines]
    return "\n".join([shown[0], f"|{' --- |' * len(heads)}", *shown[1:]])


def bullets(items: Sequence[str]) -> str:
    """Return a list of items."""
    return "\n".join(f"- {escape(item)}" for item in items)
