"""What a page of a report says of one run, ready to be written down: nothing here knows HTML or Markdown."""

import time
from dataclasses import dataclass
from typing import Any

from tuilab.catalogue.lesson import LessonPart, blocks
from tuilab.catalogue.params import spell
from tuilab.drawings.figures import figures_of
from tuilab.drawings.glyphs import VERDICT_MARKS, Style
from tuilab.record.blocks import measure_of, noise_floor
from tuilab.record.events import ImageShown, RunStarted
from tuilab.record.finding_words import noise_words
from tuilab.record.folding.arms_table import ARMS
from tuilab.record.states import RunState
from tuilab.record.summary import RunSummary
from tuilab.record.tracebacks import as_named, frames
from tuilab.record.verdicts import Verdict
from tuilab.reports.charts.geometry import ChartShapes, draw_chart
from tuilab.reports.charts.panels import (
    MOST_LINES,
    MOST_PANELS,
    machine_panels,
    metric_names,
    series_panels,
    time_spreads,
    times_title,
)
from tuilab.reports.charts.spreads import Interval, TimingShapes, draw_interval, draw_spreads
from tuilab.reports.figures import Shapes, shapes_of, that_fit
from tuilab.reports.missing_data import gaps
from tuilab.reports.png import data_address
from tuilab.reports.reported_run import ReportedRun
from tuilab.reports.result import ResultClaim, ResultRatio
from tuilab.runs import command_line
from tuilab.runs.notes import day
from tuilab.text.display import plural, show, told_apart

_STYLE = Style()
_MOST_TEXTS, _MOST_FACTS, _MOST_NOTES = 40, 400, 40


@dataclass(frozen=True)
class PageBudget:
    """How much a page may hold: a report has a size that can be sent around."""

    points: float = 2.5  # of all charts together, in what one chart may have at most
    panels: int = MOST_PANELS
    lines: int = MOST_LINES
    pictures: int = 24
    claims: int = 400
    characters: int = 100_000  # of one text
    figures: int = 40
    spans: int = 1200  # of all lanes together
    places: int = 8  # of the table of a chart's values


PAGE_BUDGETS = (
    PageBudget(),
    PageBudget(1.8, 16, 30, 24, 400, 60_000, 30, 900, 6),
    PageBudget(1.2, 12, 20, 16, 300, 20_000, 20, 600, 6),
    PageBudget(0.5, 6, 10, 8, 200, 4_000, 8, 200, 4),
    PageBudget(0.1, 2, 3, 2, 60, 1_000, 2, 50, 2),
)
BRIEF_PAGE_BUDGETS = (
    PageBudget(0.2, 1, 12, 4, 100, 20_000, places=6),
    PageBudget(0.1, 1, 6, 0, 60, 6_000, places=3),
    PageBudget(0.03, 1, 2, 0, 30, 600, places=2),
)


@dataclass(frozen=True)
class ClaimRow:
    """One claim with its verdict: estimate, interval and noise floor whatever the verdict."""

    text: str
    verdict: str
    mark: str
    kind: str
    estimate: str
    claimed: str
    why: str
    interval: Interval | None


@dataclass(frozen=True)
class PagePicture:
    title: str
    address: str
    rows: int
    cols: int
    low: str
    high: str


@dataclass(frozen=True)
class PageParam:
    name: str
    value: str
    label: str
    is_changed: bool


@dataclass(frozen=True)
class ReportPage:
    """One run."""

    id: str
    name: str
    title: str
    digest: str
    state: str
    is_fine: bool
    when: str
    elapsed: str
    repeats: str
    command: str
    why_not_again: (
        str  # as where a secret was taken out of the command; nothing where it repeats the run
    )
    deciding: str  # what likely decides what is open
    counts: str
    arms: tuple[str, ...]  # of a race of commands: what each is
    claims: tuple[ClaimRow, ...]
    charts: tuple[ChartShapes, ...]
    machine: tuple[ChartShapes, ...]
    timings: TimingShapes
    pictures: tuple[PagePicture, ...]
    has_arms: bool  # the figures say what the verdicts rest on, and stand beside them
    figures: tuple[Shapes, ...]
    texts: tuple[tuple[str, str], ...]
    numbers: tuple[tuple[str, str], ...]
    params: tuple[PageParam, ...]
    lesson: tuple[tuple[str, tuple[LessonPart, ...]], ...]
    failure: tuple[str, str, str] | None  # what, traceback, hint
    faults: tuple[str, ...]
    gaps: tuple[str, ...]
    tags: str
    notes: tuple[tuple[str, str], ...]  # when, and what
    environment: tuple[tuple[str, tuple[tuple[str, str], ...]], ...]
    source: str
    source_title: str
    is_command: bool  # of the user's, and no scenario
    is_watched: bool  # one that is no race
    texts_title: str


def page_of(
    subject: ReportedRun, room: PageBudget = PAGE_BUDGETS[0], *, is_brief: bool = False
) -> ReportPage:
    """Return the page of a run; a brief one, as one of many, has the main chart alone and leaves the environment to others."""
    summary, run = subject.summary, subject.summary.run
    panels = series_panels(summary, room.panels, room.lines)
    machine = [] if is_brief else machine_panels(summary)
    rows = tuple(
        claim_row(claim, subject.before.get(claim.claim_id, "")) for claim in subject.result.claims
    )
    share = min(room.points / max(len(panels) + len(machine), 1), 1.0)
    return ReportPage(
        id=subject.id,
        name=subject.name,
        title=subject.title,
        digest=subject.result.record.digest,
        state=show(subject.state),
        is_fine=subject.state == RunState.SUCCEEDED,
        when=when_of(subject),
        elapsed=f"{summary.elapsed_s:.1f} s",
        repeats=_repeats(subject),
        command=command_line.rerun_line(run, summary.planned_repeats) if run else "",
        why_not_again=_why_not_again(run),
        deciding=command_line.deciding_line(summary),
        counts="" if _is_watched(summary) else _counts(rows),
        arms=tuple(command_line.arms_of(run)) if run else (),
        claims=rows[: room.claims],
        charts=tuple(draw_chart(panel, share, room.places) for panel in panels),
        machine=tuple(draw_chart(panel, share, room.places) for panel in machine),
        timings=_timings(summary),
        pictures=tuple(_pictures(list(summary.images.values())[: room.pictures])),
        has_arms=ARMS in summary.figures,
        figures=()
        if is_brief
        else tuple(map(shapes_of, that_fit(figures_of(summary), room.figures, room.spans))),
        texts=() if is_brief else tuple(_texts(subject, room)),
        numbers=tuple((number.name, number.words) for number in subject.result.numbers),
        params=tuple(_params(subject, room)),
        lesson=tuple(_lesson(subject, room)),
        failure=_failure(subject, room),
        faults=tuple(cut(fault, room) for fault in summary.faults[:20]),
        gaps=(*gaps(subject), *_not_shown(subject, room, len(rows), is_brief=is_brief)),
        tags=" ".join(f"#{tag}" for tag in subject.notes.tags),
        notes=tuple((day(when), text) for when, text in subject.notes.texts[-_MOST_NOTES:]),
        environment=() if is_brief else environment_of(subject),
        source=cut(subject.source, room),
        source_title="The script" if run and run.command else "Source as it ran",
        is_command=bool(run and run.command),
        is_watched=_is_watched(summary),
        texts_title="Its steps" if run and run.command else "Shown by the scenario",
    )


def cut(text: str, room: PageBudget) -> str:
    """Return a text that fits; one that is cut says so."""
    left = len(text) - room.characters
    return (
        text
        if left <= 0
        else f"{text[: room.characters]}\n… {plural(left, 'character')} more: see the .json report"
    )


def look_of(verdict: str) -> tuple[str, str]:
    """Return the mark of a verdict, and which of the colours it has."""
    return _STYLE.mark(verdict), VERDICT_MARKS[verdict][2] if verdict in VERDICT_MARKS else "open"


def claim_row(claim: ResultClaim, before: str = "") -> ClaimRow:
    """Return a claim as pages show it, with how often it was judged before."""
    mark, kind = look_of(claim.outcome)
    if claim.verdict == Verdict.NO_DIFFERENCE:
        kind = "bad" if claim.is_contradicted else "good"
    look = {"verdict": claim.outcome, "mark": mark, "kind": kind}
    if not claim.is_ratio or claim.claimed is None:
        return ClaimRow(
            claim.text, **look, estimate="", claimed="", why=claim.evidence, interval=None
        )
    floor = noise_words(claim.noise) or "no noise floor"
    why = "; ".join(filter(None, (claim.why, before)))
    return ClaimRow(
        claim.text,
        **look,
        estimate=claim.ratio_words(has_confidence=True),
        claimed=f"claimed {claim.claimed.words}; {floor}",
        why=why,
        interval=_interval(claim, claim.claimed),
    )


def _interval(claim: ResultClaim, claimed: ResultRatio) -> Interval | None:
    """Return the drawing of an interval; the noise floor of an arm that the claim is not about is left out of it."""
    if claim.estimate is None or claim.low is None or claim.high is None:
        return None
    is_own = set(claim.noise_arms or [""]) <= {claimed.over, claimed.under}
    return draw_interval(
        claim.estimate, claim.low, claim.high, claimed.bound, claim.noise_floor if is_own else None
    )


def _timings(summary: RunSummary) -> TimingShapes:
    """Return the chart of the times of the arms."""
    rows = time_spreads(summary)[:24]
    return draw_spreads(rows, noise_floor(summary), measure_of(summary), title=times_title(summary))


def environment_of(subject: ReportedRun) -> tuple[tuple[str, tuple[tuple[str, str], ...]], ...]:
    """Return the recorded environment as (part, rows)."""
    return tuple(
        (show(part), tuple(_flat("", facts))[:_MOST_FACTS])
        for part, facts in subject.summary.environment.items()
    )


def when_of(subject: ReportedRun) -> str:
    """Return when a run started."""
    run = subject.summary.run
    if run is None or run.wall_ns > 2**62:
        return "n/a"
    return time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(run.wall_ns / 1e9))


def _repeats(subject: ReportedRun) -> str:
    run = subject.summary.run
    if run is None:
        return "n/a"
    ended, planned = len(subject.summary.finished_repeats()), subject.summary.planned_repeats
    words = (
        f"{ended} of {plural(planned, 'repeat')}" if ended != planned else plural(planned, "repeat")
    )
    return "" if _is_watched(subject.summary) else words + (", with --quick" if run.quick else "")


def _why_not_again(run: RunStarted | None) -> str:
    """Return that the command does not repeat the run as it stands, and why, in a sentence; nothing where it does."""
    why = command_line.why_not_again(run) if run else ""
    return f"This command does not repeat the run: {why}." if why else ""


def _is_watched(summary: RunSummary) -> bool:
    """Say whether a run is of a command of the user's that is no race: it claims nothing, and runs once."""
    return bool(summary.run and summary.run.topic == "exec" and summary.run.command)


def _counts(rows: tuple[ClaimRow, ...]) -> str:
    counts: dict[str, int] = {}
    for row in rows:
        counts[row.verdict] = counts.get(row.verdict, 0) + 1
    return (
        ", ".join(f"{count} {verdict.lower()}" for verdict, count in counts.items()) or "no claims"
    )


def _pictures(images: list[ImageShown]) -> list[PagePicture]:
    return [
        PagePicture(
            show(f"{i.title} {i.arm}".strip()),
            data_address(i),
            i.rows,
            i.cols,
            f"{i.low:.4g}",
            f"{i.high:.4g}",
        )
        for i in images
    ]


def _texts(subject: ReportedRun, room: PageBudget) -> list[tuple[str, str]]:
    latest = {one.title: one.text for one in subject.summary.texts[-_MOST_TEXTS:]}
    return [(show(title).strip(), cut(text, room)) for title, text in latest.items()]


def _params(subject: ReportedRun, room: PageBudget) -> list[PageParam]:
    run = subject.summary.run
    labels = {param.name: param.label for param in subject.scenario.params}
    found = list(run.params.items())[: room.claims] if run else []
    changed = run.changed if run else []
    return [
        PageParam(name, cut(spell(value), room), labels.get(name, ""), name in changed)
        for name, value in found
    ]


def _lesson(subject: ReportedRun, room: PageBudget) -> list[tuple[str, tuple[LessonPart, ...]]]:
    """Return the lesson as (heading, blocks), its introduction first."""
    scenario = subject.scenario
    parts = [
        ("", scenario.lesson.partition("\n## ")[0] if not scenario.lesson.startswith("## ") else "")
    ]
    parts += scenario.sections.items()
    return [(show(heading, 100), tuple(blocks(cut(text, room)))) for heading, text in parts if text]


def _failure(subject: ReportedRun, room: PageBudget) -> tuple[str, str, str] | None:
    failure = subject.summary.failure
    if failure is None:
        return None
    return (
        show(f"{failure.type}: {failure.message}", 2000),
        cut(as_named(frames(failure), subject.summary), room),
        failure.hint,
    )


def _not_shown(subject: ReportedRun, room: PageBudget, claims: int, *, is_brief: bool) -> list[str]:
    """Return what has no room on the page; of a brief one, which is meant to have less, only what nobody expects to be gone."""
    hidden = metric_names(subject.summary)[room.panels :]
    names = ", ".join(told_apart(hidden[:5], 60).values()) + (", …" if len(hidden) > 5 else "")
    pictures = len(subject.summary.images) - room.pictures
    figures = figures_of(subject.summary)
    left_out = len(figures) - len(that_fit(figures, room.figures, room.spans))
    found = []
    if claims > room.claims:
        found.append(f"{plural(claims - room.claims, 'claim')} more: the .json and .xml have them.")
    if is_brief:
        return found
    if hidden:
        found.append(
            f"{plural(len(hidden), 'series', 'series')} without a chart here: {names}: the .json and .csv have them."
        )
    if left_out > 0:
        found.append(f"{plural(left_out, 'figure')} more: see the .json report.")
    if pictures > 0:
        found.append(f"{plural(pictures, 'picture')} more: see the .json report.")
    return found


def _flat(prefix: str, facts: Any) -> list[tuple[str, str]]:
    """Return nested facts as rows of (name, value)."""
    if isinstance(facts, dict):
        return [
            row for name, inner in facts.items() for row in _flat(f"{prefix} {name}".strip(), inner)
        ]
    if isinstance(facts, list) and any(isinstance(inner, dict | list) for inner in facts):
        return [
            row for at, inner in enumerate(facts) for row in _flat(f"{prefix} {at}".strip(), inner)
        ]
    value = (
        ", ".join(map(str, facts))
        if isinstance(facts, list)
        else "n/a"
        if facts is None
        else str(facts)
    )
    return [(show(prefix, 100), show(value, 400))]
