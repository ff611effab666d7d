"""What a lesson states: each bullet under `## Look for` is a claim, `- [key] sentence`; the code names it by its key.

A key is what a claim is known by, from run to run and whatever becomes of its words; the sentence stands in the lesson alone.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

from tuilab.catalogue.scenario import Stated
from tuilab.text.display import show
from tuilab.text.wrapping import flow

SECTION = "Look for"
SECTIONS = ("Predict", SECTION, "Try next", "Source")  # of a lesson, in their order
KEY_RULE = "a-z, 0-9 and -, a letter first, 40 at most"
_KEY = r"[a-z][a-z0-9-]{0,39}"
_HEADING = re.compile(r"(?m)^## +(.*)$")
_BULLET = re.compile(r"(?m)^[-*] +")
_KEYED = re.compile(rf"\A\[({_KEY})\] +(?=\S)")
_CHANGE = re.compile(r"`(--[^`\n]{1,200})`")
_REFUTES = re.compile(
    r"\brefutes:((?:[^\n]*,[ \t]*\n)*[^\n]*)"
)  # a comma at the end of a line goes on in the next
_GAP = re.compile(r"\{[^{}]*\}")


def intro_of(lesson: str) -> str:
    """Return what a lesson says before its first section."""
    return _HEADING.split(lesson, maxsplit=1)[0]


def sections_of(lesson: str) -> dict[str, str]:
    """Return the sections of a lesson by their headings."""
    _, *parts = _HEADING.split(lesson)
    return dict(zip(map(str.strip, parts[::2]), map(str.strip, parts[1::2]), strict=True))


def bullets(section: str) -> list[str]:
    """Return the bullets of a section as they are written."""
    return [bullet.partition("\n\n")[0].rstrip() for bullet in _BULLET.split(section)[1:]]


def stated(bullet: str) -> Stated:
    """Return the claim that a bullet states."""
    return Stated(key_of(bullet), normalise(_KEYED.sub("", bullet, count=1)))


def key_of(bullet: str) -> str:
    """Return the key that a bullet begins with, or nothing."""
    keyed = _KEYED.match(bullet)
    return keyed[1] if keyed else ""


def claims_of(lesson: str) -> list[Stated]:
    """Return the claims that a lesson states, in its order."""
    return [stated(bullet) for bullet in bullets(sections_of(lesson).get(SECTION, ""))]


def is_key(word: str) -> bool:
    """Say whether a word can be a key; one with `{...}`, from an f-string, stands for several."""
    return re.fullmatch(_KEY, _GAP.sub("x", word)) is not None


class Change(NamedTuple):
    """A change that the lesson says to try next, and the claims that it refutes: their keys, or what stands in their place."""

    options: str
    refutes: tuple[str, ...]


def changes_of(section: str) -> list[Change]:
    """Return the changes of a section `## Try next`: `--options`, and in the words after them `refutes: key, key`."""
    marks = list(_CHANGE.finditer(section))
    ends = [*(mark.start() for mark in marks), len(section)][1:]
    return [
        Change(mark[1], _refuted(section[mark.end() : end]))
        for mark, end in zip(marks, ends, strict=True)
    ]


def _refuted(text: str) -> tuple[str, ...]:
    return tuple(
        " ".join(word.split())
        for found in _REFUTES.findall(text)
        for word in found.rstrip(". \t").split(",")
    )


def normalise(text: str) -> str:
    """Return a sentence as it is compared and recorded: on one line, without backticks and without the last full stop."""
    return flow(text.replace("`", "")).removesuffix(".")


def fits(text: str, pattern: str) -> bool:
    """Say whether a text is a pattern in which each `{...}` stands for any words; part by part, as many gaps could be slow."""
    first, *gaps = _GAP.split(normalise(pattern))
    text = normalise(text)
    if not gaps:
        return text == first
    *middle, last = gaps
    at = len(first)
    for part in middle:
        at = text.find(part, at) + len(part)
        if at < len(part):
            return False
    return text.startswith(first) and text[at:].endswith(last)


def match(word: str, claims: Sequence[Stated]) -> Stated | None:
    """Return the claim whose key a word of the source is; `{...}` from an f-string stands for any characters."""
    for claim in claims:
        if claim.key and fits(claim.key, word):
            return claim
    return None


def why_unknown(word: str, claims: Sequence[Stated]) -> str:
    """Return why a call of the lab cannot claim a word that is not the key of a bullet, and what to write."""
    if is_key(word):
        return f"no bullet under {SECTION} has the key [{word}]; add the bullet, or correct the key"
    sentence = normalise(word)
    key = next((claim.key for claim in claims if claim.key and claim.text == sentence), "")
    if key:
        return f'"{show(word, 60)}" is a sentence, not a key ({KEY_RULE}); write "{key}"'
    bullet = f"- [a-key] {show(sentence, 60)}"
    return f'"{show(word, 60)}" is not a key ({KEY_RULE}); write the bullet "{bullet}" under ## {SECTION}, and claim "a-key"'
