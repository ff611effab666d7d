"""Make marks of a training, and cut them into steps. All times are in milliseconds."""

from collections.abc import Sequence

from tuilab.commands.marks import Mark
from tuilab.commands.steps import Step, Steps

MS = 1_000_000  # nanoseconds
Part = tuple[int, float, float]  # a kind of mark; its begin and its end within the step


def make_mark(
    kind: int,
    began_ms: float,
    ended_ms: float,
    *,
    value: float = 0.0,
    number: int = 0,
    name: int = 0,
    flags: int = 0,
) -> Mark:
    """Return a mark. `layout.py` describes what value, number and name mean for each kind."""
    began_ns = round(began_ms * MS)
    ended_ns = round(ended_ms * MS)
    return Mark(began_ns, ended_ns, value, number, name, flags, kind)


def make_gpu_mark(
    kind: int, began_ms: float, ended_ms: float, *, gpu_ms: int, since_ms: int
) -> Mark:
    """Return a mark of work on a GPU.

    The work took `gpu_ms` there. It ended `since_ms` after the work of the previous mark.
    """
    mark = make_mark(kind, began_ms, ended_ms, name=1)
    return mark._replace(gpu_ns=gpu_ms * MS, gpu_since_ns=since_ms * MS)


def repeat_step(parts: Sequence[Part], *, steps: int = 3, step_ms: float = 10) -> list[Mark]:
    """Return the marks of several steps that all consist of these parts."""
    marks = []
    for number in range(steps):
        start_ms = number * step_ms
        for kind, began_ms, ended_ms in parts:
            marks.append(make_mark(kind, start_ms + began_ms, start_ms + ended_ms, name=1))
    return marks


def cut(marks: list[Mark]) -> tuple[Steps, list[Step]]:
    """Cut marks into steps. Return what did it, and the steps."""
    steps = Steps()
    return steps, steps.take(marks) + steps.finish()
