"""The lesson of a scenario, laid out for reading, with what its claims came to on this box."""

from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar

from textual.content import Content

from tuilab.catalogue import stated_claims
from tuilab.catalogue.scenario import Scenario, StatedClaim
from tuilab.catalogue.stated_claims import match
from tuilab.catalogue.translation import translated
from tuilab.record.states import RunState
from tuilab.record.verdicts import Verdict
from tuilab.runs.past_runs import PastRun, began, representative_past_run, verdict_on
from tuilab.runs.representative import ScenarioStatus
from tuilab.text.display import show
from tuilab.tui.looks.lesson_layout import hang, heading, lay_out, wrap_lines
from tuilab.tui.looks.marks import mark, state_words, to_content, verdict_words
from tuilab.tui.state.command_line import check_words
from tuilab.tui.state.command_line import line as spell_command
from tuilab.tui.state.draft import Draft
from tuilab.tui.state.own.own_commands import OwnCommand
from tuilab.tui.widgets.search import SearchedLines


class Lesson(SearchedLines):
    """What a scenario teaches, or what a topic has."""

    PLACE: ClassVar[str] = "lesson"
    called = "the lesson"

    def __init__(self) -> None:
        super().__init__(id="lesson")
        self._scenario: Scenario | None = None
        self._topic: Sequence[Scenario] = ()
        self._is_whole_topic = True
        self._statuses: Mapping[str, ScenarioStatus] = {}
        self._to_type: Sequence[str] = ()  # where the filter leaves nothing
        self._last: PastRun | None = None

    def fill(self, draft: Draft, runs: Sequence[PastRun]) -> None:
        """Show a scenario's lesson, with the verdicts of the run that represents it."""
        last = representative_past_run(runs)
        is_other = draft.scenario is not self._scenario
        if is_other or last is not self._last:
            is_other_file = self._scenario is None or draft.scenario.path != self._scenario.path
            self._scenario, self._last, self._topic = draft.scenario, last, ()
            self.renew(from_top=is_other_file)

    def show_topic(
        self,
        scenarios: Sequence[Scenario],
        statuses: Mapping[str, ScenarioStatus],
        *,
        is_whole: bool,
    ) -> None:
        """Show what a topic has, as far as the filter leaves it."""
        self._scenario, self._topic, self._statuses, self._to_type = None, scenarios, statuses, ()
        self._is_whole_topic = is_whole
        self.renew(from_top=True)

    def show_none(self, topics: Sequence[str]) -> None:
        """Show what a filter takes that leaves nothing."""
        self._scenario, self._topic, self._to_type = None, (), topics
        self.renew(from_top=True)

    def lay_out(self, width: int) -> list[Content]:
        width -= 1  # a column of air before the bar
        if self._scenario is None and self._to_type:
            return list(_none_lines(self._to_type, width))
        if self._scenario is None:
            return list(
                _topic_lines(self._topic, self._statuses, width, is_whole=self._is_whole_topic)
            )
        if self._scenario.error:
            return list(_error_lines(self._scenario, width))
        return list(_lesson_lines(self._scenario, self._last, width))


def _none_lines(topics: Sequence[str], width: int) -> Iterator[Content]:
    words = "A scenario matches if its name, topic, title or lesson contains every word. `esc` shows all."
    yield from lay_out(words, width)
    yield Content("")
    yield heading("Topics")
    yield from wrap_lines(to_content("  ".join(topics), 2000, "$text-secondary"), width)


def _topic_lines(
    scenarios: Sequence[Scenario],
    statuses: Mapping[str, ScenarioStatus],
    width: int,
    *,
    is_whole: bool,
) -> Iterator[Content]:
    if isinstance(scenarios[0], OwnCommand):
        yield from lay_out(
            "`enter` on a command opens its form; `enter` in the form runs it again.", width
        )
        yield Content("")
        scenarios = [one for one in scenarios if isinstance(one, OwnCommand) and one.words]
        if not scenarios:
            yield from lay_out("You have not run any yet: `tuilab exec -- python train.py`", width)
    usable = sum(not (scenario.error or isinstance(scenario, OwnCommand)) for scenario in scenarios)
    which = "" if is_whole else " that the filter shows"
    several = f"all {usable}{which} with their defaults: timed ones one after another, the others at the same time"
    what = several if usable > 1 else f"the only scenario{which} with its defaults"
    if usable:
        yield from lay_out(f"`enter` runs {what}.", width)
        yield Content("")
    for scenario in scenarios:
        if isinstance(scenario, OwnCommand):
            yield from hang(
                state_words(scenario.state).truncate(1), to_content(scenario.title, 300), width
            )
            continue
        verdict = statuses.get(scenario.id, ScenarioStatus()).verdict
        sign = Content.styled("!", "$text-error") if scenario.error else mark(verdict)
        yield from hang(sign, to_content(scenario.title or scenario.id, 300, "bold"), width)
        about = f"cannot be used: {scenario.error}" if scenario.error else scenario.id
        yield from hang(Content(" "), to_content(about, 300, "$text-muted"), width)


def _error_lines(scenario: Scenario, width: int) -> Iterator[Content]:
    yield Content.styled("! This file cannot be used", "bold $text-error")
    for text, style in ((scenario.error, ""), (scenario.path, "$text-muted")):
        yield Content("")
        yield from wrap_lines(to_content(text, 2000, style), width)
    yield Content("")
    yield Content("To see everything that is wrong with it:")
    yield from to_content(spell_command(check_words(scenario.path)), 2000, "$text-secondary").wrap(
        width
    )


def _lesson_lines(scenario: Scenario, last: PastRun | None, width: int) -> Iterator[Content]:
    lesson = translated(scenario).lesson
    if last is not None and last.lacks:
        yield from hang(
            mark(Verdict.NOT_TESTABLE),
            to_content(f"not testable here: {last.lacks}", 500, "bold"),
            width,
        )
        yield Content("")
    yield from lay_out(stated_claims.intro_of(lesson), width)
    if scenario.builds_on:
        yield Content("")
        yield from wrap_lines(
            to_content(f"Builds on {' and '.join(scenario.builds_on)}.", 200, "$text-muted"), width
        )
    for name, text in stated_claims.sections_of(lesson).items():
        yield Content("")
        yield heading(show(name, 100))
        if any(map(stated_claims.key_of, stated_claims.bullets(text))):
            yield from lay_out(text, width, lambda bullet: _found(_claim(bullet, scenario), last))
            if last is not None:
                yield from _when(last, width)
            continue
        yield from lay_out(text, width)
        yield from _answer(last, width) if name == "Predict" and last is not None else ()


def _answer(last: PastRun, width: int) -> Iterator[Content]:
    """Yield what came out for the question, and what was predicted; nothing where no claim answered it."""
    from tuilab.judging.prediction import (  # for who has run it: the first picture does not wait for it
        describe_prediction,
        find_answer,
    )

    found = find_answer(last.claims)
    said = describe_prediction(last.run, last.claims) or (
        f"measured {found.value:.4g}" if found else ""
    )
    yield from wrap_lines(to_content(said, 200, "bold"), width) if said else ()


def _claim(bullet: str, scenario: Scenario) -> StatedClaim | None:
    claim = stated_claims.stated(bullet)
    return match(claim.key or claim.text, scenario.claims)


def _when(last: PastRun, width: int) -> Iterator[Content]:
    changed = ["quick"] if last.entry.quick else []
    changed += [f"{name}={value}" for name, value in last.changes.items()]
    changes = ", ".join(changed) or "the defaults"
    ended = "" if last.state == RunState.SUCCEEDED else f", {last.state}"
    gpus = last.entry.gpus
    where = f" on {' and '.join(gpus)}; results may differ on another GPU" if gpus else ""
    words = f"The marks are from the run of {began(last.run_dir)} with {changes}{ended}{where}."
    yield Content("")
    yield from wrap_lines(to_content(words, 500, "$text-muted"), width)


def _found(claim: StatedClaim | None, last: PastRun | None) -> tuple[Content, Content]:
    """Return the mark in the place of a bullet, and what was measured when it was anything but supported."""
    verdict = verdict_on(claim, last) if last else None
    if verdict is None:
        return Content.styled("•", "$primary"), Content("")
    if verdict.verdict == Verdict.SUPPORTED:
        return mark(verdict.verdict), Content("")
    words = verdict_words(verdict.verdict)
    why = to_content(f": {verdict.why}" if verdict.why else "", 300, "$text-muted")
    return mark(verdict.verdict), words[2:] + why
