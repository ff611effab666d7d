"""What a scenario had to say, which errors its GPUs reported, who else was on them, and after the run what to try next."""

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

_LINES = 60
_DRAWN = re.compile(
    r"\S {3,}\S|([^\w\s])\1{3,}|[\u2500-\u259f]"
)  # columns, or lines and blocks of characters


class NotesPane(TextPane):
    """The texts that the scenario showed, the last of each title; then what its author says to try, by which key."""

    def __init__(self) -> None:
        super().__init__("Notes")
        self.next_steps = NextSteps()
        self._last: tuple[RunSource, View] | None = None

    def on_resize(self) -> None:
        if self._last is not None:
            self.show(*self._last)

    def show(self, run: RunSource, view: View) -> None:
        self._last = run, view
        latest = {text.title: text.text for text in run.summary.texts}
        alerts = list(map(alert_words, run.summary.alerts))
        errors, shared = gpu_errors(run.summary), neighbour_notes(run.summary)
        lines = list(_command_lines(run.summary))
        lines += [Content.styled(sentence, "$text-error") for sentence in errors]
        lines += [Content.styled(sentence, "$text-warning") for sentence in (*alerts, *shared)]
        for title, text in latest.items():
            lines += [to_content(title, 200, "bold")] if title else []
            lines += self._of_text(text)
        if run.is_over and self.next_steps.text:
            lines += [Content(""), heading("Try next")] if lines else []
            lines += (row for line in self._to_try() for row in self._flowing(line))
        is_command = bool(run.summary.run and run.summary.run.command)
        title = "Command" if is_command else "Notes" if latest or errors or alerts or shared else ""
        self.entitle(Content(title or "Try next"))
        self.put(lines)

    def _flowing(self, line: Content) -> list[Content]:
        """Return a line as its language is broken; one of English is left to the pane."""
        return (
            [line]
            if line.plain.isascii()
            else wrap_lines(line, max((self.content_size.width or 1000) - 1, 8))
        )

    def _of_text(self, text: str) -> list[Content]:
        """Return the lines of a text; those of a drawing end with the pane, because wrapped they would stand beside nothing."""
        lines = [*coloured(text.splitlines())]
        if (width := self.scrollable_content_region.width) and _DRAWN.search(text):
            lines = [line.truncate(width, ellipsis=True) for line in lines]
        more = (
            [Content.styled(f"… and {plural(len(lines) - _LINES, 'line')} more", "$text-muted")]
            if len(lines) > _LINES
            else []
        )
        return lines[:_LINES] + more

    def _to_try(self) -> Iterator[Content]:
        for block in blocks(self.next_steps.text):
            if block.kind == "note":
                yield Content.styled(f"  {block.text}", "$text-muted")
                continue
            keys = [
                str(key)
                for key, option in enumerate(self.next_steps.options, 1)
                if f"`{option.name}`" in block.text
            ]
            sign = (
                Content.styled(",".join(keys), "bold $text-accent")
                if keys
                else Content("▸" if block.kind == "item" else "")
            )
            yield Content.assemble(sign, " " if sign else "", inline(block.text))


def _command_lines(summary: RunSummary) -> Iterator[Content]:
    """Yield what was run, of a command of the user's, and why nothing of its steps is known where that is so."""
    run = summary.run
    if run is None or not run.command:
        return
    yield Content.assemble(("$ ", "$text-muted"), to_content(short(run.command), 2000, "bold"))
    yield from (to_content(f"  {arm}", 2000) for arm in arms_of(run))
    if why := summary.unavailable.get("steps"):
        yield to_content(f"steps not measured: {why}", 600, "$text-warning")
