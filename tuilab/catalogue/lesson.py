"""Divides a lesson into paragraphs, bullets and code, for whoever shows it. No markup parser ever sees the text."""

import re
from typing import NamedTuple

from tuilab.text.display import show_lines
from tuilab.text.wrapping import flow

_FLOWING = (
    "text",
    "bullet",
    "item",
    "note",
)  # goes on in the next line; a note only behind a comma
_LONGEST = 60_000  # characters; what is longer is no lesson
_BULLET = re.compile(r"[-*] +")
_OWN_LINE = re.compile(r"`--|>>> ")  # in "Try next" each option starts a line of its own
_REFUTES = re.compile(r"[;,]?(?<![ \t])[ \t]+(?=refutes: )")  # behind other words on its line
_ADDRESS = re.compile(r"(?<![^\s(])https?://\S+")
_PLAIN_ADDRESS = re.compile(r"(?ai)https?://[a-z0-9][a-z0-9.-]*(:\d+)?(/[\w./?=&%#~+:,;!()-]*)?")
_CODE = re.compile(r"`([^`\n]{1,300})`")


class LessonPart(NamedTuple):
    """A piece of a lesson: `text`, `bullet`, `item`, `code`, or the `note` of an item, which claims it refutes."""

    kind: str
    text: str


def blocks(text: str) -> list[LessonPart]:
    """Return paragraphs, bullets and code of a text in their order."""
    found: list[tuple[str, list[str]]] = []  # the kind of each, and its lines
    is_open = False  # whether the next line goes on with the last block
    for line in show_lines(notes_apart(text[:_LONGEST])).split("\n"):
        block = _begin(line, is_open)
        if block is None:
            found[-1][1].append(line.strip())
        elif block.kind:
            found.append((block.kind, [block.text]))
        is_open = (block is None or block.kind in _FLOWING) and (
            found[-1][0] != "note" or found[-1][1][-1].endswith(",")
        )
    return [
        LessonPart(kind, flow("\n".join(lines)) if len(lines) > 1 else lines[0])
        for kind, lines in found
    ]


def notes_apart(text: str) -> str:
    """Return a text in which `refutes: key, key` has a line of its own."""
    return _REFUTES.sub("\n", text)


def code_parts(text: str) -> list[tuple[bool, str]]:
    """Return a paragraph as (is it code, words)."""
    parts = _CODE.split(text)
    return [(at % 2 == 1, part) for at, part in enumerate(parts) if part]


def link_parts(text: str) -> list[tuple[str, str]]:
    """Return words as (address or nothing, what is shown): an address leads where it says, over http or https."""
    found, end = [], 0
    for match in _ADDRESS.finditer(text):
        address = match[0].rstrip(".,;:!?")
        if address.count("(") < address.count(")"):
            address = address.rstrip(")")
        if not _PLAIN_ADDRESS.fullmatch(address):
            continue
        found += [("", text[end : match.start()]), (address, address)]
        end = match.start() + len(address)
    return [part for part in (*found, ("", text[end:])) if part[1]]


def _begin(line: str, is_open: bool) -> LessonPart | None:
    """Return the block that a line begins; None when it goes on with the last one, one without a kind when it is blank."""
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
