"""A sweep as reports tell it: each claim along the values that were gone through, and from where on it holds."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from tuilab.catalogue import grid
from tuilab.catalogue.params import spell
from tuilab.drawings.lines import Floats, Line
from tuilab.record.events import Scalar, Sweep
from tuilab.record.parts import Claim
from tuilab.record.states import RunState
from tuilab.record.verdicts import Verdict
from tuilab.reports.charts.panels import Panel
from tuilab.reports.charts.spreads import Interval
from tuilab.reports.pages import claim_row
from tuilab.reports.plain import key_numbers
from tuilab.reports.subject import Subject
from tuilab.text import join, plural, show

_LOG_FROM = 20.0  # times the least value: then a linear axis has all but the last in one corner
_MOST_CURVES, _MOST_CLAIMS = 6, 100

Point = Mapping[str, Scalar]


@dataclass(frozen=True)
class Told:
    """What a claim came to at one point."""

    point: Point
    id: str  # of the run
    verdict: str
    mark: str
    kind: str
    found: str
    interval: Interval | None
    claim: Claim

    @property
    def words(self) -> str:
        return point_words(self.point)

    @property
    def holds(self) -> bool | None:
        """Whether the claim holds there; None where the measurement gives no answer."""
        if self.verdict == Verdict.INVALID:
            return None
        return {"good": True, "bad": False, "fair": False}.get(self.kind)


@dataclass(frozen=True)
class Along:
    """One claim at all points."""

    text: str
    told: tuple[Told, ...]
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

    @property
    def title(self) -> str:
        return f"along {join([show(name, 40) for name, values in self.sweep.values.items() if len(values) > 1]) or 'one value'}"

    @property
    def note(self) -> str:
        """What is to be known of many verdicts together."""
        judged = sum(told.holds is not None for claim in self.claims for told in claim.told)
        return f"{judged} verdicts, each by itself: among many, chance alone makes some wrong." if judged > 10 else ""


def sweeps_of(subjects: Sequence[Subject]) -> list[list[Subject]]:
    """Return the runs that are points of sweeps, sweep by sweep; one alone is a run like any other."""
    found: dict[str, list[Subject]] = {}
    for subject in sorted(subjects, key=lambda subject: subject.run_dir.name):
        if sweep := sweep_of(subject):
            found.setdefault(sweep.id, []).append(subject)
    return [group for group in found.values() if len(group) > 1]


def apart(subjects: Sequence[Subject], sweeps: Sequence[Sequence[Subject]]) -> list[Subject]:
    """Return the runs that are of none of some sweeps."""
    inside = {id(one) for group in sweeps for one in group}
    return [one for one in subjects if id(one) not in inside]


def sweep_of(subject: Subject) -> Sweep | None:
    return subject.summary.run.sweep if subject.summary.run else None


def swept(subjects: Sequence[Subject]) -> Swept:
    """Return what the runs of one sweep tell together; of several at one point the newest that succeeded speaks."""
    sweep = sweep_of(subjects[-1])
    assert sweep is not None
    points = list(grid.points(sweep.values))
    speakers = _speakers(subjects, points)
    axis = axis_of(sweep)
    ended = [(point, one) for point, one in zip(points, speakers, strict=True) if one and one.state == RunState.SUCCEEDED]
    keys = dict.fromkeys(key for _, one in ended for key in one.summary.claims)
    missing = [(point, one) for point, one in zip(points, speakers, strict=True) if not one or one.state != RunState.SUCCEEDED]
    return Swept(
        sweep.id,
        subjects[-1].name,
        sweep,
        tuple(
            f"{show(name, 40)} = {', '.join(show(spell(one), 60) for one in values)}" for name, values in sweep.values.items()
        ),
        f"{len(ended)} of {plural(len(points), 'point')}",
        tuple(_along(key, ended, axis) for key in list(keys)[:_MOST_CLAIMS]),
        tuple(_curves(ended, axis)),
        tuple(_numbers(ended)) if not keys else (),
        tuple(f"{point_words(point)}: {_why_missing(one)}" for point, one in missing),
    )


def point_words(point: Point) -> str:
    return "  ".join(f"{show(name, 40)}={show(spell(value), 60)}" for name, value in point.items())


def axis_of(sweep: Sweep) -> str:
    """Return the setting that claims are told along: the first that goes through several numbers; else nothing."""
    return next((n for n, values in sweep.values.items() if len(values) > 1 and None not in map(number_of, values)), "")


def number_of(value: Scalar) -> float | None:
    """Return the number that a value is; what a command is given is text, and may spell one."""
    if isinstance(value, bool):
        return None
    try:
        number = float(value)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def holds_where(places: Sequence[tuple[str, bool | None]], *, is_ordered: bool) -> str:
    """Return where a claim holds, in one phrase; the places, as `rows=10`, come in their order where they have one."""
    decided = [(words, holds) for words, holds in places if holds is not None]
    open = [words for words, holds in places if holds is None]
    left = f"not decided at {_listed(open)}" if open else ""
    if not decided:
        return f"decided at none of {len(places)} values" if len(places) > 1 else left
    yes, no = ([words for words, holds in decided if holds is wanted] for wanted in (True, False))
    turns = sum(one[1] != other[1] for one, other in pairwise(decided))
    if not (yes and no):
        found = f"{'holds' if yes else 'does not hold'} at {_counted(yes or no, is_all=not open)}"
    elif turns == 1 and is_ordered and no[0] == decided[0][0]:
        found = f"holds from {yes[0]} on, not {'up to' if no[1:] else 'at'} {no[-1]}"
    elif turns == 1 and is_ordered:
        found = f"holds up to {yes[-1]}, not {'from ' + no[0] + ' on' if no[1:] else 'at ' + no[0]}"
    else:
        found = f"holds at {_listed(yes)}, not at {_listed(no)}"
    return "; ".join(filter(None, (found, left)))


def _listed(words: Sequence[str]) -> str:
    return join([*words[:6], *([f"{len(words) - 6} more"] if words[6:] else [])])


def _counted(words: Sequence[str], *, is_all: bool) -> str:
    if len(words) == 1:
        return words[0]
    return f"all {len(words)} values" if is_all else _listed(words)


def _speakers(subjects: Sequence[Subject], points: Sequence[Point]) -> list[Subject | None]:
    """Return, for each point, the run that speaks for it."""
    found: dict[str, Subject] = {}
    for subject in subjects:
        sweep = sweep_of(subject)
        key = repr(sorted(sweep.point.items())) if sweep else ""
        if subject.state == RunState.SUCCEEDED or key not in found or found[key].state != RunState.SUCCEEDED:
            found[key] = subject
    return [found.get(repr(sorted(point.items()))) for point in points]


def _why_missing(subject: Subject | None) -> str:
    if subject is None:
        return "has not been run"
    return show(f"{subject.state} {subject.summary.reason}".strip(), 200) + f" ({subject.id})"


def _along(key: str, ended: Sequence[tuple[Point, Subject]], axis: str) -> Along:
    told = [_told(point, one, claim) for point, one in ended if (claim := one.summary.claims.get(key))]
    groups = _groups([one.point for one in told], axis)
    holds = []
    for words, at in groups.items():
        group = (
            sorted((told[i] for i in at), key=lambda one: number_of(one.point[axis]) or 0.0) if axis else [told[i] for i in at]
        )
        places = [(point_words({axis: one.point[axis]} if axis else one.point), one.holds) for one in group]
        where = holds_where(places, is_ordered=bool(axis))
        holds.append(f"{words}: {where}" if words else where)
    return Along(told[0].claim.text, tuple(told), tuple(holds), _panel(told, groups, axis))


def _told(point: Point, subject: Subject, claim: Claim) -> Told:
    row = claim_row(claim, subject.before.get(claim.claim_id, ""))
    return Told(point, subject.id, row.verdict, row.mark, row.kind, row.estimate or row.why, row.interval, claim)


def _groups(points: Sequence[Point], axis: str) -> dict[str, list[int]]:
    """Return, by the words of all settings but that of the axis, which points have these."""
    found: dict[str, list[int]] = {}
    for at, point in enumerate(points):
        rest = {name: value for name, value in point.items() if name != axis} if axis else {}
        found.setdefault(point_words(rest), []).append(at)
    several = {name for name in (points[0] if points else {}) if len({repr(point[name]) for point in points}) > 1}
    if not several - {axis}:
        return {"": list(range(len(points)))}
    return found


def _panel(told: Sequence[Told], groups: Mapping[str, Sequence[int]], axis: str) -> Panel | None:
    """Return the chart of a claim about a ratio: estimates with their intervals, and what is claimed."""
    declared = told[0].claim.declared
    measured = [one for one in told if (verdict := one.claim.verdict) and verdict.estimate and verdict.low and verdict.high]
    if not axis or declared is None or len(measured) < 2:
        return None
    xs = [number_of(one.point[axis]) or 0.0 for one in measured]
    is_log = is_log_along(xs)
    lines = []
    for look, (words, at) in enumerate(groups.items()):
        group = [one for i in at if (one := told[i]) in measured]
        rows = sorted((number_of(one.point[axis]) or 0.0, *_interval(one.claim)) for one in group)
        lines += [line_of(words or "measured", rows, look, is_log=is_log)] if rows else []
    claimed = [(x, declared.bound, declared.bound, declared.bound) for x in (min(xs), max(xs))]
    lines.append(line_of(f"claimed {declared.op.replace('_', ' ')} {declared.bound:g}", claimed, len(groups), is_log=is_log))
    return Panel(
        f"{show(declared.over, 40)} / {show(declared.under, 40)}",
        tuple(lines),
        is_log=True,
        is_log_x=is_log,
        x_name=show(axis, 40),
    )


def _interval(claim: Claim) -> tuple[float, float, float]:
    reached = claim.verdict
    assert reached and reached.estimate and reached.low and reached.high
    return reached.low, reached.estimate, reached.high


def is_log_along(xs: Sequence[float]) -> bool:
    return min(xs) > 0 and max(xs) / min(xs) >= _LOG_FROM


def line_of(label: str, rows: Sequence[tuple[float, float, float, float]], look: int, *, is_log: bool) -> Line:
    """Return a line through rows of (x, low, mid, high)."""
    xs, lows, mids, highs = (np.array(column, np.float64) for column in zip(*rows, strict=True))
    nothing: Floats = np.zeros(0, np.float64)
    xs = np.log10(xs) if is_log else xs
    breaks = np.zeros(len(xs) - 1, np.bool_)
    return Line(label, xs, lows, highs, nothing, nothing, breaks, look, last=float(mids[-1]), last_x=float(xs[-1]), mids=mids)


def _curves(ended: Sequence[tuple[Point, Subject]], axis: str) -> list[Panel]:
    """Return where the curves of a command ended, along the setting."""
    if not axis or not any(one.summary.run and one.summary.run.command for _, one in ended):
        return []
    names = dict.fromkeys(series.name for _, one in ended for series in one.summary.series.values())
    found = []
    for name in list(names)[:_MOST_CURVES]:
        lasts = [(point, _last(one, name)) for point, one in ended]
        known = [(point, last) for point, last in lasts if last is not None]
        if len(known) < 2:
            continue
        xs = [number_of(point[axis]) or 0.0 for point, _ in known]
        lines = []
        for look, (words, at) in enumerate(_groups([point for point, _ in known], axis).items()):
            rows = sorted((xs[i], *(known[i][1],) * 3) for i in at)
            lines.append(line_of(words, rows, look, is_log=is_log_along(xs)))
        found.append(Panel(f"last {show(name, 60)}", tuple(lines), is_log_x=is_log_along(xs), x_name=show(axis, 40)))
    return found


def _last(subject: Subject, name: str) -> float | None:
    """Return the last number of a curve; None where it has none."""
    last = next((one.last for one in subject.summary.series.values() if one.name == name and one.steps), math.nan)
    return last if math.isfinite(last) else None


def _numbers(ended: Sequence[tuple[Point, Subject]]) -> list[tuple[str, ...]]:
    """Return what else was measured, a row a point, beneath the names."""
    rows = [(point, one, dict(key_numbers(one.summary))) for point, one in ended]
    names = list(dict.fromkeys(name for *_, found in rows for name in found))
    head = ("", *names, "run")
    return [head, *((point_words(point), *(found.get(name, "n/a") for name in names), one.id) for point, one, found in rows)]
