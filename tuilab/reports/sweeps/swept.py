"""A sweep as reports tell it: each claim along the values that were gone through, and from where on it holds."""

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from tuilab.catalogue import grid
from tuilab.record.events import Sweep
from tuilab.record.states import RunState
from tuilab.record.verdicts import Verdict, is_about_other_values
from tuilab.reports.charts.panels import Panel
from tuilab.reports.pages import ClaimRow, claim_row
from tuilab.reports.reported_run import ReportedRun
from tuilab.reports.result import ResultClaim
from tuilab.reports.sweeps.panels import curves_of, panel_of
from tuilab.reports.sweeps.points import (
    Point,
    axis_of,
    groups_of,
    holds_where,
    number_of,
    point_words,
    settings_of,
    varied_in,
    x_of,
)
from tuilab.runs.sweeps import sweep_in
from tuilab.text.display import join, plural, show

_MOST_CLAIMS = 100
_NUMBER = re.compile(r"\d(?:\d|,\d{3})*(?:\.\d+)?")
_BY_CHANCE = {0.0, 1.0, 2.0, 3.0}  # stand in many a sentence that is about something else
_TAKES = "a step takes "  # what is told of the steps of a command begins so


@dataclass(frozen=True)
class PointClaim:
    """What a claim came to at one point."""

    point: Point
    words: str
    id: str  # of the run
    row: ClaimRow
    claim: ResultClaim

    @property
    def found(self) -> str:
        """What was measured, or why there is no estimate."""
        return self.row.estimate or self.row.why

    @property
    def is_elsewhere(self) -> bool:
        """Whether the claim is about other values than this point has."""
        return is_about_other_values(self.claim.outcome, self.claim.why)

    @property
    def holds(self) -> bool | None:
        """Whether the claim holds there; None where the measurement gives no answer."""
        if self.claim.verdict == Verdict.INVALID:
            return None
        return {"good": True, "bad": False, "fair": False}.get(self.row.kind)


@dataclass(frozen=True)
class Along:
    """One claim at all points."""

    text: str
    about: str  # to be known of its words: that they have a value that varies here
    told: tuple[PointClaim, ...]
    holds: tuple[str, ...]  # a sentence for each combination of the other settings
    panel: Panel | None


@dataclass(frozen=True)
class Swept:
    """All points of a sweep that have a run."""

    id: str
    name: str  # of what was run
    sweep: Sweep
    settings: tuple[str, ...]
    counts: str
    claims: tuple[Along, ...]
    curves: tuple[Panel, ...]  # of a command's: where its curves ended
    numbers: tuple[tuple[str, ...], ...]  # a row a point, beneath a row of names
    missing: tuple[str, ...]  # the points that have no result, and why
    doubts: tuple[str, ...]  # why the points may not be of one experiment

    @property
    def title(self) -> str:
        return f"along {join([show(name, 40) for name in varied_in(self.sweep)]) or 'one value'}"

    @property
    def note(self) -> str:
        """What is to be known of many verdicts together that rest on intervals."""
        judged = sum(told.row.interval is not None for claim in self.claims for told in claim.told)
        return (
            f"{judged} verdicts, each judged separately: of many, some are wrong by chance."
            if judged > 10
            else ""
        )


def sweeps_of(subjects: Sequence[ReportedRun]) -> list[list[ReportedRun]]:
    """Return the runs that are points of sweeps, sweep by sweep; one is a run like any other if nobody asks for its sweep."""
    found: dict[str, list[ReportedRun]] = {}
    for subject in sorted(subjects, key=lambda subject: subject.run_dir.name):
        sweep, known = sweep_of(subject), subject.of_sweep
        if sweep or known:
            found.setdefault(sweep.id if sweep else known.sweep if known else "", []).append(
                subject
            )
    groups = (group for group in found.values() if any(map(sweep_of, group)))
    return [group for group in groups if len(group) > 1 or group[0].of_sweep]


def sweep_of(subject: ReportedRun) -> Sweep | None:
    return sweep_in(subject.summary.run)


def swept(subjects: Sequence[ReportedRun]) -> Swept:
    """Return what the runs of one sweep tell together; of several at one point the newest that succeeded speaks."""
    first = next(one for one in subjects if sweep_of(one))
    sweep = sweep_of(first)
    assert sweep is not None
    points = list(grid.points(sweep.values))
    speaking = speakers(sweep, subjects)
    axis, varied = axis_of(sweep), varied_in(sweep)
    ended = [
        (point, one)
        for point, one in zip(points, speaking, strict=True)
        if one and _has_result(one)
    ]
    claims = [(point, one, _claims(one)) for point, one in ended]
    keys = dict.fromkeys(key for *_, found in claims for key in found)
    missing = [
        (point, one)
        for point, one in zip(points, speaking, strict=True)
        if not one or not _has_result(one)
    ]
    return Swept(
        sweep.id,
        first.name,
        sweep,
        tuple(settings_of(sweep)),
        f"{len(ended)} of {plural(len(points), 'point')}{_how(ended)}",
        tuple(
            _along(key, claims, [point for point, _ in missing], axis, varied)
            for key in list(keys)[:_MOST_CLAIMS]
        ),
        tuple(curves_of(ended, axis, varied)),
        tuple(_numbers(ended, varied)) if ended and not keys else (),
        tuple(f"{point_words(point, varied)}: {_why_missing(one)}" for point, one in missing),
        tuple(_doubts(ended)),
    )


def _how(ended: Sequence[tuple[Point, ReportedRun]]) -> str:
    """Return how much stands behind each point, where it is the same for all."""
    ways = set()
    for _, subject in ended:
        run = subject.summary.run
        if run:
            ways.add((subject.summary.planned_repeats, run.quick, bool(run.command)))
    if len(ways) != 1:
        return ""
    repeats, is_quick, is_command = ways.pop()
    if is_command:
        return ""
    words = f"; {plural(repeats, 'process', 'processes')} each"
    return f"{words}, with --quick" if is_quick else words


def _doubts(ended: Sequence[tuple[Point, ReportedRun]]) -> Iterator[str]:
    """Yield why the points may not be of one experiment."""
    if len({run.source_sha256 for _, one in ended if (run := one.summary.run)}) > 1:
        yield "The source changed between the points, which may explain differences."
    for point, one in ended:
        if one.summary.damage.is_any or one.reading_gaps:
            yield f"The recorded data of {point_words(point)} ({one.id}) is incomplete."


def speakers(sweep: Sweep, subjects: Sequence[ReportedRun]) -> list[ReportedRun | None]:
    """Return, for each point of a sweep, the run that speaks for it."""
    found: dict[str, ReportedRun] = {}
    for subject in subjects:
        key = repr(sorted(subject.point.items()))
        if _has_result(subject) or key not in found or not _has_result(found[key]):
            found[key] = subject
    return [found.get(repr(sorted(point.items()))) for point in grid.points(sweep.values)]


def telling(subjects: Sequence[ReportedRun]) -> list[ReportedRun]:
    """Return the runs but those of a sweep whose point was run again, so that another one speaks for it."""
    silent: set[int] = set()
    for group in sweeps_of(subjects):
        if sweep := sweep_of(group[0]):
            silent |= {*map(id, group)} - {*map(id, speakers(sweep, group))}
    return [one for one in subjects if id(one) not in silent]


def _has_result(subject: ReportedRun) -> bool:
    return subject.state == RunState.SUCCEEDED and sweep_of(subject) is not None


def _why_missing(subject: ReportedRun | None) -> str:
    if subject is None:
        return "no run found: not started, or deleted"
    if sweep_of(subject) is None:
        return f"its values cannot be read from its recorded data ({subject.id})"
    why = ": ".join(filter(None, (subject.state, subject.summary.reason)))
    return f"{show(why, 200)} ({subject.id})"


def _claims(subject: ReportedRun) -> dict[str, ResultClaim]:
    """Return the claims of a run by what they are called at every point."""
    return {claim.claim_id: claim for claim in subject.result.claims[:_MOST_CLAIMS]}


def _along(
    key: str,
    claims: Sequence[tuple[Point, ReportedRun, dict[str, ResultClaim]]],
    missing: Sequence[Point],
    axis: str,
    varied: Collection[str],
) -> Along:
    told = [
        _told(point, point_words(point, varied), one, claim)
        for point, one, found in claims
        if (claim := found.get(key))
    ]
    told = sorted(told, key=lambda one: x_of(one.point, axis)) if axis else told
    points = [*(one.point for one in told), *missing]
    known: list[bool | None] = [*(one.holds for one in told), *(None for _ in missing)]
    groups = groups_of([one.point for one in told], axis, varied)
    order = [i for at in groups.values() for i in at]
    holds = []
    for words, at in groups_of(points, axis, varied).items():
        group = sorted(at, key=lambda i: x_of(points[i], axis))
        places = []
        for i in group:
            if i < len(told) and told[i].is_elsewhere:
                continue
            places.append((point_words(points[i], [axis] if axis else varied), known[i]))
        where = holds_where(places, is_ordered=bool(axis)) if places else _claimed_elsewhere(told)
        holds.append(f"{words}: {where}" if words else where)
    panel = panel_of([(one.point, one.claim) for one in told], axis, varied)
    text = told[0].claim.text
    about = "" if any(one.is_elsewhere for one in told) else _about(text, claims[0][1])
    return Along(text, about, tuple(told[i] for i in order), tuple(holds), panel)


def _claimed_elsewhere(told: Sequence[PointClaim]) -> str:
    """Return the sentence for a claim that is about none of the values of a sweep."""
    reasons = [one.claim.why for one in told if one.is_elsewhere]
    return f"n/a: {reasons[0]}"


def _about(text: str, subject: ReportedRun) -> str:
    """Return of which values a sentence of the lesson is, where its numbers are those of settings that are others here."""
    sweep, numbers = (
        sweep_of(subject),
        {float(one.replace(",", "")) for one in _NUMBER.findall(text)} - _BY_CHANCE,
    )
    usual = {param.name: param.default for param in subject.scenario.params}
    others = (
        [name for name, values in sweep.values.items() if values != [usual.get(name)]]
        if sweep
        else []
    )
    meant = {
        name: usual[name] for name in others if name in usual and number_of(usual[name]) in numbers
    }
    return f"as written for {point_words(meant)}" if meant else ""


def _told(point: Point, words: str, subject: ReportedRun, claim: ResultClaim) -> PointClaim:
    return PointClaim(
        point, words, subject.id, claim_row(claim, subject.before.get(claim.claim_id, "")), claim
    )


def _numbers(
    ended: Sequence[tuple[Point, ReportedRun]], varied: Collection[str]
) -> list[tuple[str, ...]]:
    """Return what else was measured, a row a point, beneath the names."""
    rows = []
    for point, one in ended:
        numbers = {number.name: number.words for number in one.result.numbers}
        rows.append((point, one, {**_steps(one), **numbers}))
    names = list(dict.fromkeys(name for *_, found in rows for name in found))
    body = [
        (point_words(point, varied), *(found.get(name, "n/a") for name in names), one.id)
        for point, one, found in rows
    ]
    return [("", *names, "run"), *body]


def _steps(subject: ReportedRun) -> dict[str, str]:
    """Return what was told of the steps of a command: how long one takes, and where that goes."""
    lines = [
        line
        for text in subject.summary.texts
        if text.title == "steps"
        for line in text.text.splitlines()[:2]
    ]
    if not (lines and lines[0].startswith(_TAKES)):
        return {}
    return {"step": lines[0].removeprefix(_TAKES), "where a step goes": "".join(lines[1:])}
