"""Divide a lesson into paragraphs, bullets and code, for the screens and reports that show it.

The text never goes through a markup parser.
"""

import re
from typing import NamedTuple

from tuilab.text.display import show_lines
from tuilab.text.wrapping import flow

PRACTICE = "In practice:"  # begins the paragraph with the advice of a lesson
_CONTINUED = ("text", "bullet", "item")  # kinds of parts that may have more lines
_MAX_CHARACTERS = 60_000  # a longer text is no lesson
_BULLET = re.compile(r"[-*] +")
_OWN_LINE = re.compile(r"`--|>>> ")  # in "Try next" each option starts a line of its own
# Blanks before `refutes:` that follow other words on the line.
_REFUTES = re.compile(r"[;,]?(?<![ \t])[ \t]+(?=refutes: )")
_ADDRESS = re.compile(r"(?<![^\s(])https?://\S+")
_PLAIN_ADDRESS = re.compile(r"(?ai)https?://[a-z0-9][a-z0-9.-]*(:\d+)?(/[\w./?=&%#~+:,;!()-]*)?")
_CODE = re.compile(r"`([^`\n]{1,300})`")


class LessonPart(NamedTuple):
    """A piece of a lesson.

    Its kind is `text`, `bullet`, `item`, `code`, or `note`: the claims that an item refutes.
    """

    kind: str
    text: str


def blocks(text: str) -> list[LessonPart]:
    """Return paragraphs, bullets and code of a text in their order.

    Text after `_MAX_CHARACTERS` is dropped. Each line of code is a part of its own.
    """
    parts: list[tuple[str, list[str]]] = []  # the kind of each, and its lines
    is_open = False  # whether the next line may continue the last part
    for line in show_lines(notes_apart(text[:_MAX_CHARACTERS])).split("\n"):
        begun = _begin(line, is_open)
        if begun is None:
            kind, lines = parts[-1]
            lines.append(line.strip())
        else:
            kind = begun.kind
            lines = [begun.text]
            if kind:
                parts.append((kind, lines))
        is_open = kind in _CONTINUED or (kind == "note" and lines[-1].endswith(","))
    blocks = []
    for kind, lines in parts:
        text = lines[0]
        if len(lines) > 1:
            text = flow("\n".join(lines))
        blocks.append(LessonPart(kind, text))
    return blocks


def takeaway(text: str) -> str:
    """Return the paragraph that says what to do in practice; empty if the lesson has none."""
    for block in blocks(text):
        if block.kind == "text" and block.text.startswith(PRACTICE):
            return block.text
    return ""


def notes_apart(text: str) -> str:
    """Return a text in which `refutes: key, key` has a line of its own."""
    return _REFUTES.sub("\n", text)


def code_parts(text: str) -> list[tuple[bool, str]]:
    """Return the parts of a paragraph, each with whether it is code."""
    parts = []
    for index, part in enumerate(_CODE.split(text)):
        if part:
            is_code = index % 2 == 1
            parts.append((is_code, part))
    return parts


def link_parts(text: str) -> list[tuple[str, str]]:
    """Return the parts of a text as pairs: an address or "", and the words that are shown.

    Addresses are http or https, and the words of a link are its address.
    """
    parts = []
    end = 0  # of the last address
    for match in _ADDRESS.finditer(text):
        address = match[0].rstrip(".,;:!?")
        if address.count("(") < address.count(")"):
            address = address.rstrip(")")
        if not _PLAIN_ADDRESS.fullmatch(address):
            continue
        parts.append(("", text[end : match.start()]))
        parts.append((address, address))
        end = match.start() + len(address)
    parts.append(("", text[end:]))
    return [part for part in parts if part[1]]


def _begin(line: str, is_open: bool) -> LessonPart | None:
    """Return the part that a line begins; None if it continues the last one.

    A blank line begins a part without a kind.
    """
    stripped = line.strip()
    if not stripped:
        return LessonPart("", "")
    if bullet := _BULLET.match(stripped):
        return LessonPart("bullet", stripped[bullet.end() :])
    if line.startswith("    ") and not is_open:
        return LessonPart("code", line[4:].rstrip())
    if stripped.startswith("refutes: "):
        return LessonPart("note", stripped)
    if _OWN_LINE.match(stripped):
        return LessonPart("item", stripped)
    return None if is_open else LessonPart("text", stripped)
