"""The list of past runs of a scenario."""

from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.content import Content

from tuilab.catalogue.scenario import Scenario
from tuilab.record.states import RunState
from tuilab.runs.past_runs import NEWEST, PastRun, began
from tuilab.tui.looks.marks import mark, state_words, to_content
from tuilab.tui.state.draft import Draft
from tuilab.tui.widgets.lab.catalogue import spread
from tuilab.tui.widgets.lines import PickList


class PastRuns(PickList):
    """One line for each run, the newest first."""

    PLACE: ClassVar[str] = "past runs"
    BINDINGS: ClassVar[list[BindingType]] = [Binding("enter", "screen.open", show=False)]

    def __init__(self) -> None:
        super().__init__(id="runs")
        self._runs: Sequence[PastRun] = ()
        self._scenario: Scenario | None = None

    def fill(self, draft: Draft, runs: Sequence[PastRun]) -> None:
        """Show the runs of a scenario. Those of another scenario are shown from the top."""
        is_other_scenario = draft.scenario is not self._scenario
        self._scenario = draft.scenario
        self._runs = runs
        if is_other_scenario:
            self.cursor = 0
        else:
            self.cursor = min(self.cursor, max(len(runs) - 1, 0))
        self.renew(from_top=is_other_scenario)

    @property
    def count(self) -> int:
        return len(self._runs)

    @property
    def run_dir(self) -> Path | None:
        """The run at the cursor; None in an empty list."""
        if self.cursor >= len(self._runs):
            return None
        return self._runs[self.cursor].run_dir

    def lay_out(self, width: int) -> list[Content]:
        """Return a line for each run; if there may be more, name the key that shows them."""
        if not self._runs:
            return [Content.styled("No runs on this machine yet.", "$text-muted")]
        lines = [_line(run, width) for run in self._runs]
        if len(self._runs) >= NEWEST:
            lines.append(Content.styled("older runs: press h", "$text-muted"))
        return lines


def _line(run: PastRun, width: int) -> Content:
    """Return the line of a run: start, verdict marks or state, changed values, GPUs, duration."""
    parts = [to_content(began(run.run_dir), None, "$text-muted")]
    if run.claims:
        parts.append(_verdict_marks(run))
    if not run.claims or run.state != RunState.SUCCEEDED:
        parts.append(state_words(run.state))
    changes = [f"{name}={value}" for name, value in run.values.items()]
    if run.entry.quick:
        changes.append("quick")
    changes += [f"on {gpu}" for gpu in run.entry.gpus]
    parts.append(to_content(" ".join(changes), 200))
    elapsed_s = run.entry.elapsed_s
    duration = "" if elapsed_s is None else f"{elapsed_s:.1f} s"
    right = Content.styled(duration, "$text-muted")
    return spread(Content("  ").join(parts), right, width - 1)


def _verdict_marks(run: PastRun) -> Content:
    """Return a mark for each claim of a run, in their order. Some may be pending."""
    marks = []
    for claim in run.claims:
        if claim.verdict:
            marks.append(mark(claim.verdict.verdict))
        else:
            marks.append(mark("pending"))
    return Content("").join(marks)
