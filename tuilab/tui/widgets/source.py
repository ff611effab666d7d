"""The source of a scenario with line numbers; the lines that claim and race are marked."""

import ast
from collections.abc import Mapping, Sequence
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.content import Content
from textual.geometry import Size
from textual.strip import Strip
from textual.visual import Visual

from tuilab.tui.draft import Draft
from tuilab.tui.highlight import highlight
from tuilab.tui.marks import plain
from tuilab.tui.widgets.lines import Lines

_STEP = 8  # columns that a key scrolls sideways
_SIGNS = {"claim": ("●", "$text-accent"), "race": ("○", "$text-accent")}


class Source(Lines):
    """Python with a gutter that stays where it is when the code scrolls sideways."""

    DEFAULT_CSS = "Source { overflow-x: auto; scrollbar-size-horizontal: 0; }"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left", "scroll_across(-1)", show=False),
        Binding("right", "scroll_across(1)", show=False),
    ]

    def __init__(self) -> None:
        super().__init__(id="code")
        self._path = ""
        self._code: list[Content] = []
        self._signs: Mapping[int, str] = {}

    async def fill(self, draft: Draft, runs: object) -> None:
        """Read and show the file of a scenario."""
        if draft.scenario.path != self._path:
            self._path = draft.scenario.path
            self._code, self._signs = _read(self._path)
            self.renew(from_top=True)

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
        sign, style = _SIGNS.get(self._signs.get(number + 1, ""), (" ", ""))
        count = Content.styled(f"{number + 1:>{self._gutter - 3}} ", "$text-muted")
        margin = count + Content.styled(f"{sign} ", style)
        gutter = Visual.to_strips(self, margin, self._gutter, 1, self.visual_style, pad=True)[0]
        across = self.scroll_offset.x
        code = super().draw(line, max(line.cell_length, 1), number).crop(across, across + width - self._gutter)
        return Strip.join([gutter, code]).adjust_cell_length(width, self.rich_style)

    def action_scroll_across(self, count: int) -> None:
        self.scroll_to(x=self.scroll_offset.x + count * _STEP, animate=False)


def _read(path: str) -> tuple[list[Content], dict[int, str]]:
    """Return the lines of a file and what stands on them; a file that cannot be read says why."""
    from tuilab.source import Broken, read_text

    try:
        text = read_text(path)
    except Broken as problem:
        return [plain(str(problem), 300, "$text-error")], {}
    return highlight(text.rstrip("\n")), _signs(text)


def _signs(text: str) -> dict[int, str]:
    """Return the lines of claims and races."""
    from tuilab.source import Broken, lab_calls, lab_name, parse_source

    try:
        tree, run = parse_source(text)
    except (Broken, RecursionError, MemoryError, ValueError):
        return {}
    calls: list[ast.Call] = lab_calls(tree, lab_name(run), "claim", "race", "not_testable")
    kinds = {call.lineno: call.func.attr for call in calls if isinstance(call.func, ast.Attribute)}
    return {line: "race" if kind == "race" else "claim" for line, kind in kinds.items()}
