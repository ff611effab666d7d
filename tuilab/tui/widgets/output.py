"""What a run printed, and the stages it went through."""

import os
from contextlib import suppress
from pathlib import Path

from textual.content import Content

from tuilab.files import open_regular
from tuilab.text import show_lines
from tuilab.tui.following import Shown
from tuilab.tui.marks import plain
from tuilab.tui.widgets.pane import TextPane, View

_TAIL = 16 * 1024  # bytes of each stream that are looked at
_LINES = 200


class OutputPane(TextPane):
    """The stages with their times, then the last lines that were printed; errors stand out."""

    NAME = "output"
    is_followed = True

    def __init__(self) -> None:
        super().__init__("Output")

    def show(self, run: Shown, view: View) -> None:
        summary = run.summary
        lines = [
            Content.assemble((f"{(stage.t - summary.first_t) / 1e9:7.1f} s ", "$text-muted"), "▸ ", plain(stage.name, 200))
            for stage in summary.stages
            if view.end_t is None or stage.t <= view.end_t
        ]
        if view.end_t is None:
            lines += [Content(line) for line in _tail(run.run_dir / "stdout.log")]
            lines += [Content.styled(line, "$text-warning") for line in _tail(run.run_dir / "stderr.log")]
        failure = summary.failure
        if failure is not None:
            lines += [Content.styled(line, "$text-muted") for line in show_lines(failure.traceback).splitlines()[-30:]]
            lines.append(Content.assemble(plain(f"{failure.type}: {failure.message}", 1000, "$text-error")))
            lines += [plain(f"hint: {failure.hint}")] if failure.hint else []
        self.put(lines[-_LINES:] or [Content.styled("nothing printed", "$text-muted")])


def _tail(path: Path) -> list[str]:
    """Return the last lines of a file, safe to show; a line that was overwritten by carriage returns shows its last state."""
    with suppress(OSError), open(open_regular(path), "rb") as file:
        size = os.fstat(file.fileno()).st_size
        file.seek(max(size - _TAIL, 0))
        text = file.read(_TAIL).decode(errors="replace")
        lines = [show_lines(line.rstrip("\r").rpartition("\r")[2])[:1000] for line in text.split("\n")]
        return lines[1 if size > _TAIL else 0 :][-_LINES:] if lines[-1] else lines[1 if size > _TAIL else 0 : -1][-_LINES:]
    return []
