"""The warnings of `tuilab check` about a lesson as a whole."""

from pathlib import Path

import pytest

from tuilab.catalogue.check_guide import LONGEST_TITLE, check_guide
from tuilab.catalogue.source import read as read_scenario

LESSON = {
    "title": "Replace a loop over rows by one reduction",
    "practice": "In practice: write x.sum(0).",
    "question": "How many times faster is sum?",
    "claim": "x.sum(0) is faster than a loop",
}
SOURCE = '''\
"""{title}.

A slice is a call.

{practice}

## Predict
{question}

## Look for
- [sum] {claim}

## Try next
`--rows 5`: the loop is short.

## Source
A book.
"""

from tuilab import Lab


def run(lab: Lab, rows: int = 5) -> None:
    lab.claim("sum", True)
'''


def warnings(folder: Path, **changes: str) -> list[tuple[int, str]]:
    path = folder / "mine.py"
    path.write_text(SOURCE.format(**{**LESSON, **changes}))
    return [(line, sentence) for line, sentence in check_guide(read_scenario(path))]


def test_lesson_that_follows_the_guide_has_no_warning(tmp_path: Path) -> None:
    assert warnings(tmp_path) == []
    assert warnings(tmp_path, title="a" * LONGEST_TITLE) == []


@pytest.mark.parametrize(
    ("change", "line", "words"),
    [
        ({"title": "a" * (LONGEST_TITLE + 1)}, 1, "the title has 81 characters"),
        ({"practice": "So write x.sum(0)."}, 1, 'begins with "In practice:"'),
        ({"question": "How many times? And when?"}, 7, "Predict asks 2 questions"),
        ({"claim": "there x.sum(0) is faster"}, 11, 'instead of "there"'),
        ({"claim": "The same holds for a mean"}, 11, 'instead of "The same"'),
    ],
)
def test_lesson_that_lacks_something_has_one_warning(
    tmp_path: Path, change: dict[str, str], line: int, words: str
) -> None:
    ((found_line, sentence),) = warnings(tmp_path, **change)

    assert found_line == line
    assert words in sentence


def test_file_that_cannot_be_read_has_no_warning(tmp_path: Path) -> None:
    warnings(tmp_path)
    scenario = read_scenario(tmp_path / "mine.py")
    (tmp_path / "mine.py").unlink()

    assert check_guide(scenario) == []
