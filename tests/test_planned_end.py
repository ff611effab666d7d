"""The axis of a run that goes on ends where its last step is expected, and stays so."""

from collections.abc import Iterator, Sequence
from itertools import groupby

import pytest

from tests.made_runs import started
from tuilab.record.events import Logged, Progressed, RunStarted
from tuilab.record.finding_words import PROCESSES, RACING
from tuilab.record.folding.fold import fold
from tuilab.record.planned_end import planned_end
from tuilab.record.summary import RunSummary

Told = tuple[
    str, int, int, str
]  # the writer, what is done or the step, the total, and the unit; a step has no unit


def step(place: int, writer: str = "worker-0") -> Told:
    return writer, place, 0, ""


def done(count: int, total: int, unit: str = "steps") -> Told:
    return "worker-0", count, total, unit


def ends(
    story: Sequence[Told], run: RunStarted | None = None, apart_ns: int = 1
) -> list[float | None]:
    """Return where the axis of a chart ends that is drawn after each record, each time that it changes."""
    summary, end = RunSummary(run=run), None
    found: list[float | None] = []
    for t, (writer, count, total, unit) in enumerate(story, 1):
        record: Progressed | Logged = (
            Progressed(done=count, total=total, unit=unit)
            if unit
            else Logged(s=count, v={"loss": 1.0})
        )
        record.t = t * apart_ns
        fold([(writer, record)], summary)
        end = planned_end(summary, list(summary.series.values()), end)
        found.append(end)
    return [end for end, _ in groupby(found)]


def steps(
    first: int, last: int, apart: int = 1, *, told_every: int, total: int = 1000
) -> Iterator[Told]:
    """Yield the records of a loop that tells its progress now and then, and logs now and then."""
    for place in range(first, last):
        if place % told_every == 0:
            yield done(place, total)
        if place % apart == 0:
            yield step(place)


@pytest.mark.parametrize(
    ("apart", "told_every"), [(1, 1), (1, 7), (1, 60), (10, 1), (10, 7), (100, 3), (50, 400)]
)
def test_an_end_that_is_planned_stays_however_seldom_progress_or_points_come(
    apart: int, told_every: int
) -> None:
    assert ends([*steps(0, 1000, apart, told_every=told_every), done(1000, 1000)]) == [None, 1000.0]


def test_progress_that_is_told_before_its_step_counts_it_all_the_same() -> None:
    assert ends(
        [record for place in range(100) for record in (done(place + 1, 100), step(place))]
    ) == [None, 100.0]


def test_values_that_come_late_from_a_gpu_do_not_move_the_end() -> None:
    """Each is logged at a moment, and written forty steps later."""
    summary, end, found = RunSummary(), None, set()
    for place in range(1, 900):
        fold([("worker-0", Progressed(done=place, total=1000, t=10 * place))], summary)
        if place > 40:
            late = Logged(s=place - 40, v={"loss": 1.0}, at=10 * (place - 40) + 1, t=10 * place + 1)
            fold([("worker-0", late)], summary)
            end = planned_end(summary, list(summary.series.values()), end)
            found.add(end)

    assert found == {1000.0}


def test_epochs_that_are_told_between_the_steps_change_nothing() -> None:
    story = [
        record
        for epoch in range(5)
        for record in (
            *steps(epoch * 200, epoch * 200 + 200, told_every=9),
            done(epoch + 1, 5, "epochs"),
        )
    ]

    assert ends(story) == [None, 1000.0]


def test_epochs_alone_are_no_end_of_steps() -> None:
    story = [
        record
        for place in range(400)
        for record in (step(place), *([done(place // 100, 4, "epochs")] * (place % 10 == 0)))
    ]

    assert ends(story)[2:] == [
        None
    ]  # a step that is both looks alike, until there are more steps than epochs


def test_the_points_of_a_sweep_are_no_steps_of_what_each_point_takes() -> None:
    story = [
        record
        for size in (1, 2, 3, 4)
        for record in (*(done(count, 500) for count in range(0, 501, 50)), step(size))
    ]

    assert ends(story)[-1] is None


def test_the_end_of_a_stage_that_was_broken_off_stays_while_others_count_something_else() -> None:
    first = [*steps(0, 600, told_every=7)]

    assert ends([*first, *(done(count, 300, "batches") for count in range(300))]) == [None, 1000.0]


def test_arms_one_after_another_have_one_end() -> None:
    one = [*steps(0, 1000, told_every=7)]
    other = [("worker-1", count, total, unit) for _, count, total, unit in one]

    assert ends([*one, *other]) == [None, 1000.0]


def test_a_step_beyond_the_total_and_what_a_race_counts_are_no_end() -> None:
    assert ends([done(0, 10), *map(step, range(20))])[-1] is None
    assert ends([done(0, 10, RACING), step(0), step(1)]) == [None]
    assert ends([done(0, 6, PROCESSES), *map(step, range(4))]) == [None]


@pytest.mark.parametrize("late", [0, 7, 30, 45])
def test_what_a_command_printed_some_steps_ago_moves_no_end(late: int) -> None:
    """It prints each tenth step, which is told when others have ended since, and very late on a busy box."""
    story = [
        record
        for place in range(900)
        for record in (
            step(place),
            *([done(max(place - late * (place > 60), 0), 900)] * (place % 10 == 0)),
        )
    ]

    assert ends(story, started(command=["python", "train.py"]), apart_ns=25_000_000) == [
        None,
        900.0,
    ]
