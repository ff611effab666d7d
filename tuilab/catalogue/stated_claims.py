"""Read the claims and the changes that a lesson states.

Each bullet under `## Look for` is a claim, `- [key] sentence`, and the code names it by its key.
The key identifies a claim from run to run, even if its sentence changes. The sentence is only in
the lesson.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

from tuilab.catalogue.scenario import StatedClaim
from tuilab.text.display import show
from tuilab.text.wrapping import flow

SECTION = "Look for"
SECTIONS = ("Predict", SECTION, "Try next", "Source")  # in the order of a lesson
KEY_RULE = "a-z, 0-9 and -, a letter first, 40 at most"
_KEY = r"[a-z][a-z0-9-]{0,39}"
_HEADING = re.compile(r"(?m)^## +(.*)$")
_BULLET = re.compile(r"(?m)^[-*] +")
_KEYED = re.compile(rf"\A\[({_KEY})\] +(?=\S)")
_CHANGE = re.compile(r"`(--[^`\n]{1,200})`")
# The list of keys continues in the next line if its line ends with a comma.
_REFUTES = re.compile(r"\brefutes:((?:[^\n]*,[ \t]*\n)*[^\n]*)")
_GAP = re.compile(r"\{[^{}]*\}")


def intro_of(lesson: str) -> str:
    """Return the text of a lesson before its first section."""
    return _HEADING.split(lesson, maxsplit=1)[0]


def sections_of(lesson: str) -> dict[str, str]:
    """Return the sections of a lesson by their headings."""
    parts = [part.strip() for part in _HEADING.split(lesson)]
    headings = parts[1::2]
    texts = parts[2::2]
    return dict(zip(headings, texts, strict=True))


def bullets(section: str) -> list[str]:
    """Return the bullets of a section as they are written; a blank line ends a bullet."""
    _, *texts = _BULLET.split(section)
    return [text.partition("\n\n")[0].rstrip() for text in texts]


def stated(bullet: str) -> StatedClaim:
    """Return the claim that a bullet states."""
    return StatedClaim(key_of(bullet), normalise(_KEYED.sub("", bullet, count=1)))


def key_of(bullet: str) -> str:
    """Return the key that a bullet begins with; empty if it has none."""
    match = _KEYED.match(bullet)
    return match[1] if match else ""


def claims_of(lesson: str) -> list[StatedClaim]:
    """Return the claims that a lesson states, in its order."""
    return [stated(bullet) for bullet in bullets(sections_of(lesson).get(SECTION, ""))]


def is_key(word: str) -> bool:
    """Return whether a word can be a key, or stands for several keys: an f-string with `{...}`."""
    return re.fullmatch(_KEY, _GAP.sub("x", word)) is not None


class Change(NamedTuple):
    """A change that the lesson suggests to try next, and the keys of the claims that it refutes.

    The words after `refutes:` may be no keys; the check for authors reports those.
    """

    options: str
    refutes: tuple[str, ...]


def changes_of(section: str) -> list[Change]:
    """Return the changes of a section `## Try next`.

    A change is `--options`. The text up to the next change may have `refutes: key, key`.
    """
    changes = []
    matches = list(_CHANGE.finditer(section))
    for index, match in enumerate(matches):
        end = len(section)
        if index + 1 < len(matches):
            end = matches[index + 1].start()
        changes.append(Change(match[1], _refuted_words(section[match.end() : end])))
    return changes


def _refuted_words(text: str) -> tuple[str, ...]:
    """Return the words after each `refutes:` in a text, divided at commas; they may be no keys."""
    words = []
    for listed in _REFUTES.findall(text):
        for word in listed.rstrip(". \t").split(","):
            words.append(" ".join(word.split()))
    return tuple(words)


def normalise(text: str) -> str:
    """Return a sentence as it is compared and recorded.

    It is on one line, without backticks and without the last full stop.
    """
    return flow(text.replace("`", "")).removesuffix(".")


def fits(text: str, pattern: str) -> bool:
    """Return whether a text matches a pattern in which each `{...}` stands for any characters.

    It searches the parts one after another: a regular expression with many gaps could be slow.
    """
    first, *parts = _GAP.split(normalise(pattern))
    text = normalise(text)
    if not parts:
        return text == first
    *middle, last = parts
    end = len(first)  # of the last part that was matched
    for part in middle:
        start = text.find(part, end)
        if start < 0:
            return False
        end = start + len(part)
    return text.startswith(first) and text[end:].endswith(last)


def match(word: str, claims: Sequence[StatedClaim]) -> StatedClaim | None:
    """Return the claim whose key a word of the source is; None if there is none.

    `{...}` from an f-string stands for any characters.
    """
    for claim in claims:
        if claim.key and fits(claim.key, word):
            return claim
    return None


def why_unknown(word: str, claims: Sequence[StatedClaim]) -> str:
    """Return why a word that is not the key of a bullet cannot be claimed, and what to write."""
    if is_key(word):
        return f"no bullet under {SECTION} has the key [{word}]; add the bullet, or correct the key"
    sentence = normalise(word)
    for claim in claims:
        if claim.key and claim.text == sentence:
            return f'"{show(word, 60)}" is a sentence, not a key ({KEY_RULE}); write "{claim.key}"'
    bullet = f"- [a-key] {show(sentence, 60)}"
    return (
        f'"{show(word, 60)}" is not a key ({KEY_RULE}); '
        f'write the bullet "{bullet}" under ## {SECTION}, and claim "a-key"'
    )
