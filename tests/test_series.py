"""Series and the curves of a run: many points at once come to what they come to one by one."""

import math
from itertools import pairwise
from unittest.mock import patch

from hypothesis import given
from hypothesis import strategies as st

from tuilab.record.events import Logged
from tuilab.record.series import LIMIT, Series, SeriesByKey, add_logged

NUMBERS = st.floats(allow_nan=True, allow_infinity=True) | st.sampled_from(
    [0.0, -0.0, 1e308, -1e308]
)
RECORDS = st.lists(
    st.builds(
        Logged,
        s=st.integers(0, 50),
        t=st.integers(1, 10**12),
        a=st.sampled_from(["", "fp32", "amp"]),
        x=st.none() | st.floats(allow_nan=False, allow_infinity=False),
        v=st.dictionaries(st.sampled_from(["loss", "lr", "norm"]), NUMBERS, max_size=3),
    ),
    max_size=60,
)


def one_by_one(records: list[Logged]) -> SeriesByKey:
    """Fold as plainly as it can be done."""
    found: SeriesByKey = {}
    for record in records:
        for name, value in record.v.items():
            found.setdefault((name, record.a, "w"), Series(name, record.a, "w")).add(
                record.place, record.t, value
            )
    return found


@given(
    records=RECORDS, cuts=st.lists(st.integers(0, 60), max_size=4), few=st.sampled_from([1, 8, 64])
)
def test_many_records_come_to_what_each_comes_to(
    records: list[Logged], cuts: list[int], few: int
) -> None:
    """However they are cut into portions, whatever names and arms they have; the first one logged stays first."""
    found: SeriesByKey = {}
    borders = [0, *sorted(cuts), len(records)]
    with patch("tuilab.record.series._FEW", few):
        for start, end in pairwise(borders):
            if part := records[start:end]:
                add_logged(found, "w", part)

    assert repr(list(found.items())) == repr(
        list(one_by_one(records).items())
    )  # as text, because NaN is not equal to itself


def test_one_that_is_made_of_points_has_their_ends() -> None:
    made = Series("x", steps=[0, 1], times=[0, 0], lows=[2.0, 1.0], highs=[2.0, 5.0], count=2)

    assert (made.low, made.high) == (1.0, 5.0)
    made.add(2, 0, 9.0)
    assert (made.low, made.high) == (1.0, 9.0)


def test_a_stretch_without_points_is_one_gap_however_often_it_was_looked_at() -> None:
    made = Series("x")
    made.leave_gap(1)
    made.add(0, 2, 1.0)
    for t in (3, 4, 5):
        made.leave_gap(t)
    made.add(1, 6, 1.0)
    made.leave_gap(7)

    assert made.gaps == [3, 7]


def test_many_points_are_merged_like_single_ones() -> None:
    """Past the limit neighbours are merged, in the middle of what came at once too."""
    points = [Logged(s=step, t=step + 1, v={"x": math.sin(step)}) for step in range(5 * LIMIT + 17)]
    values = [point.v["x"] for point in points]
    single, many = Series("x"), Series("x")
    for point, value in zip(points, values, strict=True):
        single.add(point.s, point.t, value)

    for start in range(0, len(points), 3000):
        many.add_many(points[start : start + 3000], values[start : start + 3000])

    assert many == single
    assert (many.low, many.high) == (min(values), max(values))
    assert many.count == 5 * LIMIT + 17 and len(many.lows) <= LIMIT
