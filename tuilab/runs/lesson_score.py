"""Which lessons this user has done, and what was predicted of them: `learned.jsonl` in the user's state folder.

A run adds a line of JSON at its end where it says something new: the first of a lesson, and the first with a prediction. It
is added in one write, so that two runs at once lose nothing; a line that cannot be read is passed over.
"""

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
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

_LIMIT = 4 * 1024 * 1024
_MOST = 10**300  # a larger number is none of ours, and a whole one no float


@dataclass(frozen=True)
class Learned:
    """A lesson that was done: by which run, and where there was a prediction, that and what came out."""

    lesson: str
    run: str
    predicted: float | None = None
    measured: float | None = None

    @property
    def nearness(self) -> Nearness | None:
        """How near the prediction came."""
        return (
            None
            if self.predicted is None or self.measured is None
            else rate_prediction(self.predicted, self.measured)
        )


def read() -> dict[str, Learned]:
    """Return the lessons that were done, by name; of a prediction the first counts, which was made without knowing."""
    found: dict[str, Learned] = {}

    def take(line: dict[str, Any]) -> None:
        one = Learned(
            **{field.name: line[field.name] for field in fields(Learned) if field.name in line}
        )
        if not _is_plain(one):
            raise ValueError("it names another lesson")
        if _is_news(one, found):
            found[one.lesson] = one

    user_data.read_lines(places.score_file(), take, _LIMIT)
    return found


def note(summary: RunSummary, run_dir: Path) -> str:
    """Note what a judged run says of its lesson, if that is new; return why it cannot be kept: the run is none the worse."""
    run = summary.run
    if (
        run is None
        or _was_in_vain(summary)
        or (run.sweep and has_other_values(run.sweep.point, run.changed))
    ):
        return ""
    answer = find_answer(summary.claims.values())
    is_scored = run.prediction is not None and answer is not None and not describe_unscored(run)
    one = Learned(
        run.scenario,
        run_dir.name,
        *((run.prediction, answer.value) if is_scored and answer else ()),
    )
    try:
        if _is_news(one, read()):
            os.makedirs(os.path.dirname(places.score_file()), mode=0o700, exist_ok=True)
            user_data.append_line(places.score_file(), vars(one), _LIMIT)
    except (OSError, TuilabError) as problem:
        return f"{places.score_file()}: {getattr(problem, 'strerror', None) or problem}"
    return ""


def _was_in_vain(summary: RunSummary) -> bool:
    """Say whether a run that its user wanted otherwise could test nothing here: the lesson as it comes may say more."""
    verdicts = {claim.verdict.verdict for claim in summary.claims.values() if claim.verdict}
    return bool(summary.run and summary.run.changed) and verdicts <= {Verdict.NOT_TESTABLE}


def _is_news(one: Learned, known: dict[str, Learned]) -> bool:
    earlier = known.get(one.lesson)
    return earlier is None or (earlier.nearness is None and one.nearness is not None)


def _is_plain(one: Learned) -> bool:
    """Say whether a line holds what we write."""
    return (
        isinstance(one.lesson, str)
        and isinstance(one.run, str)
        and _is_number(one.predicted)
        and _is_number(one.measured)
    )


def _is_number(value: object) -> bool:
    return value is None or (
        isinstance(value, int | float) and abs(value) < _MOST
    )  # not NaN, nor Inf


def upcoming(lessons: Sequence[Scenario], learned: Mapping[str, Learned]) -> Scenario | None:
    """Return the first lesson of the course that was not done."""
    return next(
        (lesson for lesson in lessons if lesson.id not in learned and not lesson.error), None
    )


def done(lessons: Sequence[Scenario], learned: Mapping[str, Learned]) -> list[Learned]:
    """Return what is known of those lessons that were done, in their order."""
    return [learned[lesson.id] for lesson in lessons if lesson.id in learned]


def describe_score(lessons: Sequence[Scenario], learned: Mapping[str, Learned]) -> str:
    """Return the score in a sentence."""
    known = done(lessons, learned)
    counts = Counter(one.nearness for one in known if one.nearness)
    said = f"{len(known)} of {plural(len(lessons), 'lesson')} done"
    if not counts:
        return said
    near = ", ".join(f"{counts[one]} {NEARNESS_TEXTS[one]}" for one in Nearness if counts[one])
    return f"{said}; of {plural(counts.total(), 'prediction')} {near}"
