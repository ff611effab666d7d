"""The past runs of a scenario: when, how it ended, what it found, what was changed."""

from collections.abc import Iterator, Sequence
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
    """One line a run, the newest first."""

    PLACE: ClassVar[str] = "past runs"
    BINDINGS: ClassVar[list[BindingType]] = [Binding("enter", "screen.open", show=False)]

    def __init__(self) -> None:
        super().__init__(id="runs")
        self._runs: Sequence[PastRun] = ()
        self._scenario: Scenario | None = None

    def fill(self, draft: Draft, runs: Sequence[PastRun]) -> None:
        """Show a scenario's runs; of another scenario from the top."""
        is_other = draft.scenario is not self._scenario
        self._scenario, self._runs = draft.scenario, runs
        self.cursor = 0 if is_other else min(self.cursor, max(len(runs) - 1, 0))
        self.renew(from_top=is_other)

    @property
    def count(self) -> int:
        return len(self._runs)

    @property
    def run_dir(self) -> Path | None:
        """The run under the cursor."""
        return self._runs[self.cursor].run_dir if self.cursor < len(self._runs) else None

    def lay_out(self, width: int) -> list[Content]:
        if not self._runs:
            return [Content.styled("No runs on this machine yet.", "$text-muted")]
        return [_line(run, width) for run in self._runs] + list(_rest(self._runs))


def _rest(runs: Sequence[PastRun]) -> Iterator[Content]:
    if len(runs) >= NEWEST:
        yield Content.styled("older runs: press h", "$text-muted")


def _line(run: PastRun, width: int) -> Content:
    marks = Content("").join(
        mark(claim.verdict.verdict if claim.verdict else "pending") for claim in run.claims
    )
    parts = [
        to_content(began(run.run_dir), None, "$text-muted"),
        marks if run.claims else state_words(run.state),
    ]
    if run.claims and run.state != RunState.SUCCEEDED:
        parts.append(state_words(run.state))
    changes = [f"{name}={value}" for name, value in run.values.items()]
    if run.entry.quick:
        changes.append("quick")
    changes += [f"on {gpu}" for gpu in run.entry.gpus]
    left = Content("  ").join([*parts, to_content(" ".join(changes), 200)])
    elapsed_s = run.entry.elapsed_s
    took = "" if elapsed_s is None else f"{elapsed_s:.1f} s"
    return spread(left, Content.styled(took, "$text-muted"), width - 1)
