"""Summarise a sweep: each claim along the values of the settings, and where it holds."""

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from tuilab.catalogue import grid
from tuilab.record.events import Sweep
from tuilab.record.states import RunState
from tuilab.record.verdicts import Verdict, is_about_other_values
from tuilab.reports.charts.panels import Panel
from tuilab.reports.pages import ClaimRow, claim_row
from tuilab.reports.reported_run import ReportedRun
from tuilab.reports.result import ResultClaim
from tuilab.reports.sweeps.panels import claim_panel, curve_panels
from tuilab.reports.sweeps.points import (
    Point,
    axis_of,
    describe_settings,
    describe_where_it_holds,
    group_points,
    number_of,
    point_words,
    varied_settings,
    x_of,
)
from tuilab.runs.sweeps import sweep_of_record
from tuilab.text.display import join, plural, show

_MAX_CLAIMS = 100
_MANY_VERDICTS = 10
_NAME_LENGTH = 40  # characters
_REASON_LENGTH = 200
_NUMBER = re.compile(r"\d(?:\d|,\d{3})*(?:\.\d+)?")
_COMMON_NUMBERS = {0.0, 1.0, 2.0, 3.0}  # in many sentences they are not the value of a setting
_STEP_PREFIX = "a step takes "  # the text about the steps of a command begins with it


@dataclass(frozen=True)
class PointClaim:
    """The result of a claim at one point."""

    point: Point
    words: str
    id: str  # of the run
    row: ClaimRow
    claim: ResultClaim

    @property
    def measured(self) -> str:
        """The estimate, or why there is none."""
        return self.row.estimate or self.row.why

    @property
    def is_about_other_values(self) -> bool:
        """Whether the claim is about other values than this point has."""
        return is_about_other_values(self.claim.outcome, self.claim.why)

    @property
    def holds(self) -> bool | None:
        """Whether the claim holds there; None if the measurement does not decide it."""
        if self.claim.verdict == Verdict.INVALID:
            return None
        return {"good": True, "bad": False, "fair": False}.get(self.row.kind)


@dataclass(frozen=True)
class ClaimAlongSweep:
    """One claim at all points."""

    text: str
    about: str  # the values that the text is about, if the sweep varies them
    points: tuple[PointClaim, ...]
    holds: tuple[str, ...]  # a sentence for each combination of the other settings
    panel: Panel | None


@dataclass(frozen=True)
class SweepSummary:
    """All points of a sweep that have a run."""

    id: str
    name: str  # of what was run
    sweep: Sweep
    settings: tuple[str, ...]
    counts: str
    claims: tuple[ClaimAlongSweep, ...]
    curves: tuple[Panel, ...]  # last values of the curves of a command
    numbers: tuple[tuple[str, ...], ...]  # a row of names, then a row for each point
    missing: tuple[str, ...]  # points without a result, and why
    doubts: tuple[str, ...]  # why the points may not belong to one experiment

    @property
    def title(self) -> str:
        names = [show(name, _NAME_LENGTH) for name in varied_settings(self.sweep)]
        return f"along {join(names) or 'one value'}"

    @property
    def note(self) -> str:
        """A warning if many verdicts rest on intervals."""
        verdicts = 0
        for claim in self.claims:
            for point in claim.points:
                if point.row.interval is not None:
                    verdicts += 1
        if verdicts <= _MANY_VERDICTS:
            return ""
        return f"{verdicts} verdicts, each judged separately: of many, some are wrong by chance."


class _FinishedPoint(NamedTuple):
    point: Point
    subject: ReportedRun
    claims: dict[str, ResultClaim]  # by a name that is the same at every point


# ---- the runs of sweeps


def group_by_sweep(subjects: Sequence[ReportedRun]) -> list[list[ReportedRun]]:
    """Return the runs that are points of sweeps, a list for each sweep.

    A single point is left out, as a run like any other, unless its sweep was asked for.
    """
    groups: dict[str, list[ReportedRun]] = {}
    for subject in sorted(subjects, key=lambda subject: subject.run_dir.name):
        sweep = sweep_of(subject)
        if sweep:
            groups.setdefault(sweep.id, []).append(subject)
        elif subject.of_sweep:
            groups.setdefault(subject.of_sweep.sweep, []).append(subject)
    sweeps = []
    for group in groups.values():
        is_readable = any(sweep_of(subject) for subject in group)
        is_asked_for = group[0].of_sweep is not None
        if is_readable and (len(group) > 1 or is_asked_for):
            sweeps.append(group)
    return sweeps


def sweep_of(subject: ReportedRun) -> Sweep | None:
    return sweep_of_record(subject.summary.run)


def runs_of_points(sweep: Sweep, subjects: Sequence[ReportedRun]) -> list[ReportedRun | None]:
    """Return the run that counts for each point of a sweep: the newest that succeeded.

    If none succeeded, the newest counts. None if there is no run.
    """
    runs: dict[str, ReportedRun] = {}
    for subject in subjects:
        key = _point_key(subject.point)
        if _has_result(subject) or key not in runs or not _has_result(runs[key]):
            runs[key] = subject
    return [runs.get(_point_key(point)) for point in grid.points(sweep.values)]


def _point_key(point: Point) -> str:
    return repr(sorted(point.items()))


def drop_repeated_points(subjects: Sequence[ReportedRun]) -> list[ReportedRun]:
    """Return the runs without those of sweeps whose point was run again with success."""
    dropped: set[int] = set()
    for group in group_by_sweep(subjects):
        sweep = sweep_of(group[0])
        if sweep:
            counted = {id(subject) for subject in runs_of_points(sweep, group)}
            for subject in group:
                if id(subject) not in counted:
                    dropped.add(id(subject))
    return [subject for subject in subjects if id(subject) not in dropped]


def _has_result(subject: ReportedRun) -> bool:
    return subject.state == RunState.SUCCEEDED and sweep_of(subject) is not None


# ---- the summary


def summarise_sweep(subjects: Sequence[ReportedRun]) -> SweepSummary:
    """Return the summary of the runs of one sweep, of which one counts for each point.

    At least one of the runs must be readable, as in the groups of `group_by_sweep`. Numbers are
    listed only if no point has claims.
    """
    first = next(subject for subject in subjects if sweep_of(subject))
    sweep = sweep_of(first)
    assert sweep is not None
    axis = axis_of(sweep)
    varied = varied_settings(sweep)

    finished: list[_FinishedPoint] = []
    missing_points: list[Point] = []
    missing: list[str] = []
    runs = runs_of_points(sweep, subjects)
    for point, subject in zip(grid.points(sweep.values), runs, strict=True):
        if subject and _has_result(subject):
            claims = {claim.claim_id: claim for claim in subject.result.claims[:_MAX_CLAIMS]}
            finished.append(_FinishedPoint(point, subject, claims))
        else:
            missing_points.append(point)
            missing.append(f"{point_words(point, varied)}: {_why_missing(subject)}")

    claim_ids: dict[str, None] = {}
    for run in finished:
        claim_ids |= dict.fromkeys(run.claims)
    claims_along = []
    for claim_id in list(claim_ids)[:_MAX_CLAIMS]:
        claims_along.append(_follow_claim(claim_id, finished, missing_points, axis, varied))
    numbers: list[tuple[str, ...]] = []
    if finished and not claim_ids:
        numbers = _make_number_table(finished, varied)
    finished_runs = [(run.point, run.subject) for run in finished]
    total = plural(len(runs), "point")
    return SweepSummary(
        id=sweep.id,
        name=first.name,
        sweep=sweep,
        settings=tuple(describe_settings(sweep)),
        counts=f"{len(finished)} of {total}{_describe_effort(finished)}",
        claims=tuple(claims_along),
        curves=tuple(curve_panels(finished_runs, axis, varied)),
        numbers=tuple(numbers),
        missing=tuple(missing),
        doubts=tuple(_list_doubts(finished)),
    )


def _why_missing(subject: ReportedRun | None) -> str:
    """Return why a point has no result: no run, one that cannot be read, or one that failed."""
    if subject is None:
        return "no run found: not started, or deleted"
    if sweep_of(subject) is None:
        return f"its values cannot be read from its recorded data ({subject.id})"
    why = ": ".join(filter(None, (subject.state, subject.summary.reason)))
    return f"{show(why, _REASON_LENGTH)} ({subject.id})"


def _describe_effort(finished: Sequence[_FinishedPoint]) -> str:
    """Return how many processes each point took, if that is the same for all points; else empty.

    Empty for a command as well, because each of its points is one process.
    """
    efforts = set()
    for _, subject, _ in finished:
        run = subject.summary.run
        if run:
            efforts.add((subject.summary.planned_repeats, run.quick, bool(run.command)))
    if len(efforts) != 1:
        return ""
    repeats, is_quick, is_command = efforts.pop()
    if is_command:
        return ""
    words = f"; {plural(repeats, 'process', 'processes')} each"
    if is_quick:
        words += ", with --quick"
    return words


def _list_doubts(finished: Sequence[_FinishedPoint]) -> Iterator[str]:
    """Yield reasons why the points may not belong to one experiment."""
    sources = set()
    for _, subject, _ in finished:
        if subject.summary.run:
            sources.add(subject.summary.run.source_sha256)
    if len(sources) > 1:
        yield "The source changed between the points, which may explain differences."
    for point, subject, _ in finished:
        if subject.summary.damage.is_any or subject.reading_gaps:
            yield f"The recorded data of {point_words(point)} ({subject.id}) is incomplete."


# ---- one claim at all points


def _follow_claim(
    claim_id: str,
    finished: Sequence[_FinishedPoint],
    missing: Sequence[Point],
    axis: str,
    varied: Collection[str],
) -> ClaimAlongSweep:
    """Return a claim with its result at each point, and where it holds.

    The points are in the order of the axis, those of each combination of other settings together.
    """
    judged = []
    for point, subject, claims in finished:
        claim = claims.get(claim_id)
        if claim is not None:
            row = claim_row(claim, subject.earlier.get(claim_id, ""))
            words = point_words(point, varied)
            judged.append(PointClaim(point, words, subject.id, row, claim))
    if axis:
        judged.sort(key=lambda result: x_of(result.point, axis))
    points = [result.point for result in judged]
    grouped = []
    for indices in group_points(points, axis, varied).values():
        for index in indices:
            grouped.append(judged[index])
    text = judged[0].claim.text
    about = ""
    if not any(result.is_about_other_values for result in judged):
        about = _describe_written_values(text, finished[0].subject)
    claims_of_points = [(result.point, result.claim) for result in judged]
    return ClaimAlongSweep(
        text=text,
        about=about,
        points=tuple(grouped),
        holds=tuple(_describe_groups(judged, missing, axis, varied)),
        panel=claim_panel(claims_of_points, axis, varied),
    )


def _describe_groups(
    judged: Sequence[PointClaim], missing: Sequence[Point], axis: str, varied: Collection[str]
) -> list[str]:
    """Return where a claim holds: a sentence for each combination of the other settings.

    A missing point counts as not decided. A point with other values than the claim is about is left
    out.
    """
    points = [result.point for result in judged]
    points += missing
    named_settings = [axis] if axis else varied
    sentences = []
    for words, indices in group_points(points, axis, varied).items():
        outcomes: list[tuple[str, bool | None]] = []
        for index in sorted(indices, key=lambda index: x_of(points[index], axis)):
            holds = None
            if index < len(judged):
                if judged[index].is_about_other_values:
                    continue
                holds = judged[index].holds
            outcomes.append((point_words(points[index], named_settings), holds))
        if outcomes:
            sentence = describe_where_it_holds(outcomes, is_ordered=bool(axis))
        else:
            sentence = _describe_other_values(judged)
        if words:
            sentence = f"{words}: {sentence}"
        sentences.append(sentence)
    return sentences


def _describe_other_values(judged: Sequence[PointClaim]) -> str:
    """Return the sentence for a claim that is about none of the values of a sweep."""
    reasons = [result.claim.why for result in judged if result.is_about_other_values]
    return f"n/a: {reasons[0]}"


def _describe_written_values(text: str, subject: ReportedRun) -> str:
    """Return the values that a claim names, if they are the defaults of settings that vary.

    Empty if the text of the claim names no such value.
    """
    sweep = sweep_of(subject)
    if sweep is None:
        return ""
    numbers = {float(digits.replace(",", "")) for digits in _NUMBER.findall(text)}
    numbers -= _COMMON_NUMBERS
    defaults = {param.name: param.default for param in subject.scenario.params}
    named = {}
    for name, values in sweep.values.items():
        if name not in defaults or values == [defaults[name]]:
            continue
        if number_of(defaults[name]) in numbers:
            named[name] = defaults[name]
    if not named:
        return ""
    return f"as written for {point_words(named)}"


# ---- numbers of a sweep without claims


def _make_number_table(
    finished: Sequence[_FinishedPoint], varied: Collection[str]
) -> list[tuple[str, ...]]:
    """Return a row of names, then a row of numbers for each point."""
    numbers_of_points = []
    names: dict[str, None] = {}
    for _, subject, _ in finished:
        numbers = _read_step_times(subject)
        for number in subject.result.numbers:
            numbers[number.name] = number.words
        numbers_of_points.append(numbers)
        names |= dict.fromkeys(numbers)
    table = [("", *names, "run")]
    for (point, subject, _), numbers in zip(finished, numbers_of_points, strict=True):
        cells = [numbers.get(name, "n/a") for name in names]
        table.append((point_words(point, varied), *cells, subject.id))
    return table


def _read_step_times(subject: ReportedRun) -> dict[str, str]:
    """Return how long a step of a command takes and what takes the time, from its texts."""
    lines = []
    for text in subject.summary.texts:
        if text.title == "steps":
            lines += text.text.splitlines()[:2]
    if not lines or not lines[0].startswith(_STEP_PREFIX):
        return {}
    return {
        "step": lines[0].removeprefix(_STEP_PREFIX),
        "where a step goes": "".join(lines[1:]),
    }
