"""How marks are cut into steps: whatever steps and goes backward, each turn ends and makes progress."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.commands.made_marks import MS, cut, make_mark
from tuilab.commands.marks import Mark, MarkedProcess
from tuilab.commands.step_parts import DATA, PARTS, lacking, shares_of
from tuilab.commands.step_sentences import story_of
from tuilab.commands.steps import Steps
from tuilab.commands.watcher._tuilab_watch.layout import (
    BEGINS,
    ELSEWHERE,
    ENDS,
    HAS_VALUE,
    SKIPPED,
    STEPPED,
    WAITED,
    WENT_BACK,
    WITHIN,
    WITHOUT_GRADIENTS,
)

# This many steps of optimizers may wait for an end, and four times as many as a step had.
MOST_LEFT = 20

# A stretch of a training: a kind of mark, the number of its optimizer, its flags, and how often it comes.
STRETCHES = st.lists(
    st.tuples(
        st.sampled_from([STEPPED, SKIPPED, WENT_BACK]),
        st.integers(1, 3),
        st.sampled_from([0, WITHIN]),
        st.integers(1, 90),
    ),
    max_size=8,
)


def marks_of(stretches: list[tuple[int, int, int, int]]) -> list[Mark]:
    """Return the marks of such stretches, one after the other."""
    marks: list[Mark] = []
    for kind, name, flags, count in stretches:
        for _ in range(count):
            began_ms = len(marks)
            optimizer = 0 if kind == WENT_BACK else name
            mark = make_mark(kind, began_ms, began_ms + 0.5, name=optimizer, flags=flags)
            marks.append(mark)
    return marks


@given(stretches=STRETCHES, portion=st.sampled_from([1, 7, 1000]))
def test_cutting_any_marks_ends_and_makes_progress(
    stretches: list[tuple[int, int, int, int]], portion: int
) -> None:
    marks = marks_of(stretches)
    steps = Steps()

    found = []
    for at in range(0, len(marks), portion):
        found += steps.take(marks[at : at + portion])
    found += steps.finish()

    optimized = sum(mark.kind != WENT_BACK for mark in marks)
    largest = max((step.optimized for step in found), default=0)
    left = optimized - sum(step.optimized for step in found)
    assert 0 <= left <= 4 * largest + MOST_LEFT
    assert [step.ended for step in found] == sorted({step.ended for step in found})


def test_steps_after_hooks_of_the_backward_are_seen() -> None:
    hooked = [(STEPPED, 1, WITHIN, 1), (WENT_BACK, 0, 0, 1)] * 60

    steps = Steps()
    found = steps.take(marks_of([*hooked, (STEPPED, 1, 0, 400)])) + steps.finish()

    assert [step.optimized for step in found] == [1] * 460
    assert steps.ends_with == 1


def test_an_evaluation_that_never_steps_has_no_steps() -> None:
    batches = marks_of([(STEPPED, 1, 0, 25_000)])
    waits = [mark._replace(kind=WAITED) for mark in batches]

    steps = Steps()

    assert steps.take(waits) + steps.finish() == []
    assert steps.waits == len(waits)


# ---- waits for data that are none of the training, and threads side by side


def trained_step(at_ms: int) -> list[Mark]:
    """Return a step of 100 ms that waits for no data: 30 ms of backward, 10 ms of the optimizer."""
    return [
        make_mark(WENT_BACK, at_ms + 50, at_ms + 80),
        make_mark(STEPPED, at_ms + 90, at_ms + 100, name=1),
    ]


def loop(at_ms: int, number: int, flags: int = 0) -> list[Mark]:
    """Return the waits of a loop over a DataLoader with two batches: 40 ms in all."""
    begins = make_mark(WAITED, at_ms, at_ms + 10, name=number, flags=flags | BEGINS)
    first = make_mark(WAITED, at_ms + 10, at_ms + 20, name=number, flags=flags)
    second = make_mark(WAITED, at_ms + 20, at_ms + 30, name=number, flags=flags)
    ends = make_mark(WAITED, at_ms + 30, at_ms + 40, name=number, flags=flags | ENDS)
    return [begins, first, second, ends]


def test_waits_of_an_evaluation_are_no_waits_of_the_training() -> None:
    marks: list[Mark] = []
    for at in range(20):
        if at % 5 == 4:
            marks += loop(100 * at, at)
        marks += trained_step(100 * at)
    marks += loop(2000, 20)  # after the last step

    steps, found = cut(marks)

    assert lacking(steps)[DATA] == "the DataLoader was read only between steps, as in an evaluation"
    assert sum(step.waited_ns for step in found) == 0


def test_batches_that_are_fetched_without_gradients_are_those_of_an_evaluation() -> None:
    """Such a loop may end early, and not in the step in which it began."""
    marks: list[Mark] = []
    for at in range(20):
        marks += loop(100 * at, at, WITHOUT_GRADIENTS)[:3]
        marks += trained_step(100 * at)

    steps, found = cut(marks)

    assert DATA in lacking(steps) and sum(step.waited_ns for step in found) == 0


def test_batches_that_a_backward_uses_are_those_of_the_training() -> None:
    """Also where one loop has the batches of one step, fetched ahead, or gone through one by one."""
    marks: list[Mark] = []
    for at in range(20):
        begins, first, second, ends = loop(100 * at, at + 1)
        marks += [
            begins,
            first,
            make_mark(WENT_BACK, 100 * at + 19, 100 * at + 20),
            second,
            ends,
            *trained_step(100 * at),
        ]

    steps, found = cut(marks)

    assert DATA not in lacking(steps)
    assert [step.waited_ns for step in found[1:]] == [40 * MS] * 19


def test_thread_that_fetches_ahead_keeps_no_step_waiting() -> None:
    marks: list[Mark] = [make_mark(WAITED, 0, 20)]
    for at in range(20):
        marks += [
            make_mark(WAITED, 100 * at + 30, 100 * at + 95, flags=ELSEWHERE),
            *trained_step(100 * at),
        ]

    steps, found = cut(marks)

    assert lacking(steps)[DATA] == "a thread that makes no steps reads the DataLoader"
    assert not steps.is_parallel and sum(step.waited_ns for step in found[1:]) == 0


def test_wait_within_a_wait_counts_once() -> None:
    """A dataset may read another DataLoader itself."""
    marks: list[Mark] = []
    for at in range(20):
        marks += [
            make_mark(WAITED, 100 * at + 5, 100 * at + 35),
            make_mark(WAITED, 100 * at, 100 * at + 40),
            *trained_step(100 * at),
        ]

    _, found = cut(marks)

    assert [step.waited_ns for step in found[1:]] == [40 * MS] * 19


def test_parts_of_steps_of_several_threads_have_no_numbers() -> None:
    marks: list[Mark] = []
    for at in range(20):
        own = [
            make_mark(WENT_BACK, 100 * at + 10, 100 * at + 70),
            make_mark(WENT_BACK, 100 * at + 20, 100 * at + 85),
        ]
        marks += [*own, *trained_step(100 * at)[1:]]

    steps, found = cut(marks)
    story = [*story_of(MarkedProcess(1), steps, found)]

    assert lacking(steps) == dict.fromkeys(PARTS, "several threads work on a step at once")
    assert shares_of(found, lacking(steps)) == {}
    assert "parts of a step: n/a, several threads work on a step at once" in story


@pytest.mark.parametrize(
    ("closures", "is_mixed"),
    [(3, True), (1, False)],
)
def test_optimizer_that_goes_backward_often_gets_no_advice_on_the_rest(
    closures: int, is_mixed: bool
) -> None:
    """As with LBFGS, whose own work is between the calls of its closure."""
    marks: list[Mark] = []
    for at in range(30):
        for number in range(closures):
            began = 100 * at + 20 * number + 22
            marks.append(make_mark(WENT_BACK, began, began + 5))
        ended = 100 * at + 20 * closures + 10
        marks.append(make_mark(STEPPED, 100 * at + 1, ended, name=1))

    story = [*story_of(MarkedProcess(1), *cut(marks))]

    mixed = (
        "forward + rest can include the optimizer's own work: its step calls backward several "
        "times, and only the time after the last backward counts as optimizer"
    )
    assert (mixed in story) == is_mixed
    assert any("check the rest of the loop" in line for line in story) != is_mixed


def test_mean_number_of_backwards_names_the_steps_that_are_timed() -> None:
    """As with LBFGS: the first step, of which the begin is not known, went backward twenty times."""
    marks: list[Mark] = []
    for at, count in enumerate([20, 8, 8, 7]):
        for number in range(count):
            marks.append(make_mark(WENT_BACK, 100 * at + number, 100 * at + number + 1))
        marks.append(make_mark(STEPPED, 100 * at + 90, 100 * at + 100, name=1))

    steps, found = cut(marks)
    story = [*story_of(MarkedProcess(1), steps, found)]

    assert story[0] == "a step takes 100 ms, mean of 3 of 4 steps"
    assert story[-1] == "1 optimizer step and 7.7 backwards a step, mean of 3 steps"


def test_root_that_sums_several_backwards_is_named_with_their_number() -> None:
    """The first optimizer steps after two backwards, the second one after one."""
    marks: list[Mark] = []
    for at in range(0, 600, 100):
        for began in (at, at + 10):
            marks.append(make_mark(WENT_BACK, began, began + 5, value=4.5, flags=HAS_VALUE))
        marks.append(make_mark(STEPPED, at + 20, at + 30, name=1))
        marks.append(make_mark(WENT_BACK, at + 40, at + 50, value=0.5, flags=HAS_VALUE))
        marks.append(make_mark(STEPPED, at + 60, at + 70, name=2))
    process = MarkedProcess(1, names={1: "SGD\noptimizer 1", 2: "SGD\noptimizer 2"})

    steps, found = cut(marks)
    story = [*story_of(process, steps, found)]

    assert found[-1].roots == {1: 9.0, 2: 0.5}
    assert story[-1] == "backward root of SGD 1 is the sum of 2 backwards"


def test_root_of_a_changing_number_of_backwards_has_their_mean() -> None:
    marks: list[Mark] = []
    for at, count in enumerate([1, 1, 2, 3]):
        for number in range(count):
            began = 100 * at + 10 * number
            marks.append(make_mark(WENT_BACK, began, began + 5, value=1.0, flags=HAS_VALUE))
        marks.append(make_mark(STEPPED, 100 * at + 90, 100 * at + 100, name=1))

    story = [*story_of(MarkedProcess(1), *cut(marks))]

    assert story[-1] == "backward root is the sum of 2 backwards, on average"


@pytest.mark.parametrize(
    ("kept", "number"), [(8, "7 of 8 steps"), (7, "the last 7 steps"), (3, "the last 3 steps")]
)
def test_mean_length_names_the_steps_that_it_leaves_out(kept: int, number: str) -> None:
    steps, found = cut(
        [make_mark(STEPPED, 100 * at + 90, 100 * at + 100, name=1) for at in range(8)]
    )

    story = [*story_of(MarkedProcess(1), steps, found[-kept:])]

    assert story[0] == f"a step takes 100 ms, mean of {number}"
