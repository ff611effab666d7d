"""The scenarios by topic, each with the mark of its last verdict on this box."""

from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar, NamedTuple

from textual import events
from textual.binding import Binding, BindingType
from textual.content import Content

from tuilab.catalogue.scenario import Scenario
from tuilab.catalogue.search import matching
from tuilab.record.verdicts import FAILED, QUEUED, RUNNING, Verdict
from tuilab.runs.representative import ScenarioStatus
from tuilab.text.display import distinct_labels, show
from tuilab.tui.looks.marks import mark, state_words, tally, to_content
from tuilab.tui.state.own.own_commands import OwnCommand
from tuilab.tui.widgets.lines import PickList

_WORDS = {
    Verdict.WEAKER: "weaker",
    Verdict.NO_DIFFERENCE: "no difference",
    Verdict.REFUTED: "refuted",
    Verdict.INCONCLUSIVE: "inconclusive",
    Verdict.INVALID: "invalid",
    Verdict.NOT_TESTABLE: "not testable",
    FAILED: "failed",
    RUNNING: "running",
    QUEUED: "queued",
}
_SHORT = 10  # characters
_MARKED = 4  # columns before the words of a command
_GENEROUS = 56  # columns from which on titles stand beside names


class CatalogueRow(NamedTuple):
    """A line of the catalogue: a topic, or one of its scenarios."""

    topic: str
    scenario: Scenario | None = None


class Catalogue(PickList):
    """Topics that open and close, scenarios below them; what is typed into the filter narrows it."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("space", "toggle_topic", show=False)]

    def __init__(self, scenarios: Sequence[Scenario]) -> None:
        super().__init__(id="catalogue")
        self._scenarios = scenarios
        self.statuses: Mapping[str, ScenarioStatus] = {}
        self._folded: set[str] = set()
        self._filter = ""
        self._matching = scenarios  # in the order of the course, or what the filter means first
        self._rows = list(self._make_rows())

    @property
    def count(self) -> int:
        return len(self._rows)

    @property
    def row(self) -> CatalogueRow | None:
        """Where the cursor is; None when there is nothing."""
        return self._rows[self.cursor] if self.cursor < len(self._rows) else None

    @property
    def matching(self) -> Sequence[Scenario]:
        """The scenarios that the filter leaves."""
        return self._matching

    @property
    def words(self) -> str:
        """What was typed into the filter."""
        return self._filter

    @property
    def topics(self) -> list[str]:
        """The topics of all scenarios, whatever the filter leaves."""
        return [*dict.fromkeys(scenario.topic for scenario in self._scenarios)]

    @property
    def names(self) -> list[str]:
        """What topics and scenarios are called, as it can be shown."""
        return [
            show(name, 100)
            for name in [*self.topics, *(scenario.id for scenario in self._scenarios)]
        ]

    def of_topic(self, topic: str) -> list[Scenario]:
        """Return the scenarios of a topic that the filter leaves."""
        return [scenario for scenario in self._matching if scenario.topic == topic]

    def is_whole(self, topic: str) -> bool:
        """Whether the filter leaves all scenarios of a topic."""
        return len(self.of_topic(topic)) == sum(
            scenario.topic == topic for scenario in self._scenarios
        )

    def take(self, scenarios: Sequence[Scenario]) -> None:
        """Show these scenarios; the cursor stays on its own, whatever its file says now."""
        here, at = self.row, self.cursor
        self._scenarios = scenarios
        self._narrow(self._filter)
        same = (
            one for one in scenarios if here and here.scenario and one.path == here.scenario.path
        )
        scenario = next(same, None)
        self._rebuild(CatalogueRow(scenario.topic, scenario) if scenario else here)
        if self.row != here and scenario is None:
            self.move_to(at)

    def show_statuses(self, statuses: Mapping[str, ScenarioStatus]) -> None:
        """Show the status of each scenario."""
        if statuses != self.statuses:
            self.statuses = dict(statuses)
            self.renew()

    def verdict(self, scenario: Scenario) -> str:
        """Return the verdict on a scenario; empty if it never ran."""
        return self._status(scenario).verdict

    def _status(self, scenario: Scenario) -> ScenarioStatus:
        return self.statuses.get(scenario.id, ScenarioStatus())

    def filter(self, text: str) -> None:
        """Show only the scenarios that contain every word of a text, and go to what it names best."""
        here = self.row
        self._narrow(text.strip())
        self._rebuild(None if self._filter else here)

    def _narrow(self, text: str) -> None:
        self._filter = text
        self._matching = matching(self._scenarios, text) if text else self._scenarios

    def go_to(self, name: str) -> bool:
        """Put the cursor on a scenario, named by its id or its path; False when there is none of that name."""
        found = next(
            (scenario for scenario in self._scenarios if name in (scenario.id, scenario.path)), None
        )
        if found is None:
            return False
        self._folded.discard(found.topic)
        self._rebuild(CatalogueRow(found.topic, found))
        return self.row == CatalogueRow(found.topic, found)

    def go_to_topic(self, topic: str) -> None:
        """Put the cursor on a topic."""
        self.move_to(self._rows.index(CatalogueRow(topic)))

    def set_open(self, topic: str, is_open: bool) -> None:
        """Open or close a topic; the cursor stays, or goes to the topic."""
        if is_open == (topic in self._folded):
            (self._folded.discard if is_open else self._folded.add)(topic)
            self._rebuild(CatalogueRow(topic) if not is_open else self.row)

    def is_open(self, topic: str) -> bool:
        """Whether the scenarios of a topic are shown; a filter shows all that it leaves."""
        return topic not in self._folded or bool(self._filter)

    def action_toggle_topic(self) -> None:
        if self.row:
            self.set_open(self.row.topic, not self.is_open(self.row.topic))

    def on_click(self, event: events.Click) -> None:
        if (
            self.row
            and self.row.scenario is None
            and event.chain == 1
            and event.y + self.scroll_offset.y < self.count
        ):
            self.action_toggle_topic()

    def _rebuild(self, wanted: CatalogueRow | None) -> None:
        self._rows = list(self._make_rows())
        same = [number for number, row in enumerate(self._rows) if row == wanted]
        scenarios = [number for number, row in enumerate(self._rows) if row.scenario]
        self.cursor = (same or scenarios or [0])[0]
        self.renew()
        self.scroll_to_cursor()
        self.post_message(self.Moved(self))

    def _make_rows(self) -> Iterator[CatalogueRow]:
        for topic in dict.fromkeys(scenario.topic for scenario in self._matching):
            scenarios = self.of_topic(topic)
            yield CatalogueRow(topic)
            if self.is_open(topic):
                yield from (CatalogueRow(topic, scenario) for scenario in scenarios)

    def lay_out(self, width: int) -> Sequence[Content]:
        if not self._rows:
            none = (
                "no scenario has all these words; esc clears"
                if self._filter
                else "no scenarios; write one: tuilab new NAME"
            )
            return Content.styled(none, "$text-muted").wrap(max(width, 8))
        lessons = (
            row.scenario
            for row in self._rows
            if row.scenario and not isinstance(row.scenario, OwnCommand)
        )
        longest = max((len(scenario.id) for scenario in lessons), default=0)
        commands = (row.scenario for row in self._rows if isinstance(row.scenario, OwnCommand))
        told = distinct_labels(map(_words_of, commands), max(width - _MARKED, 1))
        return [self._draw_row(row, width, min(longest, 30), told) for row in self._rows]

    def _draw_row(
        self, row: CatalogueRow, width: int, longest: int, told: Mapping[str, str]
    ) -> Content:
        if isinstance(row.scenario, OwnCommand):
            return _draw_command(row.scenario, width, told)
        return (
            self._draw_scenario(row.scenario, width, longest)
            if row.scenario
            else self._draw_topic(row.topic, width)
        )

    def _draw_topic(self, topic: str, width: int) -> Content:
        scenarios = self.of_topic(topic)
        if isinstance(scenarios[0], OwnCommand):
            return Content.styled(f"{'▾' if self.is_open(topic) else '▸'} {topic}", "bold")
        left = Content.styled(f"{'▾' if self.is_open(topic) else '▸'} {show(topic, 100)}", "bold")
        counts = tally(map(self.verdict, scenarios)) or Content.styled("0", "$text-muted")
        return spread(
            left, Content.assemble(counts, (f" of {len(scenarios)}", "$text-muted")), width
        )

    def _draw_scenario(self, scenario: Scenario, width: int, longest: int) -> Content:
        verdict, of = self._status(scenario)
        sign = Content.styled("!", "$text-error") if scenario.error else mark(verdict)
        name = to_content(scenario.id, 100, "$text-muted" if scenario.error else "")
        left = Content("").join([Content("  "), sign, Content(" "), name])
        if scenario.error and width < _GENEROUS:
            return spread(left, Content.styled("not usable", "$text-error"), width)
        if width >= _GENEROUS:
            title = f"cannot be used: {scenario.error}" if scenario.error else scenario.title
            left = left.pad_right(longest + 6 - left.cell_length) + to_content(
                title, 200, "$text-muted"
            )
        right = Content.styled(
            _WORDS.get(verdict, ""), mark(verdict).spans[0].style if verdict else ""
        )
        if verdict and verdict not in (RUNNING, QUEUED) and of:
            right = Content.assemble(right, ", " if right else "", (_in_short(of), "$text-muted"))
        return spread(left, right, width)


def _draw_command(command: OwnCommand, width: int, told: Mapping[str, str]) -> Content:
    """Return the line of a command of the user's: its words, cut where others have the same, and how its last run ended."""
    sign = (
        state_words(command.state).truncate(1)
        if command.state
        else Content.styled("+", "$text-muted")
    )
    return spread(
        Content.assemble("  ", sign, " ", to_content(told[_words_of(command)], 200)),
        Content(""),
        width,
    )


def _words_of(command: OwnCommand) -> str:
    return "  ".join(filter(None, (command.point, command.id)))


def _in_short(of: str) -> str:
    """Return what was otherwise in a run than usual, in as many cells as there are; the lesson tells it all."""
    return of if len(of) <= _SHORT else "changed"


def spread(left: Content, right: Content, width: int) -> Content:
    """Return two texts at the ends of a line; when there is no room for both, the left one is cut."""
    room = width - right.cell_length - (1 if right else 0)
    if room < 12:
        return left.truncate(width, ellipsis=True)
    left = left.truncate(room, ellipsis=True)
    return Content("").join(
        [left, Content(" " * (width - left.cell_length - right.cell_length)), right]
    )
