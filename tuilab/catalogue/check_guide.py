"""Warn about what the guide for authors asks of a lesson, beyond its sentences.

A warning is advice: it does not fail `tuilab check`.
"""

import re
from collections.abc import Iterator

from tuilab.catalogue.checked_file import CheckFinding
from tuilab.catalogue.lesson import PRACTICE, takeaway
from tuilab.catalogue.scenario import Scenario
from tuilab.catalogue.source import Broken, read_text
from tuilab.catalogue.stated_claims import claims_of, intro_of
from tuilab.text.display import show

LONGEST_TITLE = 80  # characters: a longer title does not fit into a line of `tuilab list`
_SHOWN = 60  # characters of a claim in its warning
# Words at the start of a claim that mean something only after the sentence before it.
_REFERENCE = re.compile(
    r"(?:and|both|but|here|it|so|that|then|there|these|they|this|those"
    r"|the (?:first|former|latter|other|same|second))\b",
    re.IGNORECASE,
)


def check_guide(scenario: Scenario) -> list[CheckFinding]:
    """Return warnings about the title, the advice, the question and the claims of a lesson.

    The list is empty if the file cannot be used, because `check` reports that.
    """
    if scenario.error:
        return []
    try:
        text = read_text(scenario.path)
    except Broken:
        return []
    return sorted(_warnings(scenario, text.split("\n")))


def _warnings(scenario: Scenario, lines: list[str]) -> Iterator[CheckFinding]:
    if len(scenario.title) > LONGEST_TITLE:
        length = len(scenario.title)
        yield CheckFinding(1, f"the title has {length} characters; use at most {LONGEST_TITLE}")
    if not takeaway(intro_of(scenario.lesson)):
        yield CheckFinding(
            1,
            f'no paragraph before the sections begins with "{PRACTICE}"; write what to do in a'
            " training script",
        )
    questions = scenario.sections.get("Predict", "").count("?")
    if questions > 1:
        line = _line_of("## Predict", lines)
        yield CheckFinding(line, f"Predict asks {questions} questions; ask only one")
    for claim in claims_of(scenario.lesson):
        match = _REFERENCE.match(claim.text)
        if match:
            line = _line_of(f"- [{claim.key}]" if claim.key else claim.text[:20], lines)
            claimed = show(claim.text, _SHOWN)
            advice = f'name the thing instead of "{match[0]}"; a claim is read without the lesson'
            yield CheckFinding(line, f'"{claimed}": {advice}')


def _line_of(words: str, lines: list[str]) -> int:
    """Return the number of the first line with these words, or 1."""
    for number, line in enumerate(lines, 1):
        if words in line:
            return number
    return 1
