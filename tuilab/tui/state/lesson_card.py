"""What a user who learns sees after the run of a lesson: the answer, the advice and the score."""

from collections.abc import Sequence
from dataclasses import dataclass

from tuilab.catalogue.lesson import takeaway
from tuilab.catalogue.scenario import Scenario
from tuilab.catalogue.stated_claims import intro_of
from tuilab.judging.prediction import describe_prediction
from tuilab.record.summary import RunSummary
from tuilab.runs import lesson_score


@dataclass(frozen=True)
class LessonCard:
    """The card of a finished lesson."""

    place: str  # of the lesson in the course, as "Lesson 3 of 83"
    answer: str  # what was predicted and measured; empty without a prediction
    advice: str  # what to do in practice; empty if the lesson does not say it
    score: str
    upcoming: str  # the name of the next lesson; empty if all lessons are done


def make_lesson_card(
    summary: RunSummary, scenario: Scenario, lessons: Sequence[Scenario]
) -> LessonCard | None:
    """Return the card of the run of a lesson; None if the scenario is no lesson of the course."""
    names = [lesson.id for lesson in lessons]
    if scenario.id not in names:
        return None
    number = names.index(scenario.id) + 1
    learned = lesson_score.read()
    upcoming = lesson_score.upcoming(lessons, learned)
    return LessonCard(
        place=f"Lesson {number} of {len(names)}",
        answer=describe_prediction(summary.run, summary.claims.values()),
        advice=takeaway(intro_of(scenario.lesson)),
        score=lesson_score.describe_score(lessons, learned),
        upcoming=upcoming.id if upcoming else "",
    )
