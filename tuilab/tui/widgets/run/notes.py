"""What a scenario had to say, which errors its GPUs reported, who else was on them, and after the run what to try next."""

from collections.abc import Iterator

from textual.content import Content

from tuilab.catalogue.lesson import blocks
from tuilab.record.told import gpu_errors, neighbour_notes
from tuilab.tui.looks.marks import plain
from tuilab.tui.looks.reading import heading, inline
from tuilab.tui.looks.sgr import coloured
from tuilab.tui.state.following import Shown
from tuilab.tui.state.next_steps import NextSteps
from tuilab.tui.state.view import View
from tuilab.tui.widgets.pane import TextPane

_LINES = 60


class NotesPane(TextPane):
    """The texts that the scenario showed, the last of each title; then what its author says to try, by which key."""

    def __init__(self) -> None:
        super().__init__("Notes")
        self.next_steps = NextSteps()

    def show(self, run: Shown, view: View) -> None:
        latest = {text.title: text.text for text in run.summary.texts}
        errors, shared = gpu_errors(run.summary), neighbour_notes(run.summary)
        lines = [Content.styled(sentence, "$text-error") for sentence in errors]
        lines += [Content.styled(sentence, "$text-warning") for sentence in shared]
        for title, text in latest.items():
            lines += [plain(title, 200, "bold")] if title else []
            lines += coloured(text.splitlines()[:_LINES])
        if run.is_over and self.next_steps.text:
            lines += [Content(""), heading("Try next")] if lines else []
            lines += self._to_try()
        self.border_title = Content("Notes" if latest or errors or shared else "Try next")
        self.put(lines)

    def _to_try(self) -> Iterator[Content]:
        for block in blocks(self.next_steps.text):
            if block.kind == "note":
                yield Content.styled(f"  {block.text}", "$text-muted")
                continue
            keys = [str(key) for key, option in enumerate(self.next_steps.options, 1) if f"`{option.name}`" in block.text]
            sign = Content.styled(",".join(keys), "bold $text-accent") if keys else Content("▸" if block.kind == "item" else "")
            yield Content.assemble(sign, " " if sign else "", inline(block.text))
