"""The source of a scenario with line numbers; the lines that claim and race are marked."""

import ast
from collections.abc import Mapping, Sequence
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.content import Content
from textual.geometry import Size
from textual.strip import Strip

from tuilab.catalogue.scenario import Scenario
from tuilab.catalogue.stated_claims import match
from tuilab.runs.past_runs import PastRun, representative_past_run, verdict_on
from tuilab.tui.looks.highlight import highlight
from tuilab.tui.looks.marks import mark, to_content
from tuilab.tui.state.draft import Draft
from tuilab.tui.state.own.own_commands import OwnCommand
from tuilab.tui.widgets.lines import strip_of
from tuilab.tui.widgets.search import SearchedLines

_STEP = 8  # columns that a key scrolls sideways


class Source(SearchedLines):
    """Python with a gutter that stays where it is when the code scrolls sideways."""

    PLACE: ClassVar[str] = "code"
    called = "the code"
    DEFAULT_CSS = "Source { overflow-x: auto; scrollbar-size-horizontal: 0; }"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left", "scroll_across(-1)", show=False),
        Binding("right", "scroll_across(1)", show=False),
    ]

    def __init__(self) -> None:
        super().__init__(id="code")
        self._path = ""
        self._scenario: Scenario | None = None
        self._code: list[Content] = []
        self._start = 0  # the first line below the lesson, which has a part of its own
        self._claims: Mapping[int, str] = {}  # by line, counted from 1; empty for a race
        self._signs: Mapping[int, Content] = {}

    def fill(self, draft: Draft, runs: Sequence[PastRun]) -> None:
        """Read and show the file of a scenario, and what its claims came to."""
        is_other = draft.scenario.path != self._path
        if draft.scenario is not self._scenario:
            self._scenario, self._path = draft.scenario, draft.scenario.path
            self._code, self._claims, self._start = (
                _of_command(draft.command) if draft.command else _read(self._path)
            )
        last = representative_past_run(runs)
        self._signs = {
            line: _sign(text, draft.scenario, last) for line, text in self._claims.items()
        }
        self.renew()
        if is_other:
            self.scroll_to(x=0, y=self._start, animate=False, force=True)

    def go_to_next_claim(self) -> None:
        """Scroll to the next line that claims or races; from the last one to the first."""
        lines = sorted(line - 1 for line in self._claims)
        below = [line for line in lines if line > self.scroll_offset.y + 1]
        if lines:
            self.scroll_to(y=max((below or lines)[0] - 1, 0), animate=False)

    @property
    def _gutter(self) -> int:
        return len(str(len(self._code))) + 3

    def lay_out(self, width: int) -> Sequence[Content]:
        return self._code

    def renew(self, *, from_top: bool = False) -> None:
        super().renew(from_top=from_top)
        longest = max((line.cell_length for line in self._code), default=0)
        self.virtual_size = Size(max(self._gutter + longest, 1), len(self._code))

    def draw(self, line: Content, width: int, number: int) -> Strip:
        count = Content.styled(f"{number + 1:>{self._gutter - 3}} ", "$text-muted")
        margin = count + self._signs.get(number + 1, Content(" ")) + Content(" ")
        gutter = strip_of(self, margin, self._gutter, self.visual_style)
        across = self.scroll_offset.x
        code = (
            super()
            .draw(line, max(line.cell_length, 1), number)
            .crop(across, across + width - self._gutter)
        )
        code = code.apply_offsets(across, number)
        return Strip.join([gutter, code]).adjust_cell_length(width, self.rich_style)

    def action_scroll_across(self, count: int) -> None:
        self.scroll_to(x=self.scroll_offset.x + count * _STEP, animate=False)


def _sign(text: str, scenario: Scenario, last: PastRun | None) -> Content:
    """Return the mark of a claim's last verdict; of a claim without one, and of a race, a dot."""
    verdict = verdict_on(match(text, scenario.claims), last) if last and text else None
    return (
        mark(verdict.verdict) if verdict else Content.styled("●" if text else "○", "$text-accent")
    )


def _of_command(command: OwnCommand) -> tuple[list[Content], dict[int, str], int]:
    """Return the lines of the script of a command; it claims nothing, and may be missing."""
    if not command.script:
        return [Content.styled("No script of it is on this machine.", "$text-muted")], {}, 0
    return _read(command.script)[0], {}, 0


def _read(path: str) -> tuple[list[Content], dict[int, str], int]:
    """Return the lines of a file, the claims on them and where the code begins; a file that cannot be read says why."""
    from tuilab.catalogue.source import Broken, read_text

    try:
        text = read_text(path)
    except Broken as problem:
        return [to_content(str(problem), 300, "$text-error")], {}, 0
    return highlight(text.rstrip("\n")), *_claims(text)


def _claims(text: str) -> tuple[dict[int, str], int]:
    """Return the claims by line, a race as an empty one, and the line below the docstring."""
    from tuilab.catalogue.source import (
        CLAIMING,
        Broken,
        lab_calls,
        lab_name,
        literal_text,
        parse_source,
    )

    try:
        tree, run = parse_source(text)
    except (Broken, RecursionError, MemoryError, ValueError):
        return {}, 0
    found = {
        call.lineno: literal_text(call) or "?" for call in lab_calls(tree, lab_name(run), *CLAIMING)
    }
    found |= {call.lineno: "" for call in lab_calls(tree, lab_name(run), "race")}
    has_lesson = isinstance(tree.body[0], ast.Expr) and len(tree.body) > 1
    return found, (tree.body[0].end_lineno or 0) + 1 if has_lesson else 0
