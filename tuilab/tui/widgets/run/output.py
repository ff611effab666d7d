"""The stages of a run and the lines that it printed."""

from collections.abc import Iterator

from textual.content import Content

from tuilab.record.events import StageEntered
from tuilab.record.summary import RunSummary
from tuilab.text.display import plural
from tuilab.text.words import size
from tuilab.tui.looks.marks import to_content
from tuilab.tui.looks.sgr import coloured
from tuilab.tui.state.printed_output import STREAMS, seam_of, tail
from tuilab.tui.state.run_source import Replay, RunSource
from tuilab.tui.state.view import View
from tuilab.tui.widgets.pane import TextPane

_MAX_LINES = 600
_WITHOUT_TIMES = "printed lines have no times: they are shown at the end of the replay"


class OutputPane(TextPane):
    """The stages with their times, then the last printed lines. Errors stand out."""

    is_followed = True

    def __init__(self) -> None:
        super().__init__("Output")
        self.stage_at_cursor: int | None = None

    def show(self, run: RunSource, view: View) -> None:
        """Show the stages and the last printed lines; scroll to the stage at the cursor.

        During a replay, printed lines are left out, because their times are not recorded. If there
        are too many lines, the first ones are left out.
        """
        cursor_stage = _stage_at(run.summary, view.cursor_t)
        first_t = run.summary.first_t
        lines = []
        for number, stage in enumerate(run.summary.stages):
            is_at_cursor = number == cursor_stage
            lines.append(_stage_line(stage, first_t, is_at_cursor=is_at_cursor))
        if isinstance(run, Replay) and not run.is_over:
            lines.append(Content.styled(_WITHOUT_TIMES, "$text-muted"))
        else:
            lines += self._printed_lines(run)
        hidden = max(len(lines) - _MAX_LINES, 0)
        if hidden:
            # The sentence takes the place of one more line.
            sentence = f"{plural(hidden + 1, 'line')} above; v shows all kept output"
            lines[hidden] = Content.styled(sentence, "$text-muted")
        if not lines:
            lines.append(Content.styled("nothing printed", "$text-muted"))
        self.put(lines[hidden:])
        if cursor_stage is not None and cursor_stage != self.stage_at_cursor:
            y = max(cursor_stage - hidden - 1, 0)
            self.call_after_refresh(self.scroll_to, y=y, animate=False)
        self.stage_at_cursor = cursor_stage

    def _printed_lines(self, run: RunSource) -> Iterator[Content]:
        """Yield the last lines of each stream.

        If they are not all, the lines above them say what is left out and where all output is.
        """
        self.no_match_note = ""
        for stream, style in zip(STREAMS, ("", "$text-warning"), strict=True):
            path = run.run_dir / f"{stream}.log"
            seam = seam_of(path, run.summary)
            output = tail(path, seam)
            if not output.is_whole:
                rest = "all of it"
                if seam:
                    rest = "all kept output"
                    yield to_content(seam.words, 500, "$text-warning")
                sentence = f"the end of {size(output.bytes_total)}; v shows {rest}: {path}"
                yield to_content(sentence, 500, "$text-muted")
                self.no_match_note = "; only the end was searched, v shows all kept output"
            yield from coloured(output.lines, style)


def _stage_at(summary: RunSummary, t: int | None) -> int | None:
    """Return the number of the stage at a moment; None before the first, or without a moment."""
    if t is None:
        return None
    begun = [number for number, stage in enumerate(summary.stages) if stage.t <= t]
    return max(begun, default=None)


def _stage_line(stage: StageEntered, first_t: int, *, is_at_cursor: bool) -> Content:
    """Return the line of a stage: the seconds since the start of the run, and its name."""
    elapsed_s = (stage.t - first_t) / 1e9
    sign_style = ""
    name_style = ""
    if is_at_cursor:
        sign_style = "$text-accent"
        name_style = "bold $text-accent"
    time = f"{elapsed_s:7.1f} s ", "$text-muted"
    name = to_content(stage.name, 200, name_style)
    return Content.assemble(time, ("▸ ", sign_style), name)
