"""Runs side by side, ready to be written down in a report: what differs, the claims with intervals, curves over each other."""

from collections.abc import Sequence
from dataclasses import dataclass

from tuilab.record.finding_words import for_how_long
from tuilab.record.series import siblings
from tuilab.reports.charts.geometry import ChartShapes, draw_chart
from tuilab.reports.charts.panels import panel_of
from tuilab.reports.comparison_words import (
    axes_of,
    command_tables,
    going_on,
    in_order,
    number_tables,
    overlaid,
    pair_words,
    shared_names,
    side_found,
    source_changes,
)
from tuilab.reports.pages import PageBudget, look_of, when_of
from tuilab.reports.reported_run import ReportedRun
from tuilab.runs.comparing import comparison
from tuilab.runs.comparing.claim_pairs import ClaimPair, Side
from tuilab.runs.comparing.comparison import Comparison, verdict_words
from tuilab.runs.comparing.differences import Difference, box_of
from tuilab.text.display import plural, show

_MOST_CHARTS, _MOST_ROWS = 8, 60
_FEW_POINTS = 0.4  # of what a chart alone may have


@dataclass(frozen=True)
class RunClaim:
    """What one run says of a claim."""

    verdict: str
    mark: str
    kind: str
    found: str


@dataclass(frozen=True)
class Claimed:
    """A claim in every run."""

    text: str
    sides: tuple[RunClaim, ...]
    words: str  # how the runs differ, and by how much


@dataclass(frozen=True)
class SideBySide:
    """Some runs, the first of which the others are compared with."""

    id: str
    title: str
    runs: tuple[tuple[str, ...], ...]  # number, id, scenario, box, when, how it ended
    has_boxes: bool  # they were not all made on one
    differences: tuple[Difference, ...]
    more_differences: int
    same: int
    changes: tuple[str, ...]
    claims: tuple[Claimed, ...]
    numbers: tuple[tuple[str, ...], ...]
    same_numbers: int
    overview: str  # how the claims came out beside each other
    charts: tuple[ChartShapes, ...]


def side_by_side(group: Sequence[ReportedRun], room: PageBudget) -> SideBySide:
    """Return what differs between runs."""
    found = comparison.compare([subject.summary for subject in group], going_on(group))
    differences = in_order(found.differences)
    return SideBySide(
        id="-".join(subject.id for subject in group[:4]),
        title=" and ".join(dict.fromkeys(subject.name for subject in group)),
        runs=tuple(_run(at, subject) for at, subject in enumerate(group, 1)),
        has_boxes=bool(found.boxes),
        differences=tuple(differences[:_MOST_ROWS]),
        more_differences=max(len(differences) - _MOST_ROWS, 0),
        same=found.same,
        changes=tuple(source_changes(group)),
        claims=tuple(
            _claimed(pair)
            for pair in sorted(found.claims, key=lambda pair: not verdict_words(pair))[
                : room.claims
            ]
        ),
        numbers=tuple(_numbers(group, found)[: room.claims]),
        same_numbers=sum(len(set(values)) == 1 for _, values in found.sizes),
        overview=_overview(found.claims),
        charts=tuple(
            _chart(group, name, room) for name in shared_names(group, found)[:_MOST_CHARTS]
        ),
    )


def _overview(claims: Sequence[ClaimPair]) -> str:
    """Return how many claims came out alike, and how many not."""
    alone = sum(None in pair.sides for pair in claims)
    otherwise = sum(bool(verdict_words(pair)) for pair in claims if None not in pair.sides)
    told = [
        f"{otherwise} different" if otherwise else "",
        f"{len(claims) - alone - otherwise} the same",
        f"{alone} not claimed in every run" if alone else "",
    ]
    return f"{plural(len(claims), 'claim')}: {', '.join(filter(None, told))}." if claims else ""


def _run(at: int, subject: ReportedRun) -> tuple[str, ...]:
    host = show(box_of(subject.summary), 60)
    ended = f"{show(subject.state)} {for_how_long(f'{subject.summary.elapsed_s:.1f} s', subject.state)}".rstrip()
    return str(at), subject.id, subject.name, host, when_of(subject), ended


def _claimed(pair: ClaimPair) -> Claimed:
    return Claimed(
        pair.text, tuple(_told(side) for side in pair.sides), "; ".join(pair_words(pair))
    )


def _told(side: Side | None) -> RunClaim:
    if side is None:
        return RunClaim("not claimed", "–", "none", "")
    verdict, found = side_found(side)
    return RunClaim(verdict, *look_of(verdict), found)


def _numbers(group: Sequence[ReportedRun], found: Comparison) -> list[tuple[str, ...]]:
    """Return the rows of all tables, each with the title of its own."""
    rows = []
    for table in [*number_tables(found), *command_tables(group, found)]:
        rows += [(f"{table.title}: {name}", *values) for name, *values in table.rows]
    return rows


def _chart(group: Sequence[ReportedRun], name: str, room: PageBudget) -> ChartShapes:
    series = overlaid([subject.summary for subject in group], name)
    names = [one.arm for one in series[: room.lines]]
    summaries = [subject.summary for subject in group]
    kin = [one for summary in summaries for one in siblings(summary.series, name)]
    panel = panel_of(axes_of(summaries, name), series, names, kin=kin)
    return draw_chart(panel, min(room.points, _FEW_POINTS), room.places)
