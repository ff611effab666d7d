"""The content of a page of a report about one run, before it becomes HTML or Markdown."""

import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from tuilab.catalogue.lesson import LessonPart, blocks
from tuilab.catalogue.params import spell
from tuilab.drawings.figures import Figure, figures_of
from tuilab.drawings.glyphs import VERDICT_MARKS, Style
from tuilab.record.blocks import measure_of, noise_floor
from tuilab.record.events import ImageShown, RunStarted
from tuilab.record.finding_words import noise_words
from tuilab.record.folding.arms_table import ARMS
from tuilab.record.states import RunState
from tuilab.record.summary import RunSummary
from tuilab.record.tracebacks import as_named, frames
from tuilab.record.tuning.stages import count_processes, is_tuning
from tuilab.record.verdicts import Verdict
from tuilab.reports.charts.geometry import ChartShapes, draw_chart
from tuilab.reports.charts.panels import (
    MOST_LINES,
    MOST_PANELS,
    Panel,
    machine_panels,
    metric_names,
    series_panels,
    time_spreads,
    times_title,
)
from tuilab.reports.charts.spreads import Interval, TimingShapes, draw_interval, draw_spreads
from tuilab.reports.figures import Shapes, select_figures, shapes_of
from tuilab.reports.missing_data import gaps
from tuilab.reports.png import data_address
from tuilab.reports.reported_run import ReportedRun
from tuilab.reports.result import ResultClaim, ResultRatio
from tuilab.reports.tuning.page import TuningPage, tuning_page
from tuilab.runs import command_line
from tuilab.runs.notes import day
from tuilab.text.display import distinct_labels, plural, show

_STYLE = Style()
_MOST_TEXTS = 40
_MOST_FACTS = 400  # of a part of the environment
_MOST_NOTES = 40
_MOST_FAULTS = 20
_MOST_ARMS = 24  # in the chart of times
_MOST_HIDDEN_NAMES = 5  # of curves without a chart that a sentence names

_Facts = tuple[tuple[str, str], ...]  # rows of (name, value)


@dataclass(frozen=True)
class PageBudget:
    """How much a page may hold, so that a report stays small enough to send around."""

    points: float = 2.5  # of all charts together, in units of the points that one chart may have
    panels: int = MOST_PANELS
    lines: int = MOST_LINES
    pictures: int = 24
    claims: int = 400
    characters: int = 100_000  # of one text
    figures: int = 40
    spans: int = 1200  # of all lanes together
    places: int = 8  # columns in the table of a chart's values


# The largest first: a report takes the next one as long as it is too large.
# In order: points, panels, lines, pictures, claims, characters, figures, spans, places.
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
    """A picture that the scenario showed; `address` has its data."""

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
    why_not_again: str  # for example, because a secret was removed; empty: it repeats the run
    deciding: str  # the command that is likely to settle the inconclusive claims
    counts: str
    arms: tuple[str, ...]  # the arms of a race of commands, each with its command
    claims: tuple[ClaimRow, ...]
    charts: tuple[ChartShapes, ...]
    machine: tuple[ChartShapes, ...]
    timings: TimingShapes
    pictures: tuple[PagePicture, ...]
    has_arms: bool  # the figures are what the verdicts rest on, so they are shown with the claims
    figures: tuple[Shapes, ...]
    texts: tuple[tuple[str, str], ...]
    numbers: _Facts
    params: tuple[PageParam, ...]
    lesson: tuple[tuple[str, tuple[LessonPart, ...]], ...]
    failure: tuple[str, str, str] | None  # the exception, its traceback, and a hint
    faults: tuple[str, ...]
    gaps: tuple[str, ...]
    tags: str
    notes: tuple[tuple[str, str], ...]  # each with its day
    environment: tuple[tuple[str, _Facts], ...]
    source: str
    source_title: str
    is_command: bool  # the user's command ran, not a scenario
    is_watched: bool  # a command that ran once, not a race of commands
    texts_title: str
    tuning: TuningPage | None  # what a tuning tried; None for another run


def page_of(
    subject: ReportedRun, budget: PageBudget = PAGE_BUDGETS[0], *, is_brief: bool = False
) -> ReportPage:
    """Return the page of a run, which holds as much as the budget allows and says what is left out.

    A brief page is one of many in a report. It has neither charts of the machine nor figures, texts
    and the environment, which the report shows once for each machine.
    """
    summary = subject.summary
    run = summary.run
    claims = claim_rows(subject)
    machine: list[Panel] = []
    figures: list[Figure] = []
    texts: list[tuple[str, str]] = []
    environment: tuple[tuple[str, _Facts], ...] = ()
    if not is_brief:
        machine = machine_panels(summary)
        figures = select_figures(figures_of(summary), budget.figures, budget.spans)
        texts = _latest_texts(subject, budget)
        environment = environment_of(subject)
    panels = series_panels(summary, budget.panels, budget.lines)
    share = min(budget.points / max(len(panels) + len(machine), 1), 1.0)
    charts = [draw_chart(panel, share, budget.places) for panel in panels]
    machine_charts = [draw_chart(panel, share, budget.places) for panel in machine]
    command = ""
    arms: list[str] = []
    if run:
        command = command_line.rerun_line(run, summary.planned_repeats)
        arms = command_line.arms_of(run)
    is_command = bool(run and run.command)
    is_watched = _is_watched(summary)
    counts = ""
    if not is_watched:
        counts = _count_verdicts(claims)
    numbers = [(number.name, number.words) for number in subject.result.numbers]
    faults = [cut(fault, budget) for fault in summary.faults[:_MOST_FAULTS]]
    left_out = _list_left_out(summary, budget, len(claims), is_brief=is_brief)
    tags = [f"#{tag}" for tag in subject.notes.tags]
    return ReportPage(
        id=subject.id,
        name=subject.name,
        title=subject.title,
        digest=subject.result.record.digest,
        state=show(subject.state),
        is_fine=subject.state == RunState.SUCCEEDED,
        when=when_of(subject),
        elapsed=f"{summary.elapsed_s:.1f} s",
        repeats=_describe_repeats(summary),
        command=command,
        why_not_again=_why_not_again(run),
        deciding=command_line.deciding_line(summary),
        counts=counts,
        arms=tuple(arms),
        claims=tuple(claims[: budget.claims]),
        charts=tuple(charts),
        machine=tuple(machine_charts),
        timings=_draw_timings(summary),
        pictures=_list_pictures(list(summary.images.values())[: budget.pictures]),
        has_arms=ARMS in summary.figures,
        figures=tuple(map(shapes_of, figures)),
        texts=tuple(texts),
        numbers=tuple(numbers),
        params=_list_params(subject, budget),
        lesson=_list_lesson_parts(subject, budget),
        failure=_describe_failure(summary, budget),
        faults=tuple(faults),
        gaps=(*gaps(subject), *left_out),
        tags=" ".join(tags),
        notes=_list_notes(subject),
        environment=environment,
        source=cut(subject.source, budget),
        source_title="The script" if is_command else "Source as it ran",
        is_command=is_command,
        is_watched=is_watched,
        texts_title="Its steps" if is_command else "Shown by the scenario",
        tuning=_tuning_page(subject, budget),
    )


def _tuning_page(subject: ReportedRun, budget: PageBudget) -> TuningPage | None:
    """Return the part about a tuning; None for another run."""
    if subject.result.tuning is None:
        return None
    return tuning_page(subject.result.tuning, budget.characters, budget.claims)


def cut(text: str, budget: PageBudget) -> str:
    """Return the start of a text that is too long, with a note that it is cut; else the text."""
    left_out = len(text) - budget.characters
    if left_out <= 0:
        return text
    start = text[: budget.characters]
    return f"{start}\n… {plural(left_out, 'character')} more: see the .json report"


# ---- claims and times


def mark_and_kind(verdict: str) -> tuple[str, str]:
    """Return the mark of a verdict, and the kind that gives it its colour."""
    if verdict not in VERDICT_MARKS:
        return _STYLE.mark(verdict), "open"
    return _STYLE.mark(verdict), VERDICT_MARKS[verdict][2]


def claim_rows(subject: ReportedRun) -> list[ClaimRow]:
    """Return the claims of a run as pages show them."""
    rows = []
    for claim in subject.result.claims:
        if subject.result.tuning and claim.verdict == Verdict.NOT_TESTABLE:
            continue  # the table of the treatments has the reason
        rows.append(claim_row(claim, subject.earlier.get(claim.claim_id, "")))
    return rows


def claim_row(claim: ResultClaim, earlier: str = "") -> ClaimRow:
    """Return a claim as pages show it; `earlier` says how often it was judged before."""
    mark, kind = mark_and_kind(claim.outcome)
    if claim.verdict == Verdict.NO_DIFFERENCE:
        kind = "bad" if claim.is_contradicted else "good"
    row = ClaimRow(
        text=claim.text,
        verdict=claim.outcome,
        mark=mark,
        kind=kind,
        estimate="",
        claimed="",
        why=claim.evidence,
        interval=None,
    )
    if not claim.is_ratio or claim.claimed is None:
        return row
    floor = noise_words(claim.noise) or "no noise floor"
    return replace(
        row,
        estimate=claim.ratio_words(has_confidence=True),
        claimed=f"claimed {claim.claimed.words}; {floor}",
        why="; ".join(filter(None, (claim.why, earlier))),
        interval=_draw_interval(claim, claim.claimed),
    )


def _draw_interval(claim: ResultClaim, claimed: ResultRatio) -> Interval | None:
    """Return the drawing of an interval, with the noise floor if that is of an arm of the claim."""
    if claim.estimate is None or claim.low is None or claim.high is None:
        return None
    floor = None
    if set(claim.noise_arms or [""]) <= {claimed.over, claimed.under}:
        floor = claim.noise_floor
    return draw_interval(claim.estimate, claim.low, claim.high, claimed.bound, floor)


def _draw_timings(summary: RunSummary) -> TimingShapes:
    """Return the chart of the times of the arms."""
    spreads = time_spreads(summary)[:_MOST_ARMS]
    noise = noise_floor(summary)
    return draw_spreads(spreads, noise, measure_of(summary), title=times_title(summary))


def _count_verdicts(claims: Iterable[ClaimRow]) -> str:
    """Return how many claims have each verdict, in words."""
    counts = Counter(claim.verdict for claim in claims)
    words = [f"{count} {verdict.lower()}" for verdict, count in counts.items()]
    return ", ".join(words) or "no claims"


# ---- the run: when it ran, where, and how to run it again


def when_of(subject: ReportedRun) -> str:
    """Return when a run started."""
    run = subject.summary.run
    if run is None or run.wall_ns > 2**62:
        return "n/a"
    return time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(run.wall_ns / 1e9))


def _describe_repeats(summary: RunSummary) -> str:
    """Return how many of the planned repeats ended; nothing for a watched command.

    The planned repeats of a tuning are only a limit, so its processes are counted instead.
    """
    if summary.run is None:
        return "n/a"
    if _is_watched(summary):
        return ""
    if is_tuning(summary):
        return plural(count_processes(summary), "process", "processes")
    ended = len(summary.finished_repeats())
    planned = summary.planned_repeats
    words = plural(planned, "repeat")
    if ended != planned:
        words = f"{ended} of {words}"
    if summary.run.quick:
        words += ", with --quick"
    return words


def _why_not_again(run: RunStarted | None) -> str:
    """Return in a sentence why the command does not repeat the run; nothing if it does."""
    if run is None:
        return ""
    why = command_line.why_not_again(run)
    if not why:
        return ""
    return f"This command does not repeat the run: {why}."


def _is_watched(summary: RunSummary) -> bool:
    """Say whether the user's command ran alone: then it has no claims, and one repeat."""
    return bool(summary.run and summary.run.topic == "exec" and summary.run.command)


def _list_params(subject: ReportedRun, budget: PageBudget) -> tuple[PageParam, ...]:
    """Return the parameters as they would be typed; none if the first record of the run is lost."""
    run = subject.summary.run
    if run is None:
        return ()
    labels = {param.name: param.label for param in subject.scenario.params}
    params = []
    for name, value in list(run.params.items())[: budget.claims]:
        words = cut(spell(value), budget)
        params.append(PageParam(name, words, labels.get(name, ""), name in run.changed))
    return tuple(params)


def environment_of(subject: ReportedRun) -> tuple[tuple[str, _Facts], ...]:
    """Return the recorded environment as (part, rows)."""
    parts = []
    for part, facts in subject.summary.environment.items():
        parts.append((show(part), tuple(_flatten("", facts))[:_MOST_FACTS]))
    return tuple(parts)


def _flatten(prefix: str, facts: Any) -> list[tuple[str, str]]:
    """Return nested facts as rows of (name, value)."""
    parts: Iterable[tuple[Any, Any]]
    if isinstance(facts, dict):
        parts = facts.items()
    elif isinstance(facts, list) and any(isinstance(inner, dict | list) for inner in facts):
        parts = enumerate(facts)
    else:
        return [(show(prefix, 100), show(_spell_fact(facts), 400))]
    rows = []
    for name, inner in parts:
        rows += _flatten(f"{prefix} {name}".strip(), inner)
    return rows


def _spell_fact(fact: Any) -> str:
    if isinstance(fact, list):
        return ", ".join(map(str, fact))
    if fact is None:
        return "n/a"
    return str(fact)


# ---- the scenario: its lesson, what it showed, and how it failed


def _list_lesson_parts(
    subject: ReportedRun, budget: PageBudget
) -> tuple[tuple[str, tuple[LessonPart, ...]], ...]:
    """Return the lesson as (heading, blocks), its introduction first."""
    scenario = subject.scenario
    sections: list[tuple[str, str]] = []
    if not scenario.lesson.startswith("## "):
        sections.append(("", scenario.lesson.partition("\n## ")[0]))
    sections += scenario.sections.items()
    parts = []
    for heading, text in sections:
        if text:
            parts.append((show(heading, 100), tuple(blocks(cut(text, budget)))))
    return tuple(parts)


def _latest_texts(subject: ReportedRun, budget: PageBudget) -> list[tuple[str, str]]:
    """Return the texts that the scenario showed, the latest of each title."""
    latest: dict[str, str] = {}
    for text in subject.summary.texts[-_MOST_TEXTS:]:
        latest[text.title] = text.text
    return [(show(title).strip(), cut(text, budget)) for title, text in latest.items()]


def _list_notes(subject: ReportedRun) -> tuple[tuple[str, str], ...]:
    """Return the latest notes about the run, each with its day."""
    notes = []
    for wall_s, text in subject.notes.texts[-_MOST_NOTES:]:
        notes.append((day(wall_s), text))
    return tuple(notes)


def _list_pictures(images: Iterable[ImageShown]) -> tuple[PagePicture, ...]:
    """Return the pictures as data in an address; a damaged picture has an empty address."""
    pictures = []
    for image in images:
        title = show(f"{image.title} {image.arm}".strip())
        low = f"{image.low:.4g}"
        high = f"{image.high:.4g}"
        address = data_address(image)
        pictures.append(PagePicture(title, address, image.rows, image.cols, low, high))
    return tuple(pictures)


def _describe_failure(summary: RunSummary, budget: PageBudget) -> tuple[str, str, str] | None:
    """Return the exception in words, its traceback and its hint; None if no scenario failed."""
    failure = summary.failure
    if failure is None:
        return None
    words = show(f"{failure.type}: {failure.message}", 2000)
    traceback = as_named(frames(failure), summary)
    return words, cut(traceback, budget), failure.hint


# ---- what is left out


def _list_left_out(
    summary: RunSummary, budget: PageBudget, claim_count: int, *, is_brief: bool
) -> list[str]:
    """Return in sentences what the page has no room for.

    A brief page is expected to have less, so of a brief page only missing claims are named.
    """
    sentences = []
    claims = claim_count - budget.claims
    if claims > 0:
        sentences.append(f"{plural(claims, 'claim')} more: the .json and .xml have them.")
    if is_brief:
        return sentences

    hidden = metric_names(summary)[budget.panels :]
    if hidden:
        count = plural(len(hidden), "series", "series")
        names = ", ".join(distinct_labels(hidden[:_MOST_HIDDEN_NAMES], 60).values())
        if len(hidden) > _MOST_HIDDEN_NAMES:
            names += ", …"
        sentences.append(f"{count} without a chart here: {names}: the .json and .csv have them.")
    figures = figures_of(summary)
    left_out = len(figures) - len(select_figures(figures, budget.figures, budget.spans))
    if left_out > 0:
        sentences.append(f"{plural(left_out, 'figure')} more: see the .json report.")
    pictures = len(summary.images) - budget.pictures
    if pictures > 0:
        sentences.append(f"{plural(pictures, 'picture')} more: see the .json report.")
    return sentences
