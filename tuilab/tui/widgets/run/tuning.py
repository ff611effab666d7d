"""The table of a tuning: what each treatment, a change to the training, has come to so far."""

from collections.abc import Iterator

from textual.content import Content

from tuilab.drawings.glyphs import Style
from tuilab.judging.interim_results import InterimJudge
from tuilab.judging.judgement import Judgement
from tuilab.record.summary import RunSummary
from tuilab.record.tuning.outcomes import base_of
from tuilab.record.tuning.stages import WATCHING, budget_words, stage_of, stage_words
from tuilab.reports.tuning.document import ResultTuning
from tuilab.reports.tuning.make_document import tuning_of
from tuilab.reports.tuning.rows import find_winners
from tuilab.reports.tuning.text import note_lines, render_tuning
from tuilab.runs.command_line import deciding_line
from tuilab.tui.looks.lesson_layout import hang
from tuilab.tui.looks.marks import to_content
from tuilab.tui.looks.sgr import coloured
from tuilab.tui.state.run_source import RunSource
from tuilab.tui.state.view import View
from tuilab.tui.widgets.pane import TextPane

_STYLE = Style(is_utf8=True, has_colour=True)
_RETRY_S = 0.2  # until interim results that are still loading are asked for again
_UNKNOWN_WIDTH = 1000  # columns of a pane that is not on the screen yet
_MOST_COMMAND = 1000  # characters
_BEFORE_PLAN = "the script runs once, and is watched; then the plan follows"


class TuningPane(TextPane):
    """The table of treatments; while the run is in progress, with the intervals so far."""

    def __init__(self) -> None:
        super().__init__("Tuning")
        self._interim_judge = InterimJudge()
        self._last: tuple[RunSource, View] | None = None
        self._will_retry = False

    def on_resize(self) -> None:
        super().on_resize()
        self._show_again()

    def show(self, run: RunSource, view: View) -> None:
        """Show the table; at the bottom of the frame, the stage and the number of processes."""
        self._last = run, view
        tuning = tuning_of(run.summary)
        if tuning is None:
            return
        self.note(Content(_describe_progress(run)))
        width = max((self.content_size.width or _UNKNOWN_WIDTH) - 1, 8)  # 1: the scroll bar
        if not tuning.treatments:
            self.put([Content.styled(self._why_empty(run), "$text-muted")])
            return
        interim = {}
        if not run.is_over:
            interim = self._interim_judgements(run.summary)
        lines = list(coloured(render_tuning(tuning, _STYLE, width, interim)))
        if run.is_over:
            lines += _lines_of_end(tuning, run, width)
        self.put(lines)

    def _why_empty(self, run: RunSource) -> str:
        """Return why there are no treatments to show."""
        if run.is_over:
            return "the run ended before it had a plan"
        if stage_of(run.summary) == WATCHING:
            return _BEFORE_PLAN
        return "no treatment was planned"

    def _interim_judgements(self, summary: RunSummary) -> dict[str, Judgement]:
        """Return, by arm, the judgement that it would get over the base if the run ended now."""
        judgements = {}
        for result in self._interim_judge.results(summary):
            if result.claim.over == base_of(summary):
                judgements[result.claim.under] = result.judgement
        if self._interim_judge.is_loading and not self._will_retry:
            # A paused replay is shown only once, so the pane has to ask again.
            self._will_retry = True
            self.set_timer(_RETRY_S, self._show_again)
        return judgements

    def _show_again(self) -> None:
        """Show the table again, for another width or because interim results are loaded now."""
        self._will_retry = False
        if self._last is not None:
            self.show(*self._last)


def _describe_progress(run: RunSource) -> str:
    """Return the stage, the number of processes, and the rest of the budget of a running tuning."""
    words = stage_words(run.summary)
    if run.is_over or not words:
        return words
    return "  ".join(filter(None, (words, budget_words(run.summary, run.elapsed_s))))


def _lines_of_end(tuning: ResultTuning, run: RunSource, width: int) -> Iterator[Content]:
    """Yield what else a reader needs to know when the run has ended, and the next commands."""
    yield Content("")
    yield from coloured(note_lines(tuning, _STYLE, width))
    for winner in find_winners(tuning):
        if winner.next_command:
            words = f"to compare what is learned with {winner.title}: {winner.next_command}"
            yield from hang(Content(" "), to_content(words, _MOST_COMMAND, "$text-muted"), width)
    command = deciding_line(run.summary, run.run_dir.parent)
    if command:
        words = f"to settle the inconclusive claims: {command}"
        yield from hang(Content(" "), to_content(words, _MOST_COMMAND, "$text-muted"), width)
