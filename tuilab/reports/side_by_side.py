"""Runs side by side in a report: what differs, the claims with intervals, and overlaid curves."""

from collections.abc import Sequence
from dataclasses import dataclass

from tuilab.record.finding_words import for_how_long
from tuilab.record.series import siblings
from tuilab.record.summary import RunSummary
from tuilab.reports.charts.geometry import ChartShapes, draw_chart
from tuilab.reports.charts.panels import panel_of
from tuilab.reports.comparison_words import (
    axes_of,
    command_tables,
    number_tables,
    order_differences,
    overlay_curves,
    pair_words,
    running_positions,
    shared_names,
    source_changes,
    verdict_and_measured,
)
from tuilab.reports.pages import PageBudget, mark_and_kind, when_of
from tuilab.reports.reported_run import ReportedRun
from tuilab.runs.comparing import comparison
from tuilab.runs.comparing.claim_pairs import ClaimPair, Side
from tuilab.runs.comparing.comparison import Comparison, difference_words
from tuilab.runs.comparing.differences import Difference, box_of
from tuilab.text.display import join, plural, show

_MOST_CHARTS = 8
_MOST_ROWS = 60  # of differences
_MOST_POINTS = 0.4  # in one chart, in units of the points that a chart alone may have


@dataclass(frozen=True)
class RunClaim:
    """A claim in one run."""

    verdict: str
    mark: str
    kind: str
    measured: str


@dataclass(frozen=True)
class SideBySideClaim:
    """A claim in every run."""

    text: str
    sides: tuple[RunClaim, ...]
    words: str  # how the runs differ, and by how much


@dataclass(frozen=True)
class SideBySide:
    """Some runs, the first of which the others are compared with."""

    id: str
    title: str
    runs: tuple[tuple[str, ...], ...]  # number, id, scenario, machine, start, how it ended
    has_boxes: bool  # the runs are from several machines
    differences: tuple[Difference, ...]
    left_out: str  # what there is no room for, in a sentence; empty if all is there
    same: int
    changes: tuple[str, ...]
    claims: tuple[SideBySideClaim, ...]
    numbers: tuple[tuple[str, ...], ...]
    same_numbers: int
    overview: str  # how many claims came out alike
    charts: tuple[ChartShapes, ...]


def side_by_side(group: Sequence[ReportedRun], budget: PageBudget) -> SideBySide:
    """Return what differs between runs."""
    summaries = [subject.summary for subject in group]
    compared = comparison.compare(summaries, running_positions(group))
    differences = order_differences(compared.differences)
    # claims on which the runs differ come first
    pairs = sorted(compared.claims, key=lambda pair: not difference_words(pair))
    ids = [subject.id for subject in group]
    scenarios = [subject.name for subject in group]
    runs = [_run(number, subject) for number, subject in enumerate(group, 1)]
    claims = [_claim(pair) for pair in pairs[: budget.claims]]
    numbers = _numbers(group, compared)
    names = shared_names(group, compared)
    charts = [_chart(summaries, name, budget) for name in names[:_MOST_CHARTS]]
    return SideBySide(
        id="-".join(ids[:4]),
        title=" and ".join(dict.fromkeys(scenarios)),
        runs=tuple(runs),
        has_boxes=bool(compared.boxes),
        differences=tuple(differences[:_MOST_ROWS]),
        left_out=_describe_left_out(
            differences=len(differences) - _MOST_ROWS,
            claims=len(pairs) - budget.claims,
            numbers=len(numbers) - budget.claims,
            charts=len(names) - _MOST_CHARTS,
        ),
        same=compared.same,
        changes=tuple(source_changes(group)),
        claims=tuple(claims),
        numbers=tuple(numbers[: budget.claims]),
        same_numbers=sum(len(set(values)) == 1 for _, values in compared.sizes),
        overview=_describe_claims(compared.claims),
        charts=tuple(charts),
    )


def _describe_left_out(*, differences: int, claims: int, numbers: int, charts: int) -> str:
    """Return a sentence that counts what there is no room for; empty if nothing is left out."""
    counts = []
    if differences > 0:
        counts.append(plural(differences, "difference"))
    if claims > 0:
        counts.append(plural(claims, "claim"))
    if numbers > 0:
        counts.append(plural(numbers, "number"))
    if charts > 0:
        counts.append(plural(charts, "chart"))
    if not counts:
        return ""
    return f"Left out here: {join(counts)}. The .json report has all of them."


def _describe_claims(pairs: Sequence[ClaimPair]) -> str:
    """Return how many claims came out alike, and how many did not; nothing without claims."""
    if not pairs:
        return ""
    different = 0
    same = 0
    partial = 0
    for pair in pairs:
        if None in pair.sides:
            partial += 1
        elif difference_words(pair):
            different += 1
        else:
            same += 1
    counts = []
    if different:
        counts.append(f"{different} different")
    counts.append(f"{same} the same")
    if partial:
        counts.append(f"{partial} not claimed in every run")
    return f"{plural(len(pairs), 'claim')}: {', '.join(counts)}."


def _run(number: int, subject: ReportedRun) -> tuple[str, ...]:
    host = show(box_of(subject.summary), 60)
    duration = for_how_long(f"{subject.summary.elapsed_s:.1f} s", subject.state)
    ended = f"{show(subject.state)} {duration}".rstrip()
    return str(number), subject.id, subject.name, host, when_of(subject), ended


def _claim(pair: ClaimPair) -> SideBySideClaim:
    sides = tuple(_side(side) for side in pair.sides)
    return SideBySideClaim(pair.text, sides, "; ".join(pair_words(pair)))


def _side(side: Side | None) -> RunClaim:
    if side is None:
        return RunClaim("not claimed", "–", "none", "")
    verdict, measured = verdict_and_measured(side)
    mark, kind = mark_and_kind(verdict)
    return RunClaim(verdict, mark, kind, measured)


def _numbers(group: Sequence[ReportedRun], compared: Comparison) -> list[tuple[str, ...]]:
    """Return the rows of all tables, each row with the title of its table."""
    rows = []
    for table in [*number_tables(compared), *command_tables(group, compared)]:
        for name, *values in table.rows:
            rows.append((f"{table.title}: {name}", *values))
    return rows


def _chart(summaries: Sequence[RunSummary], name: str, budget: PageBudget) -> ChartShapes:
    """Return the chart of the curves of a name in all runs."""
    curves = overlay_curves(summaries, name)
    labels = [curve.arm for curve in curves[: budget.lines]]
    kin = []
    for summary in summaries:
        kin += siblings(summary.series, name)
    panel = panel_of(axes_of(summaries, name), curves, labels, kin=kin)
    return draw_chart(panel, min(budget.points, _MOST_POINTS), budget.places)
