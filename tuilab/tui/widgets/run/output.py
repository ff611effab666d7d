"""What a run printed, and the stages it went through."""

import os
from contextlib import suppress
from pathlib import Path

from textual.content import Content

from tuilab.files import open_regular
from tuilab.record.events import StageEntered
from tuilab.record.summary import RunSummary
from tuilab.text import show_lines
from tuilab.tui.looks.marks import plain
from tuilab.tui.state.following import Shown
from tuilab.tui.state.playback import Playback
from tuilab.tui.state.view import View
from tuilab.tui.widgets.pane import TextPane

_TAIL = 16 * 1024  # bytes of each stream that are looked at
_LINES = 200


class OutputPane(TextPane):
    """The stages with their times, then the last lines that were printed; errors stand out."""

    is_followed = True

    def __init__(self) -> None:
        super().__init__("Output")
        self.stage_at_cursor: int | None = None

    def show(self, run: Shown, view: View) -> None:
        at = _stage_at(run.summary, view.cursor_t)
        stages, first_t = run.summary.stages, run.summary.first_t
        lines = [_stage_line(stage, first_t, is_at_cursor=number == at) for number, stage in enumerate(stages)]
        if isinstance(run, Playback) and not run.is_over:
            lines.append(Content.styled("what was printed has no times: it is shown at the end", "$text-muted"))
        else:
            lines += _printed(run.run_dir)
        left_out = max(len(lines) - _LINES, 0)
        self.put(lines[left_out:] or [Content.styled("nothing printed", "$text-muted")])
        if at is not None and at != self.stage_at_cursor:
            self.call_after_refresh(self.scroll_to, y=max(at - left_out - 1, 0), animate=False)
        self.stage_at_cursor = at


def _stage_at(summary: RunSummary, t: int | None) -> int | None:
    """Return the number of the stage that a moment was in; None before the first, or without a moment."""
    if t is None:
        return None
    return max((number for number, stage in enumerate(summary.stages) if stage.t <= t), default=None)


def _stage_line(stage: StageEntered, first_t: int, *, is_at_cursor: bool) -> Content:
    time = f"{(stage.t - first_t) / 1e9:7.1f} s "
    name = plain(stage.name, 200, "bold $text-accent" if is_at_cursor else "")
    return Content.assemble((time, "$text-muted"), ("▸ ", "$text-accent" if is_at_cursor else ""), name)


def _printed(run_dir: Path) -> list[Content]:
    lines = [Content(line) for line in _tail(run_dir / "stdout.log")]
    return lines + [Content.styled(line, "$text-warning") for line in _tail(run_dir / "stderr.log")]


def _tail(path: Path) -> list[str]:
    """Return the last lines of a file, safe to show; a line that was overwritten by carriage returns shows its last state."""
    with suppress(OSError), open(open_regular(path), "rb") as file:
        size = os.fstat(file.fileno()).st_size
        file.seek(max(size - _TAIL, 0))
        text = file.read(_TAIL).decode(errors="replace")
        lines = [show_lines(line.rstrip("\r").rpartition("\r")[2])[:1000] for line in text.split("\n")]
        return lines[1 if size > _TAIL else 0 :][-_LINES:] if lines[-1] else lines[1 if size > _TAIL else 0 : -1][-_LINES:]
    return []
