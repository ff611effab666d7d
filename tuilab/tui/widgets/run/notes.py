"""Notes on a run: texts, alerts, GPU errors, other users of its GPUs, and what to try next."""

import re
from collections.abc import Iterator

from textual.content import Content

from tuilab.catalogue.lesson import blocks
from tuilab.record.finding_words import alert_words, gpu_errors, neighbour_notes
from tuilab.record.summary import RunSummary
from tuilab.runs.command_line import arms_of, short
from tuilab.text.display import plural
from tuilab.tui.looks.lesson_layout import heading, inline, wrap_lines
from tuilab.tui.looks.marks import to_content
from tuilab.tui.looks.sgr import coloured
from tuilab.tui.state.next_steps import NextSteps
from tuilab.tui.state.run_source import RunSource
from tuilab.tui.state.view import View
from tuilab.tui.widgets.pane import TextPane

_MAX_LINES = 60  # of a text
_UNKNOWN_WIDTH = 1000  # columns of a pane that is not on the screen yet
# A drawing has words in columns, a repeated sign, or characters for boxes and blocks.
_DRAWING = re.compile(r"\S {3,}\S|([^\w\s])\1{3,}|[\u2500-\u259f]")


class NotesPane(TextPane):
    """Shows the latest text of each title. After the run, it shows what its lesson says to try."""

    def __init__(self) -> None:
        super().__init__("Notes")
        self.next_steps = NextSteps()
        self._last: tuple[RunSource, View] | None = None

    def on_resize(self) -> None:
        if self._last is not None:
            self.show(*self._last)

    def show(self, run: RunSource, view: View) -> None:
        """Show the command, errors, warnings and texts; at the end, what to try next."""
        self._last = run, view
        summary = run.summary
        errors = gpu_errors(summary)
        warnings = [alert_words(alert) for alert in summary.alerts]
        warnings += neighbour_notes(summary)
        latest_texts = {text.title: text.text for text in summary.texts}
        lines = list(_command_lines(summary))
        lines += [Content.styled(error, "$text-error") for error in errors]
        lines += [Content.styled(warning, "$text-warning") for warning in warnings]
        for title, text in latest_texts.items():
            if title:
                lines.append(to_content(title, 200, "bold"))
            lines += self._text_lines(text)
        has_notes = bool(latest_texts or warnings or errors)
        if run.is_over and self.next_steps.text:
            if lines:
                lines += [Content(""), heading("Try next")]
            for line in self._next_step_lines():
                lines += self._wrap(line)
        self.entitle(Content(_title(summary, has_notes=has_notes)))
        self.put(lines)

    def _wrap(self, line: Content) -> list[Content]:
        """Return a line wrapped as its language requires. English is left to the pane."""
        if line.plain.isascii():
            return [line]
        width = self.content_size.width or _UNKNOWN_WIDTH
        return wrap_lines(line, max(width - 1, 8))  # 1: the scroll bar

    def _text_lines(self, text: str) -> list[Content]:
        """Return the lines of a text. A drawing is cut at the edge of the pane.

        If its lines were wrapped, parts that belong together would not be below each other.
        """
        lines = list(coloured(text.splitlines()))
        width = self.scrollable_content_region.width
        if width and _DRAWING.search(text):
            lines = [line.truncate(width, ellipsis=True) for line in lines]
        hidden = len(lines) - _MAX_LINES
        if hidden <= 0:
            return lines
        more = Content.styled(f"… and {plural(hidden, 'line')} more", "$text-muted")
        return [*lines[:_MAX_LINES], more]

    def _next_step_lines(self) -> Iterator[Content]:
        """Yield what to try next, each step behind the keys that open its form."""
        for block in blocks(self.next_steps.text):
            if block.kind == "note":
                yield Content.styled(f"  {block.text}", "$text-muted")
                continue
            keys = []
            for key, option in enumerate(self.next_steps.options, 1):
                if f"`{option.name}`" in block.text:
                    keys.append(str(key))
            if keys:
                sign = Content.styled(",".join(keys), "bold $text-accent")
                yield Content.assemble(sign, " ", inline(block.text))
            elif block.kind == "item":
                yield Content.assemble("▸ ", inline(block.text))
            else:
                yield inline(block.text)


def _title(summary: RunSummary, *, has_notes: bool) -> str:
    """Return the title of the pane, by what is in it."""
    if summary.run and summary.run.command:
        return "Command"
    return "Notes" if has_notes else "Try next"


def _command_lines(summary: RunSummary) -> Iterator[Content]:
    """Yield the user's command, its arms, and why its steps were not measured."""
    run = summary.run
    if run is None or not run.command:
        return
    yield Content.assemble(("$ ", "$text-muted"), to_content(short(run.command), 2000, "bold"))
    for arm in arms_of(run):
        yield to_content(f"  {arm}", 2000)
    reason = summary.unavailable.get("steps")
    if reason:
        yield to_content(f"steps not measured: {reason}", 600, "$text-warning")
