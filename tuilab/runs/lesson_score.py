"""The lessons that this user has done, with the predictions: `learned.jsonl` in the state folder.

A run appends a line of JSON at its end if it has news: the first run of a lesson, or the first with
a prediction. The line is appended in one write, so that two runs at once lose nothing. A line that
cannot be read is ignored.
"""

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from tuilab.catalogue.scenario import Scenario
from tuilab.errors import TuilabError
from tuilab.judging.prediction import (
    NEARNESS_TEXTS,
    Nearness,
    describe_unscored,
    find_answer,
    rate_prediction,
)
from tuilab.record.summary import RunSummary
from tuilab.record.verdicts import Verdict
from tuilab.runs.representative import has_other_values
from tuilab.storage import places, user_data
from tuilab.text.display import plural

_LIMIT = 4 * 1024 * 1024  # bytes of the file
_MAX_NUMBER = 10**300  # we write no larger number, and a larger integer may fit no float


@dataclass(frozen=True)
class LearnedLesson:
    """A lesson that was done, with the run that did it; and a prediction with the measured value.

    The fields are those of a line of the file.
    """

    lesson: str
    run: str
    predicted: float | None = None
    measured: float | None = None

    @property
    def nearness(self) -> Nearness | None:
        """How near the prediction was to the measured value; None without a prediction."""
        if self.predicted is None or self.measured is None:
            return None
        return rate_prediction(self.predicted, self.measured)


def read() -> dict[str, LearnedLesson]:
    """Return the lessons that were done, by name; lines that are not of our form are ignored.

    The first prediction of a lesson counts, because it was made before the answer was known.
    """
    learned: dict[str, LearnedLesson] = {}

    def add(line: dict[str, Any]) -> None:
        names = [field.name for field in fields(LearnedLesson)]
        lesson = LearnedLesson(**{name: line[name] for name in names if name in line})
        if not _is_valid(lesson):
            raise ValueError("it names another lesson")
        if _is_news(lesson, learned):
            learned[lesson.lesson] = lesson

    user_data.read_lines(places.score_file(), add, _LIMIT)
    return learned


def note(summary: RunSummary, run_dir: Path) -> str:
    """Add a line for the lesson of a judged run, if the run has news.

    Return why the line cannot be written; empty if it was written or there is no news. A run that
    could test nothing, or a point of a sweep with other values, is no news.
    """
    run = summary.run
    if run is None or _was_in_vain(summary):
        return ""
    if run.sweep and has_other_values(run.sweep.point, run.changed):
        return ""
    lesson = LearnedLesson(run.scenario, run_dir.name)
    answer = find_answer(summary.claims.values())
    if run.prediction is not None and answer is not None and not describe_unscored(run):
        lesson = replace(lesson, predicted=run.prediction, measured=answer.value)
    try:
        if _is_news(lesson, read()):
            os.makedirs(os.path.dirname(places.score_file()), mode=0o700, exist_ok=True)
            user_data.append_line(places.score_file(), vars(lesson), _LIMIT)
    except (OSError, TuilabError) as problem:
        return f"{places.score_file()}: {getattr(problem, 'strerror', None) or problem}"
    return ""


def _was_in_vain(summary: RunSummary) -> bool:
    """Return whether a run with changed parameters could test no claim here.

    The lesson with its defaults may be testable.
    """
    if summary.run is None or not summary.run.changed:
        return False
    verdicts = {claim.verdict.verdict for claim in summary.claims.values() if claim.verdict}
    return verdicts <= {Verdict.NOT_TESTABLE}


def _is_news(lesson: LearnedLesson, learned: Mapping[str, LearnedLesson]) -> bool:
    earlier = learned.get(lesson.lesson)
    if earlier is None:
        return True
    return earlier.nearness is None and lesson.nearness is not None


def _is_valid(lesson: LearnedLesson) -> bool:
    """Return whether the fields of a line are of the kinds that we write."""
    if not isinstance(lesson.lesson, str) or not isinstance(lesson.run, str):
        return False
    return _is_number_or_none(lesson.predicted) and _is_number_or_none(lesson.measured)


def _is_number_or_none(value: object) -> bool:
    if value is None:
        return True
    return isinstance(value, int | float) and abs(value) < _MAX_NUMBER  # not NaN, nor Inf


def upcoming(lessons: Sequence[Scenario], learned: Mapping[str, LearnedLesson]) -> Scenario | None:
    """Return the first lesson of the course that was not done; None if all were done."""
    for lesson in lessons:
        if lesson.id not in learned and not lesson.error:
            return lesson
    return None


def done(lessons: Sequence[Scenario], learned: Mapping[str, LearnedLesson]) -> list[LearnedLesson]:
    """Return the results of those lessons that were done, in the order of the lessons."""
    return [learned[lesson.id] for lesson in lessons if lesson.id in learned]


def describe_score(lessons: Sequence[Scenario], learned: Mapping[str, LearnedLesson]) -> str:
    """Return the score in a sentence."""
    results = done(lessons, learned)
    sentence = f"{len(results)} of {plural(len(lessons), 'lesson')} done"
    counts = Counter(result.nearness for result in results if result.nearness)
    if not counts:
        return sentence
    parts = []
    for nearness in Nearness:
        if counts[nearness]:
            parts.append(f"{counts[nearness]} {NEARNESS_TEXTS[nearness]}")
    return f"{sentence}; of {plural(counts.total(), 'prediction')} {', '.join(parts)}"
