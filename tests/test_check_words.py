"""The warnings about the words of a lesson: each has its line, its sentence and advice, and fails nothing."""

from pathlib import Path

import pytest

from tuilab.catalogue.check_words import LONGEST, check_words
from tuilab.catalogue.source import read as read_scenario

SOURCE = '''\
"""One operator, not five hundred slices.

{intro}

## Predict
What is faster, and how many times?

## Look for
- [sum] {claim}

## Try next
`--rows 5`: the loop is short.

## Source
"What stands in a book, too", chapter 2.
"""

from tuilab import Lab


def run(lab: Lab, rows: int = 5) -> None:
    lab.claim("sum", True)
'''


def warnings(
    folder: Path, intro: str = "A slice is a call.", claim: str = "sum is faster"
) -> list[tuple[int, str]]:
    path = folder / "mine.py"
    path.write_text(SOURCE.format(intro=intro, claim=claim))
    return [(line, sentence) for line, sentence in check_words(read_scenario(path))]


def test_plain_lesson_has_no_warning(tmp_path: Path) -> None:
    assert warnings(tmp_path) == []


def test_long_sentence_is_counted_with_code_as_one_word(tmp_path: Path) -> None:
    at_limit = "It is `a b c`" + " so" * (LONGEST - 3)

    assert warnings(tmp_path, at_limit + ".") == []
    assert warnings(tmp_path, at_limit + " more.") == [
        (
            3,
            '"It is `a b c` so so so so so so so so so so so so so so so …": divide it: 26 words, 25 are easy to read',
        )
    ]


@pytest.mark.parametrize(
    ("sentence", "advice"),
    [
        ("Of two arms each runs.", 'start with "if", "when" or the thing that acts, not with "Of"'),
        (
            "It is slow: Where it is cold it waits.",
            'start with "if", "when" or the thing that acts, not with "Where"',
        ),
        ("Autograd keeps what is needed.", 'name the thing instead of "what is"'),
        ("It fails for the user, who has no GPU.", 'name the thing instead of "who has"'),
        ("The first one that ends wins.", 'name the thing instead of "one that"'),
        ("Take the small ones.", 'name the thing instead of "the small ones"'),
        ("So does one of 32 bytes.", 'name the thing instead of "one of"'),
        ("Half of it is copied.", 'name the thing instead of "of it"'),
        ("The tensor is to be freed.", 'write "must", "should" or "can" instead of "is to be"'),
        ("The GPU waits, too.", 'write "also" before the verb instead of ", too"'),
        ("The result tells the reason.", 'write "shows", "prints" or "reports" instead of "tells"'),
        ("The value stands in a file.", 'write "is" instead of "stands"'),
        ("The run goes on.", 'write "continues" or "is running" instead of "goes on"'),
        ("A cast mends that.", 'write "fix" instead of "mends"'),
        (
            "The arms are held against each other.",
            'write "compared with" instead of "held against"',
        ),
        (
            "A worker runs beside the loop.",
            'write "next to" or "while ... runs" instead of "beside"',
        ),
        ("It fails in silence.", 'write "without a message" instead of "in silence"'),
        ("The queue begins anew.", 'write "again" instead of "anew"'),
    ],
)
def test_each_pattern_has_its_advice(tmp_path: Path, sentence: str, advice: str) -> None:
    assert warnings(tmp_path, f"A first sentence. {sentence}") == [(3, f'"{sentence}": {advice}')]


@pytest.mark.parametrize(
    "sentence",
    [
        "A user who has two GPUs sees both.",
        "A tensor of ones is allocated.",
        "This is one of the two arms.",
        "The code `what stands, too` is verbatim.",
        'The book says "what stands, too" about it.',
    ],
)
def test_plain_english_has_no_warning(tmp_path: Path, sentence: str) -> None:
    assert warnings(tmp_path, sentence) == []


def test_sentence_with_several_patterns_is_one_warning(tmp_path: Path) -> None:
    (warning,) = warnings(tmp_path, "Of two arms one that waits is slow, too.")

    assert warning[1].count("; ") == 2


def test_warning_has_the_line_where_its_sentence_begins(tmp_path: Path) -> None:
    intro = "A slice is a call.\nIt is short. The loop\ngoes on. Half\nof it is a call.\n\nThe loop goes on."

    assert [line for line, _ in warnings(tmp_path, intro, "the sum\n  goes on")] == [4, 5, 8, 14]


def test_broken_or_missing_scenario_has_no_warning(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text('"""What is it, too."""\n(')
    scenario = read_scenario(path)
    path.unlink()

    assert check_words(scenario) == []
    assert check_words(scenario._replace(error="")) == []
