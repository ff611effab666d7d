"""What a run printed, and the stages it went through."""

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

_MOST = 600  # lines


class OutputPane(TextPane):
    """The stages with their times, then the last lines that were printed; errors stand out."""

    is_followed = True

    def __init__(self) -> None:
        super().__init__("Output")
        self.stage_at_cursor: int | None = None

    def show(self, run: RunSource, view: View) -> None:
        at = _stage_at(run.summary, view.cursor_t)
        stages, first_t = run.summary.stages, run.summary.first_t
        lines = [
            _stage_line(stage, first_t, is_at_cursor=number == at)
            for number, stage in enumerate(stages)
        ]
        if isinstance(run, Replay) and not run.is_over:
            lines.append(
                Content.styled(
                    "printed lines have no times: they are shown at the end of the replay",
                    "$text-muted",
                )
            )
        else:
            lines += self._printed(run)
        left_out = max(len(lines) - _MOST, 0)
        if left_out:
            lines[left_out] = Content.styled(
                f"{plural(left_out + 1, 'line')} above; v shows all kept output", "$text-muted"
            )
        self.put(lines[left_out:] or [Content.styled("nothing printed", "$text-muted")])
        if at is not None and at != self.stage_at_cursor:
            self.call_after_refresh(self.scroll_to, y=max(at - left_out - 1, 0), animate=False)
        self.stage_at_cursor = at

    def _printed(self, run: RunSource) -> Iterator[Content]:
        """Yield the last lines of each stream; above those that are not all, what is left out, and where more of it is."""
        self.beyond = ""
        for stream, style in zip(STREAMS, ("", "$text-warning"), strict=True):
            path = run.run_dir / f"{stream}.log"
            seam = seam_of(path, run.summary)
            found = tail(path, seam)
            if not found.is_whole:
                if seam:
                    yield to_content(seam.words, 500, "$text-warning")
                what = "all kept output" if seam else "all of it"
                yield to_content(
                    f"the end of {size(found.bytes_total)}; v shows {what}: {path}",
                    500,
                    "$text-muted",
                )
                self.beyond = "; only the end was searched, v shows all kept output"
            yield from coloured(found.lines, style)


def _stage_at(summary: RunSummary, t: int | None) -> int | None:
    """Return the number of the stage that a moment was in; None before the first, or without a moment."""
    if t is None:
        return None
    return max(
        (number for number, stage in enumerate(summary.stages) if stage.t <= t), default=None
    )


def _stage_line(stage: StageEntered, first_t: int, *, is_at_cursor: bool) -> Content:
    time = f"{(stage.t - first_t) / 1e9:7.1f} s "
    name = to_content(stage.name, 200, "bold $text-accent" if is_at_cursor else "")
    return Content.assemble(
        (time, "$text-muted"), ("▸ ", "$text-accent" if is_at_cursor else ""), name
    )
