"""The words of a lesson, as far as a machine can judge them: sentences that are too long, and words that hedge."""

import re
from collections.abc import Iterator

from tuilab.catalogue.findings import File, Finding
from tuilab.catalogue.lesson import blocks
from tuilab.catalogue.stated import intro_of
from tuilab.text import show

LONGEST = 35  # words of a sentence
HEDGES = (
    "actually", "apparently", "arguably", "basically", "clearly", "essentially", "fairly", "maybe", "obviously", "perhaps",
    "possibly", "presumably", "probably", "quite", "really", "relatively", "seemingly", "simply", "somewhat", "very",
)  # fmt: skip

_PROSE = ("text", "bullet", "item")
_CODE = re.compile(r"`[^`]*`")
_END = re.compile(r"(?<=[.!?;:])\s+")
_HEDGE = re.compile(rf"(?i)\b(?:{'|'.join(HEDGES)})\b")


def check_words(file: File) -> Iterator[Finding]:
    """Long sentences lose a reader, and a word that hedges says that the author does not know."""
    for block in (
        block for part in (intro_of(file.scenario.lesson), *file.scenario.sections.values()) for block in blocks(part)
    ):
        prose = _CODE.sub("code", block.text) if block.kind in _PROSE else ""
        for sentence in _END.split(prose):
            if (count := len(sentence.split())) > LONGEST:
                begin = show(sentence, 40)
                yield Finding(_line_of(file, sentence), f"a sentence has {count} words, at most {LONGEST} are allowed: {begin}")
        for word in _HEDGE.findall(prose):
            line = next(number for number, text in enumerate(file.text.split("\n"), 1) if re.search(rf"\b{word}\b", text))
            yield Finding(line, f'"{word}" is vague; state the fact, or by how much')


def _line_of(file: File, sentence: str) -> int:
    """Return the line where a sentence begins, which may go on in the next."""
    words = sentence.split()
    return next((line for count in (5, 4, 3, 2) if (line := file.line_of(" ".join(words[:count]))) > 1), 1)
