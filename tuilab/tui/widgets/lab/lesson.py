"""The lesson of a scenario, with the verdicts on its claims on this machine; or a topic."""

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

_NONE = (
    "A scenario matches if its name, topic, title or lesson contains every word. `esc` shows all."
)
_COMMANDS = "`enter` on a command opens its form; `enter` in the form runs it again."
_NO_COMMANDS = "You have not run any yet: `tuilab exec -- python train.py`"


class Lesson(SearchedLines):
    """Shows the lesson of a scenario, or the scenarios of a topic."""

    PLACE: ClassVar[str] = "lesson"
    search_title = "the lesson"

    def __init__(self) -> None:
        super().__init__(id="lesson")
        self._scenario: Scenario | None = None
        self._past_run: PastRun | None = None  # the run that represents the scenario
        self._topic: Sequence[Scenario] = ()
        self._is_whole_topic = True
        self._statuses: Mapping[str, ScenarioStatus] = {}
        self._all_topics: Sequence[str] = ()  # shown if no scenario matches the filter

    def fill(self, draft: Draft, runs: Sequence[PastRun]) -> None:
        """Show the lesson of a scenario, with the verdicts of the run that represents it."""
        past_run = representative_past_run(runs)
        if draft.scenario is self._scenario and past_run is self._past_run:
            return
        is_other_file = self._scenario is None or draft.scenario.path != self._scenario.path
        self._scenario = draft.scenario
        self._past_run = past_run
        self._topic = ()
        self.renew(from_top=is_other_file)

    def show_topic(
        self,
        scenarios: Sequence[Scenario],
        statuses: Mapping[str, ScenarioStatus],
        *,
        is_whole: bool,
    ) -> None:
        """Show the scenarios of a topic that match the filter; `is_whole` if all of them do."""
        self._scenario = None
        self._topic = scenarios
        self._statuses = statuses
        self._all_topics = ()
        self._is_whole_topic = is_whole
        self.renew(from_top=True)

    def show_none(self, topics: Sequence[str]) -> None:
        """Show how to filter, after a filter without a match, and which topics there are."""
        self._scenario = None
        self._topic = ()
        self._all_topics = topics
        self.renew(from_top=True)

    def lay_out(self, width: int) -> list[Content]:
        """Return the lines of the scenario, its error, or the topic; else how to filter."""
        width -= 1  # keeps a column free before the scroll bar
        if self._scenario is None:
            if self._all_topics:
                return list(_none_lines(self._all_topics, width))
            is_whole = self._is_whole_topic
            return list(_topic_lines(self._topic, self._statuses, width, is_whole=is_whole))
        if self._scenario.error:
            return list(_error_lines(self._scenario, width))
        return list(_lesson_lines(self._scenario, self._past_run, width))


# ---- topics


def _none_lines(topics: Sequence[str], width: int) -> Iterator[Content]:
    yield from lay_out(_NONE, width)
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
    """Yield what the enter key runs, then each scenario with the mark of its verdict.

    `scenarios` are those that match the filter, at least one; `is_whole` if all of the topic do.
    """
    if isinstance(scenarios[0], OwnCommand):
        yield from _command_lines(scenarios, width)
        return
    usable_count = 0
    for scenario in scenarios:
        if not scenario.error and not isinstance(scenario, OwnCommand):
            usable_count += 1
    if usable_count:
        yield from lay_out(_describe_run(usable_count, is_whole=is_whole), width)
        yield Content("")
    for scenario in scenarios:
        if isinstance(scenario, OwnCommand):  # a folder of scenarios may have the same name
            yield from _command_line(scenario, width)
            continue
        if scenario.error:
            sign = Content.styled("!", "$text-error")
            about = f"cannot be used: {scenario.error}"
        else:
            status = statuses.get(scenario.id, ScenarioStatus())
            sign = mark(status.verdict)
            about = scenario.id
        title = to_content(scenario.title or scenario.id, 300, "bold")
        yield from hang(sign, title, width)
        yield from hang(Content(" "), to_content(about, 300, "$text-muted"), width)


def _describe_run(count: int, *, is_whole: bool) -> str:
    """Return which scenarios of a topic the enter key runs."""
    shown = "" if is_whole else " that the filter shows"
    if count == 1:
        return f"`enter` runs the only scenario{shown} with its defaults."
    return (
        f"`enter` runs all {count}{shown} with their defaults: timed ones one after another, "
        "the others at the same time."
    )


def _command_lines(commands: Sequence[Scenario], width: int) -> Iterator[Content]:
    """Yield the lines of the topic of the user's commands. A command without words is a form."""
    yield from lay_out(_COMMANDS, width)
    yield Content("")
    past_commands = []
    for command in commands:
        if isinstance(command, OwnCommand) and command.words:
            past_commands.append(command)
    if not past_commands:
        yield from lay_out(_NO_COMMANDS, width)
    for command in past_commands:
        yield from _command_line(command, width)


def _command_line(command: OwnCommand, width: int) -> list[Content]:
    sign = state_words(command.state).truncate(1)
    return hang(sign, to_content(command.title, 300), width)


# ---- one scenario


def _error_lines(scenario: Scenario, width: int) -> Iterator[Content]:
    """Yield why the file of a scenario cannot be used, and the command that reports it all."""
    yield Content.styled("! This file cannot be used", "bold $text-error")
    yield Content("")
    yield from wrap_lines(to_content(scenario.error, 2000), width)
    yield Content("")
    yield from wrap_lines(to_content(scenario.path, 2000, "$text-muted"), width)
    yield Content("")
    yield Content("To see everything that is wrong with it:")
    command = spell_command(check_words(scenario.path))
    yield from to_content(command, 2000, "$text-secondary").wrap(width)


def _lesson_lines(scenario: Scenario, past_run: PastRun | None, width: int) -> Iterator[Content]:
    """Yield the lesson: what this machine lacks for it, its introduction, and its sections."""
    lesson = translated(scenario).lesson
    if past_run is not None and past_run.lacks:
        reason = to_content(f"not testable here: {past_run.lacks}", 500, "bold")
        yield from hang(mark(Verdict.NOT_TESTABLE), reason, width)
        yield Content("")
    yield from lay_out(stated_claims.intro_of(lesson), width)
    if scenario.builds_on:
        yield Content("")
        earlier_lessons = " and ".join(scenario.builds_on)
        sentence = to_content(f"Builds on {earlier_lessons}.", 200, "$text-muted")
        yield from wrap_lines(sentence, width)
    for name, text in stated_claims.sections_of(lesson).items():
        yield Content("")
        yield heading(show(name, 100))
        yield from _section_lines(name, text, scenario, past_run, width)


def _section_lines(
    name: str, text: str, scenario: Scenario, past_run: PastRun | None, width: int
) -> Iterator[Content]:
    """Yield the lines of a section. Claims have the marks of their verdicts as bullets."""
    has_claims = any(stated_claims.key_of(bullet) for bullet in stated_claims.bullets(text))
    if has_claims:
        yield from lay_out(text, width, lambda bullet: _claim_mark(bullet, scenario, past_run))
        if past_run is not None:
            yield Content("")
            origin = to_content(_describe_origin(past_run), 500, "$text-muted")
            yield from wrap_lines(origin, width)
        return
    yield from lay_out(text, width)
    if name == "Predict" and past_run is not None:
        answer = _describe_answer(past_run)
        if answer:
            yield from wrap_lines(to_content(answer, 200, "bold"), width)


def _describe_answer(past_run: PastRun) -> str:
    """Return the measured and the predicted answer; nothing if no claim answers the question."""
    # imported here: the first picture does not need it
    from tuilab.judging.prediction import describe_prediction, find_answer

    prediction = describe_prediction(past_run.run, past_run.claims)
    if prediction:
        return prediction
    answer = find_answer(past_run.claims)
    if not answer:
        return ""
    return f"measured {answer.value:.4g}"


def _describe_origin(past_run: PastRun) -> str:
    """Return a sentence about the run that the marks are from."""
    values = []
    if past_run.entry.quick:
        values.append("quick")
    values += [f"{name}={value}" for name, value in past_run.changes.items()]
    settings = ", ".join(values) or "the defaults"
    sentence = f"The marks are from the run of {began(past_run.run_dir)} with {settings}"
    if past_run.state != RunState.SUCCEEDED:
        sentence += f", {past_run.state}"
    if past_run.entry.gpus:
        gpus = " and ".join(past_run.entry.gpus)
        sentence += f" on {gpus}; results may differ on another GPU"
    return f"{sentence}."


def _claim_mark(
    bullet: str, scenario: Scenario, past_run: PastRun | None
) -> tuple[Content, Content]:
    """Return the mark in the place of a bullet.

    The second text follows the claim: what was measured, unless the claim is supported.
    """
    verdict = None
    if past_run:
        verdict = verdict_on(_find_claim(bullet, scenario), past_run)
    if verdict is None:
        return Content.styled("•", "$primary"), Content("")
    if verdict.verdict == Verdict.SUPPORTED:
        return mark(verdict.verdict), Content("")
    words = verdict_words(verdict.verdict)[2:]  # without the mark
    reason = f": {verdict.why}" if verdict.why else ""
    return mark(verdict.verdict), words + to_content(reason, 300, "$text-muted")


def _find_claim(bullet: str, scenario: Scenario) -> StatedClaim | None:
    claim = stated_claims.stated(bullet)
    return match(claim.key or claim.text, scenario.claims)
