"""The times of arms in words and as rows of a chart: the judged clock first, and the other one with its name."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from statistics import geometric_mean, median
from typing import NamedTuple

from tuilab.record.blocks import Measure
from tuilab.record.summary import RunSummary
from tuilab.record.summary_parts import Claim
from tuilab.record.timing.clocks import CLOCK_NAMES, CPU, WALL, ArmTimes, arm_times, clock_of
from tuilab.text.display import show
from tuilab.text.words import format_number


class ChartRow(NamedTuple):
    """A row of a chart of times."""

    arm: str
    times: Sequence[float]
    clock: str = ""  # named in the label, where the rows of a chart are on both clocks
    aside: str = ""  # the median on the other clock, in words, where the chart has no row for it


def chart_rows(times: Mapping[str, ArmTimes]) -> list[ChartRow]:
    """Return the rows of a chart: the judged clock of each arm, and in a mixed run a row for each clock."""
    rows = []
    for arm, one in times.items():
        if not is_mixed(times.values()):
            rows.append(ChartRow(arm, one.times, aside=other_words(one)))
            continue
        rows.append(ChartRow(arm, one.times, CLOCK_NAMES[one.clock]))
        if one.others:
            rows.append(ChartRow(arm, one.others, CLOCK_NAMES[one.other_clock]))
    return rows


def is_mixed(times: Iterable[ArmTimes]) -> bool:
    """Say whether verdicts rest on both clocks, or not every arm has the judged clock: times then cannot share a row."""
    first_clocks = set()
    for one in times:
        if one.is_judged_on_both:
            return True
        first_clocks.add(one.clock)
    return len(first_clocks) > 1


def clock_title(times: Collection[ArmTimes], measure: Measure) -> str:
    """Return the title of a chart of times: what they are of, on which clock, and whether it was the judged one."""
    if measure.unit != "s":
        return show(measure.name, 60)
    if is_mixed(times):
        return f"time of a {measure.of}, by clock"
    if any(one.clock == CPU for one in times):
        return f"CPU time of a {measure.of} (judged)"
    named = " on the wall clock" if any(one.is_named for one in times) else ""
    return f"time of a {measure.of}{named}"


def time_words(one: ArmTimes, measure: Measure) -> str:
    """Return the median time of a call in words: on the judged clock first, then on the other one with its name."""
    middle = format_number(median(one.times), measure.unit, 3)
    if measure.unit != "s":
        return f"{middle} {show(measure.name, 60)}"
    if not one.is_named:
        return f"{middle} a {measure.of}"
    if one.is_judged_on_both:
        return f"{middle} {CLOCK_NAMES[one.clock]} a {measure.of}, {other_words(one)} (both judged)"
    if one.clock == WALL and not one.others:
        return f"{middle} a {measure.of} on the wall clock"
    judged = "judged; " if one.judged else ""
    return f"{middle} {CLOCK_NAMES[one.clock]} a {measure.of} ({judged}{other_words(one)})"


def other_words(one: ArmTimes) -> str:
    """Return the median on the other clock with its name, as `wall clock 31.6 ms`; nothing if there is none."""
    if not one.others:
        return ""
    return f"{CLOCK_NAMES[one.other_clock]} {format_number(median(one.others), 's', 3)}"


def wall_ratio(claim: Claim, summary: RunSummary) -> float | None:
    """Return the ratio of a claim that was judged on CPU time on the wall clock; both are ratios of geometric means."""
    if claim.declared is None or clock_of(claim) != CPU:
        return None
    times = arm_times(summary)
    over, under = times.get(claim.declared.over), times.get(claim.declared.under)
    if over is None or under is None or not over.on(WALL) or not under.on(WALL):
        return None
    over_wall, under_wall = over.on(WALL), under.on(WALL)
    if min(*over_wall, *under_wall) <= 0:
        return None
    return geometric_mean(over_wall) / geometric_mean(under_wall)
