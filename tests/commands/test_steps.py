"""How marks are cut into steps: whatever steps and goes backward, each turn ends and makes progress."""

from hypothesis import given
from hypothesis import strategies as st

from tuilab.commands.inside._tuilab_watch.layout import SKIPPED, STEPPED, WAITED, WENT_BACK, WITHIN
from tuilab.commands.marks import Mark
from tuilab.commands.steps import Steps

MS = 1_000_000
MOST_LEFT = 20  # steps of optimizers that may wait for an end, besides four times as many as a step had

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
            began = len(marks) * MS
            number = 0 if kind == WENT_BACK else name
            marks.append(Mark(began, began + MS // 2, 0.0, 0, number, flags, kind))
    return marks


@given(stretches=STRETCHES, portion=st.sampled_from([1, 7, 1000]))
def test_cutting_any_marks_ends_and_makes_progress(stretches: list[tuple[int, int, int, int]], portion: int) -> None:
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
