"""Numbers at the ends of what a float can be: every chart is drawn or left out, and JSON stays JSON."""

import itertools
import json
import math
import random
import re
from pathlib import Path
from typing import Literal

import numpy as np
import pytest

from tests.faults.oracle import view
from tests.made_runs import make_run, started
from tuilab.drawings.axis import y_axis
from tuilab.drawings.spreads import MeasuredSpread
from tuilab.drawings.text_chart import line_chart
from tuilab.judging.judge_run import judge
from tuilab.record import events
from tuilab.record.blocks import NoiseFloor
from tuilab.record.events import AxesNamed, Measured
from tuilab.record.live_run import read_run
from tuilab.record.series import Series
from tuilab.reports.charts.spreads import draw_spreads

ENDS = [
    0.0,
    1.0,
    -1.0,
    1e308,
    -1e308,
    1.7976931348623157e308,
    5e-324,
    -5e-324,
    1e-310,
    2.0**63,
    1e300,
    1e16,
    1e16 + 2,
]
ODD = [*ENDS, math.nan, math.inf, -math.inf]
Log = Literal["", "x", "y", "xy"] | None


def test_chart_of_times_leaves_out_an_arm_whose_numbers_are_not_finite() -> None:
    whole = MeasuredSpread("whole", value=2.0, low=1.5, high=2.5, least=1.0, greatest=3.0)

    for position in range(5):
        for number in (math.inf, -math.inf, math.nan):
            numbers = [2.0, 1.5, 2.5, 1.0, 3.0]
            numbers[position] = number
            value, low, high, least, greatest = numbers
            odd = MeasuredSpread("odd", value, low, high, least, greatest)
            chart = draw_spreads([odd, whole], NoiseFloor(0.1))
            assert [row.label for row in chart.rows] == ["whole"]


@pytest.mark.parametrize("log", ["", "x", "y", "xy", None])
def test_printed_chart_takes_any_constant(log: Log) -> None:
    for step, value in itertools.product(ENDS, ENDS):
        series = Series("x")
        series.add(step, 0, value)
        line_chart([series], 60, 12, axes=AxesNamed(metric="x", log=log))


@pytest.mark.parametrize("log", ["", "x", "y", None])
@pytest.mark.parametrize("is_along_x", [True, False])
def test_a_printed_chart_takes_any_two_numbers(is_along_x: bool, log: str | None) -> None:
    for low, high in itertools.combinations(ENDS, 2):
        series = Series("x")
        for at, value in enumerate((low, high)):
            series.add(value if is_along_x else at, at, at if is_along_x else value)
        series.add(series.steps[0], 2, math.nan)

        line_chart([series], 60, 12, axes=AxesNamed(metric="x", log=log))  # type: ignore[arg-type]


@pytest.mark.parametrize("size", [1e-13, 1e-298, 1e-306, 1e-320])
def test_values_that_are_tiny_fill_their_chart_and_have_ticks_of_their_own(size: float) -> None:
    axis = y_axis(size, 9 * size, "", 5)
    series = Series("x")
    for at in range(10):
        series.add(at, at, (1 + at) * size)
    labels = {label for _, label in axis.ticks}

    assert np.ptp(axis.shares(np.array([size, 9 * size]))) > 0.7
    assert len(labels) == len(axis.ticks) > 3
    if size > 1e-307:  # below it the printed chart is left out
        assert len(set(re.findall(r"[0-9.]+e-[0-9]+(?=┤)", line_chart([series], 60, 12)))) > 2


def test_powers_of_ten_that_no_float_can_hold_have_labels_of_their_own() -> None:
    assert [label for _, label in y_axis(1e-308, 9e-308, "", 5, is_log=True).ticks] == [
        "1e-308",
        "2e-308",
        "5e-308",
        "1e-307",
    ]
    assert [label for _, label in y_axis(1e307, 1.7e308, "", 5, is_log=True).ticks][-2:] == [
        "1e308",
        "2e308",
    ]


def extreme_run(root: Path, seed: int) -> Path:
    chance = random.Random(seed)
    records = [
        *(
            events.Logged(
                s=chance.choice([0, 7, 2**63 - 1, -(2**63)]), v={"loss": chance.choice(ODD)}
            )
            for _ in range(5)
        ),
        *(
            events.ClaimMeasured(
                text=f"claim {at}",
                got=Measured(numbers=[value]),
                op="equals",
                want=Measured(numbers=[bound]),
            )
            for at, (value, bound) in enumerate(
                zip(chance.sample(ODD, 8), chance.sample(ODD, 8), strict=True)
            )
        ),
        events.ClaimDeclared(
            text="fast", over="one", under="two", op="at_least", bound=chance.choice(ODD)
        ),
        events.RaceStarted(
            arms=["one", "two"], threads=1, device="cpu", loops={"one": 1, "two": 2**63 - 1}
        ),
        *(
            events.BlockTimed(
                arm=arm,
                round=number,
                slot=0,
                loops=1,
                wall_ns=chance.choice([1, 2**63 - 1]),
                cpu_ns=0,
            )
            for number in range(4)
            for arm in ("one", "two")
        ),
        events.MemoryMeasured(name="m", values={"peak_bytes": chance.choice(ODD)}),
        events.BarsShown(
            title="b", names=["x", "y"], values=[chance.choice(ODD), chance.choice(ODD)]
        ),
    ]
    repeats, looks = chance.choice([(0, []), (2**63 - 1, []), (1, [0]), (1, [2**63 - 1]), (6, [6])])
    first = started(
        repeats=repeats,
        looks=looks,
        prediction=chance.choice(ODD),
        params={"a": 1e308},
        changed=["a"],
    )
    return make_run(
        root, first, *records, events.StateChanged(state="succeeded"), end=f"{seed:06x}"
    )


@pytest.mark.parametrize("seed", range(0, 16, 2))
def test_what_programs_read_is_json_whatever_the_numbers(root: Path, seed: int) -> None:
    one, two = (extreme_run(root, seed + at) for at in (0, 1))
    where = ("--root", str(root))

    judge(read_run(one))
    view("attach", one.name, "--plot", *where)
    for words in (
        ("attach", one.name, "--json", "--quiet"),
        ("compare", one.name, two.name, "--json"),
        ("runs", "--json"),
    ):
        json.loads(view(*words, *where)[1], parse_constant=pytest.fail)
    for kind in ("json", "trace.json"):
        view("report", one.name, "-o", f"told.{kind}", *where)
        if Path(f"told.{kind}").exists():  # a trace needs times
            json.loads(Path(f"told.{kind}").read_text(), parse_constant=pytest.fail)
