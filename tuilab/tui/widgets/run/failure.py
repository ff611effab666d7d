"""Why a run failed: the author's own line first, then what was said of it; the frames of libraries in the background."""

from collections.abc import Iterator, Sequence

from textual.content import Content

from tuilab.record.summary import RunSummary
from tuilab.record.tracebacks import Frame, file_of, own_frame, parts_of
from tuilab.text.display import plural, show_lines
from tuilab.tui.looks.marks import to_content
from tuilab.tui.state.run_source import RunSource
from tuilab.tui.state.view import View
from tuilab.tui.widgets.pane import TextPane

_MESSAGE_LINES = 20


class FailurePane(TextPane):
    """There only where a run failed with something that can be told."""

    def __init__(self) -> None:
        super().__init__("What failed")

    def show(self, run: RunSource, view: View) -> None:
        self.note(Content("E opens the file" if file_of(run.summary, run.run_dir) else ""))
        self.put(list(_lines(run.summary)))


def _lines(summary: RunSummary) -> Iterator[Content]:
    failure = summary.failure
    if failure is None:
        return
    frame = own_frame(summary)
    if frame:
        yield from _frame_lines(frame, "bold")
    first, *rest = show_lines(failure.message).splitlines() or [""]
    yield to_content(f"{failure.type}: {first}", 1000, "$text-error")
    yield from (Content.styled(line[:1000], "$text-error") for line in rest[:_MESSAGE_LINES])
    if len(rest) > _MESSAGE_LINES:
        yield Content.styled(
            f"… and {plural(len(rest) - _MESSAGE_LINES, 'line')} more", "$text-muted"
        )
    yield from [to_content(f"hint: {failure.hint}")] if failure.hint else []
    parts = parts_of(summary)
    if parts != [frame]:  # a single frame is already shown
        yield from _below("All frames, most recent call last", _all_frames(parts))
    yield from _below(
        "Where a process crashed",
        [to_content(line) for fault in summary.faults for line in fault.splitlines()[:12]],
    )


def _below(title: str, lines: list[Content]) -> Iterator[Content]:
    if lines:
        yield Content("")
        yield Content.styled(title, "$text-muted")
        yield from lines


def _all_frames(parts: Sequence[Frame | str]) -> list[Content]:
    lines: list[Content] = []
    for part in parts:
        lines += (
            _frame_lines(part, "")
            if isinstance(part, Frame)
            else [to_content(part, 1000, "$text-muted")]
        )
    return lines


def _frame_lines(frame: Frame, style: str) -> list[Content]:
    """Return where a frame is and its line; the author's own stand out."""
    style = style if frame.is_own else "dim"
    return [
        to_content(frame.place, 1000, style),
        *(to_content(f"  {line}", 1000, style) for line in frame.code),
    ]
