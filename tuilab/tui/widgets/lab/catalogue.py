"""The list of scenarios by topic, each with the mark of its last verdict on this machine."""

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

_VERDICT_WORDS = {
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
_MAX_CHANGE = 10  # characters of what was changed in a run
_COMMAND_INDENT = 4  # columns before the words of a command
_WIDE = 56  # columns from which on titles are next to names
_MAX_NAME = 30  # columns that are reserved for names next to titles
_MIN_LEFT = 12  # columns for the left text of a line; with fewer, there is no right text


class CatalogueRow(NamedTuple):
    """A line of the catalogue: a topic, or one of its scenarios."""

    topic: str
    scenario: Scenario | None = None


class Catalogue(PickList):
    """Topics that open and close, with scenarios below them. A filter leaves some of them out."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("space", "toggle_topic", show=False)]

    def __init__(self, scenarios: Sequence[Scenario]) -> None:
        super().__init__(id="catalogue")
        self._scenarios = scenarios
        self.statuses: Mapping[str, ScenarioStatus] = {}
        self._closed_topics: set[str] = set()
        self._filter = ""
        self._matching = scenarios  # in the order of the course, with a filter the best match first
        self._rows = list(self._make_rows())

    # ---- what the list has

    @property
    def count(self) -> int:
        return len(self._rows)

    @property
    def row(self) -> CatalogueRow | None:
        """The row at the cursor; None if the list is empty."""
        if self.cursor >= len(self._rows):
            return None
        return self._rows[self.cursor]

    @property
    def matching(self) -> Sequence[Scenario]:
        """The scenarios that match the filter."""
        return self._matching

    @property
    def filter_words(self) -> str:
        """The words of the filter."""
        return self._filter

    @property
    def topics(self) -> list[str]:
        """The topics of all scenarios, with or without a match."""
        return list(dict.fromkeys(scenario.topic for scenario in self._scenarios))

    @property
    def names(self) -> list[str]:
        """The names of all topics and scenarios, safe to show."""
        ids = [scenario.id for scenario in self._scenarios]
        return [show(name, 100) for name in self.topics + ids]

    def of_topic(self, topic: str) -> list[Scenario]:
        """Return the scenarios of a topic that match the filter."""
        return [scenario for scenario in self._matching if scenario.topic == topic]

    def is_whole(self, topic: str) -> bool:
        """Return whether all scenarios of a topic match the filter."""
        all_scenarios = [scenario for scenario in self._scenarios if scenario.topic == topic]
        return len(self.of_topic(topic)) == len(all_scenarios)

    def verdict(self, scenario: Scenario) -> str:
        """Return the verdict on a scenario; empty if it never ran."""
        return self._status(scenario).verdict

    def _status(self, scenario: Scenario) -> ScenarioStatus:
        return self.statuses.get(scenario.id, ScenarioStatus())

    # ---- changes

    def replace_scenarios(self, scenarios: Sequence[Scenario]) -> None:
        """Show these scenarios. The cursor stays on its file, even if its content has changed."""
        old_row = self.row
        old_cursor = self.cursor
        self._scenarios = scenarios
        self._set_filter(self._filter)
        if old_row and old_row.scenario:
            for scenario in scenarios:
                if scenario.path == old_row.scenario.path:
                    self._rebuild(CatalogueRow(scenario.topic, scenario))
                    return
        self._rebuild(old_row)
        if self.row != old_row:
            self.move_to(old_cursor)

    def show_statuses(self, statuses: Mapping[str, ScenarioStatus]) -> None:
        """Show the status of each scenario."""
        if statuses != self.statuses:
            self.statuses = dict(statuses)
            self.renew()

    def filter(self, text: str) -> None:
        """Show only the scenarios that contain every word of a text, and go to the best match."""
        old_row = self.row
        self._set_filter(text.strip())
        if self._filter:
            self._rebuild(None)
        else:
            self._rebuild(old_row)

    def _set_filter(self, text: str) -> None:
        """Keep the words of a filter and find what matches them; the rows are not made again."""
        self._filter = text
        self._matching = self._scenarios
        if text:
            self._matching = matching(self._scenarios, text)

    def go_to(self, name: str) -> bool:
        """Put the cursor on the scenario of an id or a path, and open its topic.

        Return False if it is not listed. If the filter hides it, return False as well, and put the
        cursor on the first scenario.
        """
        for scenario in self._scenarios:
            if name in (scenario.id, scenario.path):
                row = CatalogueRow(scenario.topic, scenario)
                self._closed_topics.discard(scenario.topic)
                self._rebuild(row)
                return self.row == row
        return False

    def go_to_topic(self, topic: str) -> None:
        """Put the cursor on a topic, which must be listed."""
        self.move_to(self._rows.index(CatalogueRow(topic)))

    def open_topic(self, topic: str) -> None:
        """Show the scenarios of a topic."""
        if topic in self._closed_topics:
            self._closed_topics.remove(topic)
            self._rebuild(self.row)

    def close_topic(self, topic: str) -> None:
        """Hide the scenarios of a topic, and put the cursor on the topic."""
        if topic not in self._closed_topics:
            self._closed_topics.add(topic)
            self._rebuild(CatalogueRow(topic))

    def is_open(self, topic: str) -> bool:
        """Return whether the scenarios of a topic are shown. With a filter, all topics are open."""
        return topic not in self._closed_topics or bool(self._filter)

    def action_toggle_topic(self) -> None:
        """Open or close the topic of the row at the cursor, which may be a scenario."""
        if self.row is None:
            return
        if self.is_open(self.row.topic):
            self.close_topic(self.row.topic)
        else:
            self.open_topic(self.row.topic)

    def on_click(self, event: events.Click) -> None:
        is_on_topic = self.row is not None and self.row.scenario is None
        is_on_row = event.y + self.scroll_offset.y < self.count
        if is_on_topic and is_on_row and event.chain == 1:
            self.action_toggle_topic()

    def _rebuild(self, target: CatalogueRow | None) -> None:
        """Make the rows again and put the cursor on a row, else on the first scenario."""
        self._rows = list(self._make_rows())
        self.cursor = self._place_of(target)
        self.renew()
        self.scroll_to_cursor()
        self.post_message(self.Moved(self))

    def _place_of(self, target: CatalogueRow | None) -> int:
        """Return the place of a row, else of the first scenario."""
        if target is not None and target in self._rows:
            return self._rows.index(target)
        for place, row in enumerate(self._rows):
            if row.scenario:
                return place
        return 0

    def _make_rows(self) -> Iterator[CatalogueRow]:
        """Yield each topic with a match, and below an open one its scenarios that match."""
        topics = dict.fromkeys(scenario.topic for scenario in self._matching)
        for topic in topics:
            yield CatalogueRow(topic)
            if self.is_open(topic):
                for scenario in self.of_topic(topic):
                    yield CatalogueRow(topic, scenario)

    # ---- drawing

    def lay_out(self, width: int) -> Sequence[Content]:
        """Return a line for each row; without rows, the reason and what to do."""
        if not self._rows:
            reason = "no scenarios; write one: tuilab new NAME"
            if self._filter:
                reason = "no scenario has all these words; esc clears"
            return Content.styled(reason, "$text-muted").wrap(max(width, 8))
        commands = []
        longest = 0
        for row in self._rows:
            if isinstance(row.scenario, OwnCommand):
                commands.append(_command_words(row.scenario))
            elif row.scenario:
                longest = max(longest, len(row.scenario.id))
        name_width = min(longest, _MAX_NAME)
        # Commands that would look alike once they are cut are cut elsewhere.
        shown_commands = distinct_labels(commands, max(width - _COMMAND_INDENT, 1))
        lines = []
        for row in self._rows:
            if isinstance(row.scenario, OwnCommand):
                command = shown_commands[_command_words(row.scenario)]
                lines.append(_draw_command(row.scenario, command, width))
            elif row.scenario:
                lines.append(self._draw_scenario(row.scenario, width, name_width))
            else:
                lines.append(self._draw_topic(row.topic, width))
        return lines

    def _draw_topic(self, topic: str, width: int) -> Content:
        """Return the line of a topic: its name, and how many of its scenarios have which verdict.

        The topic of the user's commands has only its name.
        """
        scenarios = self.of_topic(topic)
        arrow = "▾" if self.is_open(topic) else "▸"
        if isinstance(scenarios[0], OwnCommand):
            return Content.styled(f"{arrow} {topic}", "bold")
        left = Content.styled(f"{arrow} {show(topic, 100)}", "bold")
        counts = tally(map(self.verdict, scenarios)) or Content.styled("0", "$text-muted")
        right = Content.assemble(counts, (f" of {len(scenarios)}", "$text-muted"))
        return spread(left, right, width)

    def _draw_scenario(self, scenario: Scenario, width: int, name_width: int) -> Content:
        """Return the line of a scenario: mark, name, title if there is room, and verdict."""
        if scenario.error:
            left = _mark_and_name(scenario, Content.styled("!", "$text-error"), "$text-muted")
            if width < _WIDE:
                return spread(left, Content.styled("not usable", "$text-error"), width)
            title = f"cannot be used: {scenario.error}"
        else:
            left = _mark_and_name(scenario, mark(self.verdict(scenario)), "")
            title = scenario.title
        if width >= _WIDE:
            left = left.pad_right(name_width + 6 - left.cell_length)
            left += to_content(title, 200, "$text-muted")
        return spread(left, self._verdict_words(scenario), width)

    def _verdict_words(self, scenario: Scenario) -> Content:
        """Return the verdict in words, and what was changed in the run that has it."""
        verdict, change = self._status(scenario)
        if not verdict:
            return Content("")
        colour = mark(verdict).spans[0].style
        words = Content.styled(_VERDICT_WORDS.get(verdict, ""), colour)
        if not change or verdict in (RUNNING, QUEUED):
            return words
        if len(change) > _MAX_CHANGE:
            change = "changed"  # the lesson has the change in full
        separator = ", " if words else ""
        return Content.assemble(words, separator, (change, "$text-muted"))


def _mark_and_name(scenario: Scenario, sign: Content, name_style: str) -> Content:
    name = to_content(scenario.id, 100, name_style)
    return Content("").join([Content("  "), sign, Content(" "), name])


def _draw_command(command: OwnCommand, shown_command: str, width: int) -> Content:
    """Return the line of a user's command, with the mark of its last run."""
    sign = Content.styled("+", "$text-muted")
    if command.state:
        sign = state_words(command.state).truncate(1)
    line = Content.assemble("  ", sign, " ", to_content(shown_command, 200))
    return spread(line, Content(""), width)


def _command_words(command: OwnCommand) -> str:
    """Return a command with its values in a sweep before it."""
    parts = [part for part in (command.point, command.id) if part]
    return "  ".join(parts)


def spread(left: Content, right: Content, width: int) -> Content:
    """Return two texts at the ends of a line. If both do not fit, the left one is cut."""
    room = width - right.cell_length
    if right:
        room -= 1  # a space between the two
    if room < _MIN_LEFT:
        return left.truncate(width, ellipsis=True)
    left = left.truncate(room, ellipsis=True)
    space = Content(" " * (width - left.cell_length - right.cell_length))
    return Content("").join([left, space, right])
