"""The failure of a run: the user's own line first, then the message, then all frames."""

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
_CRASH_LINES = 12  # of the stacks of a process


class FailurePane(TextPane):
    """Exists only if a run failed with an exception or a crash."""

    def __init__(self) -> None:
        super().__init__("What failed")

    def show(self, run: RunSource, view: View) -> None:
        """Show the failure, and the key that opens the file, if the file exists."""
        note = "E opens the file" if file_of(run.summary, run.run_dir) else ""
        self.note(Content(note))
        self.put(list(_lines(run.summary)))


def _lines(summary: RunSummary) -> Iterator[Content]:
    """Yield the lines of a failure; nothing if the run has not failed.

    The user's own frame comes first, then the message, the hint, all frames, and crashed processes.
    """
    failure = summary.failure
    if failure is None:
        return
    frame = own_frame(summary)
    if frame:
        yield from _frame_lines(frame, "bold")
    message_lines = show_lines(failure.message).splitlines() or [""]
    yield to_content(f"{failure.type}: {message_lines[0]}", 1000, "$text-error")
    more_lines = message_lines[1:]
    for line in more_lines[:_MESSAGE_LINES]:
        yield Content.styled(line[:1000], "$text-error")
    hidden = len(more_lines) - _MESSAGE_LINES
    if hidden > 0:
        yield Content.styled(f"… and {plural(hidden, 'line')} more", "$text-muted")
    if failure.hint:
        yield to_content(f"hint: {failure.hint}")
    parts = parts_of(summary)
    if parts != [frame]:  # a single frame is already shown
        yield from _section("All frames, most recent call last", _all_frames(parts))
    crash_lines = []
    for fault in summary.faults:
        stack = fault.splitlines()
        crash_lines += [to_content(line) for line in stack[:_CRASH_LINES]]
    yield from _section("Where a process crashed", crash_lines)


def _section(title: str, lines: list[Content]) -> Iterator[Content]:
    """Yield a title and its lines; nothing without lines."""
    if lines:
        yield Content("")
        yield Content.styled(title, "$text-muted")
        yield from lines


def _all_frames(parts: Sequence[Frame | str]) -> list[Content]:
    """Return the lines of all frames. A part that is a text, not a frame, is muted."""
    lines: list[Content] = []
    for part in parts:
        if isinstance(part, Frame):
            lines += _frame_lines(part, "")
        else:
            lines.append(to_content(part, 1000, "$text-muted"))
    return lines


def _frame_lines(frame: Frame, own_style: str) -> list[Content]:
    """Return the place of a frame and its code. Only the user's own frames have `own_style`."""
    style = own_style if frame.is_own else "dim"
    lines = [to_content(frame.place, 1000, style)]
    lines += [to_content(f"  {line}", 1000, style) for line in frame.code]
    return lines
