"""Describes the times of arms, in words and as rows of a chart, on the judged clock first."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from statistics import median
from typing import NamedTuple

from tuilab.record.blocks import Measure
from tuilab.record.timing.clocks import CLOCK_NAMES, CPU, WALL, ArmTimes
from tuilab.text.display import show
from tuilab.text.words import format_number


class ChartRow(NamedTuple):
    """A row of a chart of times."""

    arm: str
    times: Sequence[float]
    clock: str = ""  # in the label, if the rows of the chart are on both clocks
    aside: str = ""  # the median on the other clock, in words, if the chart has no row for it


def chart_rows(times: Mapping[str, ArmTimes]) -> list[ChartRow]:
    """Return the rows of a chart: one for each arm, or in a mixed run one for each clock."""
    rows = []
    for arm, of_arm in times.items():
        if not is_mixed(times.values()):
            rows.append(ChartRow(arm, of_arm.times, aside=other_words(of_arm)))
            continue
        rows.append(ChartRow(arm, of_arm.times, CLOCK_NAMES[of_arm.clock]))
        if of_arm.others:
            rows.append(ChartRow(arm, of_arm.others, CLOCK_NAMES[of_arm.other_clock]))
    return rows


def is_mixed(times: Iterable[ArmTimes]) -> bool:
    """Say whether the rows of a chart need different clocks.

    Verdicts may rest on both clocks, or an arm may lack the times on the judged clock.
    """
    first_clocks = set()
    for of_arm in times:
        if of_arm.is_judged_on_both:
            return True
        first_clocks.add(of_arm.clock)
    return len(first_clocks) > 1


def clock_title(times: Collection[ArmTimes], measure: Measure) -> str:
    """Return the title of a chart of times: the quantity, and the clock if it has to be named."""
    if measure.unit != "s":
        return show(measure.name, 60)
    if is_mixed(times):
        return f"time of a {measure.of}, by clock"
    if any(of_arm.clock == CPU for of_arm in times):
        return f"CPU time of a {measure.of} (judged)"
    if any(of_arm.is_named for of_arm in times):
        return f"time of a {measure.of} on the wall clock"
    return f"time of a {measure.of}"


def time_words(times: ArmTimes, measure: Measure) -> str:
    """Return the median time of a call in words, on the judged clock first, then on the other."""
    middle = format_number(median(times.times), measure.unit, 3)
    if measure.unit != "s":
        return f"{middle} {show(measure.name, 60)}"
    if not times.is_named:
        return f"{middle} a {measure.of}"
    if times.is_judged_on_both:
        clock = CLOCK_NAMES[times.clock]
        return f"{middle} {clock} a {measure.of}, {other_words(times)} (both judged)"
    if times.clock == WALL and not times.others:
        return f"{middle} a {measure.of} on the wall clock"
    judged = "judged; " if times.judged else ""
    return f"{middle} {CLOCK_NAMES[times.clock]} a {measure.of} ({judged}{other_words(times)})"


def other_words(times: ArmTimes) -> str:
    """Return the median on the other clock, as `wall clock 31.6 ms`; empty if there is none."""
    if not times.others:
        return ""
    return f"{CLOCK_NAMES[times.other_clock]} {format_number(median(times.others), 's', 3)}"
