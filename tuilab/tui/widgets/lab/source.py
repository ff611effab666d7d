"""The source of a scenario with line numbers, and marks on the lines that claim and race.

A race is a call of `lab.race`, which times variants of code against each other.
"""

import ast
from collections.abc import Mapping, Sequence
from typing import ClassVar, NamedTuple

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
_NUMBER_GAPS = 3  # columns of the gutter that are no digits: two spaces and a mark


class _SourceCode(NamedTuple):
    """The lines of a file."""

    lines: list[Content]
    claims: Mapping[int, str] = {}  # text or key by line, counted from 1; empty for a race
    start: int = 0  # the first line below the lesson


class Source(SearchedLines):
    """Python with a gutter that does not scroll sideways with the code."""

    PLACE: ClassVar[str] = "code"
    search_title = "the code"
    DEFAULT_CSS = "Source { overflow-x: auto; scrollbar-size-horizontal: 0; }"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left", "scroll_across(-1)", show=False),
        Binding("right", "scroll_across(1)", show=False),
    ]

    def __init__(self) -> None:
        super().__init__(id="code")
        self._path = ""
        self._scenario: Scenario | None = None
        self._code = _SourceCode([])
        self._signs: Mapping[int, Content] = {}  # by line, counted from 1

    def fill(self, draft: Draft, runs: Sequence[PastRun]) -> None:
        """Read and show the file of a scenario, with the verdicts on its claims."""
        is_other_file = draft.scenario.path != self._path
        if draft.scenario is not self._scenario:
            self._scenario = draft.scenario
            self._path = draft.scenario.path
            if draft.command:
                self._code = _read_script(draft.command)
            else:
                self._code = _read(self._path)
        past_run = representative_past_run(runs)
        signs = {}
        for line, claim in self._code.claims.items():
            signs[line] = _sign(claim, draft.scenario, past_run)
        self._signs = signs
        self.renew()
        if is_other_file:
            self.scroll_to(x=0, y=self._code.start, animate=False, force=True)

    def go_to_next_claim(self) -> None:
        """Scroll to the next line that claims or races; after the last, to the first."""
        rows = sorted(line - 1 for line in self._code.claims)
        if not rows:
            return
        rows_below = [row for row in rows if row > self.scroll_offset.y + 1]
        target = rows_below[0] if rows_below else rows[0]
        self.scroll_to(y=max(target - 1, 0), animate=False)

    @property
    def _gutter(self) -> int:
        return len(str(len(self._code.lines))) + _NUMBER_GAPS

    def lay_out(self, width: int) -> Sequence[Content]:
        return self._code.lines

    def renew(self, *, from_top: bool = False) -> None:
        super().renew(from_top=from_top)
        lines = self._code.lines
        longest = max((line.cell_length for line in lines), default=0)
        self.virtual_size = Size(max(self._gutter + longest, 1), len(lines))

    def draw(self, line: Content, width: int, number: int) -> Strip:
        """Return a line of code behind its number and sign, which do not scroll sideways."""
        digits = self._gutter - _NUMBER_GAPS
        line_number = Content.styled(f"{number + 1:>{digits}} ", "$text-muted")
        sign = self._signs.get(number + 1, Content(" "))
        margin = line_number + sign + Content(" ")
        gutter = strip_of(self, margin, self._gutter, self.visual_style)
        left = self.scroll_offset.x
        code = super().draw(line, max(line.cell_length, 1), number)
        code = code.crop(left, left + width - self._gutter)
        code = code.apply_offsets(left, number)  # where a mouse selects text
        strip = Strip.join([gutter, code])
        return strip.adjust_cell_length(width, self.rich_style)

    def action_scroll_across(self, count: int) -> None:
        self.scroll_to(x=self.scroll_offset.x + count * _STEP, animate=False)


def _sign(claim: str, scenario: Scenario, past_run: PastRun | None) -> Content:
    """Return the mark of a claim's verdict in a run, or a dot without a verdict.

    A race, which is an empty claim, has an open dot.
    """
    if not claim:
        return Content.styled("○", "$text-accent")
    if past_run:
        verdict = verdict_on(match(claim, scenario.claims), past_run)
        if verdict:
            return mark(verdict.verdict)
    return Content.styled("●", "$text-accent")


def _read_script(command: OwnCommand) -> _SourceCode:
    """Return the script of a user's command. It has no claims, and may be missing."""
    if not command.script:
        return _SourceCode([Content.styled("No script of it is on this machine.", "$text-muted")])
    return _SourceCode(_read(command.script).lines)


def _read(path: str) -> _SourceCode:
    """Return the code of a file. If it cannot be read, the only line says why."""
    from tuilab.catalogue.source import Broken, read_text

    try:
        text = read_text(path)
    except Broken as problem:
        return _SourceCode([to_content(str(problem), 300, "$text-error")])
    claims, start = _find_claims(text)
    return _SourceCode(highlight(text.rstrip("\n")), claims, start)


def _find_claims(text: str) -> tuple[dict[int, str], int]:
    """Return the claims by line, with an empty text for a race, and the line below the docstring.

    Without a docstring, or if the text cannot be parsed, that line is 0.
    """
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
    lab = lab_name(run)
    claims = {}
    for call in lab_calls(tree, lab, *CLAIMING):
        claims[call.lineno] = literal_text(call) or "?"
    for call in lab_calls(tree, lab, "race"):
        claims[call.lineno] = ""
    docstring = tree.body[0]
    if not isinstance(docstring, ast.Expr) or len(tree.body) == 1:
        return claims, 0
    return claims, (docstring.end_lineno or 0) + 1
