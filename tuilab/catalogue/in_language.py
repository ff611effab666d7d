"""Tells of a run in the language that was chosen: what is read from its record is English, and stays so in every file."""

from collections.abc import Callable, Iterable

from tuilab import language
from tuilab.catalogue.scenario import Scenario
from tuilab.catalogue.translation import Translation, of, said
from tuilab.record.summary import RunSummary


def speaker(scenarios: Callable[[], Iterable[Scenario]]) -> Callable[[RunSummary], None]:
    """Return what puts the words of one of these scenarios into a summary of its run; for English they are not even listed."""
    if language.chosen() == language.ENGLISH:
        return lambda summary: None
    known = {(scenario.topic, scenario.id): scenario for scenario in scenarios()}

    def speak(summary: RunSummary) -> None:
        run = summary.run
        scenario = known.get((run.topic, run.scenario)) if run else None
        if scenario and (words := of(scenario)):
            _tell(summary, scenario, words)

    return speak


def _tell(summary: RunSummary, scenario: Scenario, words: Translation) -> None:
    """Translate what is shown; what the lesson said in other words when the run was made stays as it is."""
    english = {claim.key: claim.text for claim in scenario.claims}
    claims = said(scenario, words)
    summary.is_translated = True
    for claim in summary.claims.values():
        if claim.key in claims and claim.text == english.get(claim.key):
            claim.text = claims[claim.key]
    if summary.run and words.title and summary.run.title == scenario.title:
        summary.run.title = words.title
    for stage in summary.stages:
        stage.name = words.labels.get(stage.name, stage.name)
    for axes in summary.axes.values():
        axes.x, axes.y = (words.labels.get(text, text) for text in (axes.x, axes.y))
    for shown in (*summary.figures.values(), *summary.images.values(), *summary.texts):
        shown.title = words.labels.get(shown.title, shown.title)
