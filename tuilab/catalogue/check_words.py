"""Warn about long sentences of a lesson, and about the patterns that CONTRIBUTING.md lists.

A reader has to read such sentences twice. A warning is advice: it does not fail `tuilab check`,
because a machine cannot judge a sentence.
"""

import re
from collections.abc import Iterator

from tuilab.catalogue.checked_file import CheckFinding
from tuilab.catalogue.lesson import blocks
from tuilab.catalogue.scenario import Scenario
from tuilab.catalogue.source import Broken, read_text
from tuilab.catalogue.stated_claims import intro_of
from tuilab.text.display import show

LONGEST = 25  # words of a sentence
_SHOWN = 60  # characters of a sentence in its warning
_SEARCHED = 100_000  # characters of a file; a docstring is at its beginning

_PROSE = ("text", "bullet", "item")
_KEY = re.compile(r"\A\[[a-z0-9-]{1,40}\] +")
_VERBATIM = re.compile(r'`[^`\n]{1,300}`|"[^"\n]{1,300}"')  # code and quotations
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z0-9`\"(\[])")

_PATTERNS = [  # each with the advice; {} in it is the text that matched
    (re.compile(r"(?:^|(?<=[.:;] ))(?:Of|What|Who|Whoever|Whether|Where|Behind|Below|Beside)\b"),
     'start with "if", "when" or the thing that acts, not with "{}"'),
    (re.compile(r"\b(?:what|whoever) (?:is|was|has|had|a|the|it|they|stands?|runs?|comes?|came"
                r"|goes|leaves|left|looks?)\b"
                r"|(?:^|(?<=[,;:] ))who (?:is|was|has|had|stands|runs|comes|goes|leaves|looks)\b"),
     'name the thing instead of "{}"'),
    (re.compile(r"\b[Oo]ne (?:that|with|which|is|has|on|in|alone|killed|whose)\b"
                r"|\bthe (?:\w+ )?ones\b"
                r"|\b[Oo]ne of (?!(?:the|these|its|their|your)\b)"),
     'name the thing instead of "{}"'),
    (re.compile(r"\b[Oo]f (?:it|them|those|these|that|what)\b"),
     'name the thing instead of "{}"'),
    (re.compile(r"\b(?:is|are|was|were) to (?:be|what|which|have|go)\b"),
     'write "must", "should" or "can" instead of "{}"'),
    (re.compile(r", too\b"), 'write "also" before the verb instead of "{}"'),
    (re.compile(r"\b(?:told|tells?)\b"), 'write "shows", "prints" or "reports" instead of "{}"'),
    (re.compile(r"\b(?:stands?|stood)\b"), 'write "is" instead of "{}"'),
    (re.compile(r"\b(?:goes|go|going|went) on\b"),
     'write "continues" or "is running" instead of "{}"'),
    (re.compile(r"\b[Mm]end(?:s|ed|ing)?\b"), 'write "fix" instead of "{}"'),
    (re.compile(r"\bhand(?:s|ed)? on\b"), 'write "share" or "pass" instead of "{}"'),
    (re.compile(r"\bheld against\b"), 'write "compared with" instead of "{}"'),
    (re.compile(r"\b[Bb]eside\b"), 'write "next to" or "while ... runs" instead of "{}"'),
    (re.compile(r"\bin silence\b"), 'write "without a message" instead of "{}"'),
    (re.compile(r"\banew\b"), 'write "again" instead of "{}"'),
]  # fmt: skip
_NOT_IN_QUESTIONS = 2  # the first two patterns are good English in a question


def check_words(scenario: Scenario) -> list[CheckFinding]:
    """Return a warning for each sentence of a lesson that is hard to read, from top to bottom.

    The list is empty as well if the file cannot be used, because `check` reports that.
    """
    if scenario.error:
        return []
    try:
        text = read_text(scenario.path)[:_SEARCHED]
    except Broken:
        return []
    warnings = []
    position = 0
    for sentence in _sentences(scenario):
        advice = _advise(sentence)
        if advice:
            position = _find(text, sentence, position)
            line = text.count("\n", 0, position) + 1
            warning = f'"{show(sentence, _SHOWN)}": {"; ".join(advice)}'
            warnings.append(CheckFinding(line, warning))
    return warnings


def _sentences(scenario: Scenario) -> Iterator[str]:
    """Yield the title and the sentences of a lesson, without code blocks and the keys of claims."""
    yield scenario.title
    for section in (intro_of(scenario.lesson), *scenario.sections.values()):
        for block in blocks(section):
            if block.kind not in _PROSE:
                continue
            text = _KEY.sub("", block.text)
            begin = 0
            for end in _SENTENCE_END.finditer(_mask(text)):
                yield text[begin : end.start()]
                begin = end.end()
            yield text[begin:]


def _advise(sentence: str) -> list[str]:
    """Return the advice for a sentence; none if it is easy to read."""
    advice = []
    masked = _mask(sentence)
    count = len(masked.split())
    if count > LONGEST:
        advice.append(f"divide it: {count} words, {LONGEST} are easy to read")
    patterns = _PATTERNS
    if sentence.endswith("?"):
        patterns = _PATTERNS[_NOT_IN_QUESTIONS:]
    for pattern, template in patterns:
        if match := pattern.search(masked):
            advice.append(template.format(match[0].strip()))
    return advice


def _mask(text: str) -> str:
    """Return a text of the same length, in which code and quotations are words without meaning."""
    return _VERBATIM.sub(_mask_quotation, text)


def _mask_quotation(match: re.Match[str]) -> str:
    quotation = match[0]
    return quotation[0] + "x" * (len(quotation) - 2) + quotation[-1]


def _find(text: str, sentence: str, start: int) -> int:
    """Return where a sentence begins in a file; `start` if it cannot be found.

    In the file, a line may end between any two of its words.
    """
    words = sentence.split()
    for count in (6, 4, 3):  # of its first words
        pattern = r"\s+".join(re.escape(word) for word in words[:count])
        if match := re.compile(pattern).search(text, start):
            return match.start()
    return start
