"""From the marks of one process to its training steps: a step is the period of the pattern in which its optimizers step.

The optimizer that steps least often ends a step, of several that step as often the last in turn. Where no optimizer's step is
seen, as in a step that is compiled whole, a backward ends one; and where all of them step while it goes on.

What was measured on a GPU goes before what the host saw, which tells of launches there.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import takewhile

from tuilab.commands.cpu.core_time import CoreTime, CoreTimeReading, CoreTimeReadings
from tuilab.commands.deferred_marks import DeferredMarks
from tuilab.commands.marks import Mark
from tuilab.commands.watcher._tuilab_watch.layout import (
    BEGINS,
    ELSEWHERE,
    ENDS,
    FROM_WORKERS,
    HAS_VALUE,
    LOGGER_CALL,
    SKIPPED,
    STEP_BEGAN,
    STEPPED,
    USED,
    WAITED,
    WENT_BACK,
    WENT_FORWARD,
    WITHIN,
    WITHOUT_GRADIENTS,
)

BACKWARDS = 0  # what ends a step where it is no optimizer
_LEAST = 3  # steps of each optimizer, before one tells which steps least often
_MOST_HELD = 20_000  # marks
_PATIENCE_S = 10.0
_LONG, _PATIENCE = (
    4,
    20,
)  # so many times as many steps of optimizers as before, and so many more, until others end a step
_OPTIMIZED = (STEPPED, SKIPPED)
_OF_A_STEP = (*_OPTIMIZED, WENT_FORWARD, WENT_BACK, WAITED, LOGGER_CALL)
_PARALLEL_SHARE = 0.05  # of the steps: one thread may now and then do something beside
_LONGEST_NS = 2**62


@dataclass
class Step:
    """One step: when it began (None: the first, of which that is not known) and ended, and where its time went."""

    began: int | None
    ended: int
    waited_ns: int = 0
    forward_ns: int = 0  # where a library tells it
    backward_ns: int = 0
    optimizer_ns: int = 0
    logging_ns: int = 0  # in loggers that are known
    backwards: int = 0
    optimized: int = 0  # steps of optimizers
    skipped: int = 0  # of which GradScaler left out
    watched_ns: int = 0  # that watching took, of the host
    gpu_ns: int | None = (
        None  # since the step before ended, on a GPU, if all of it was measured there
    )
    roots: dict[int, float] = field(
        default_factory=dict
    )  # by the optimizer that stepped next: the sum
    core_time: CoreTime | None = (
        None  # of this step, and of those before that have none of their own
    )

    @property
    def is_on_gpu(self) -> bool:
        return self.gpu_ns is not None

    @property
    def took_ns(self) -> int | None:
        """Return how long it took; None if that is not known, as where the times of marks go back."""
        if self.began is None or self.ended < self.began:
            return None
        return self.ended - self.began if self.gpu_ns is None else self.gpu_ns

    @property
    def rest_ns(self) -> int | None:
        """All else: also the forward, where nobody tells it."""
        if self.took_ns is None:
            return None
        return max(self.took_ns - self.known_ns, 0)

    @property
    def known_ns(self) -> int:
        """Return the time of the parts that were measured."""
        return (
            self.waited_ns
            + self.forward_ns
            + self.backward_ns
            + self.optimizer_ns
            + self.logging_ns
        )


class Steps:
    """Finds the steps in the marks of one process as they come."""

    def __init__(self) -> None:
        self.counts: Counter[int] = (
            Counter()
        )  # of each optimizer's steps, those that were left out too
        self.backwards = 0
        self.waits = 0  # for data of the training
        self.waits_of_evaluations = 0
        self.waits_elsewhere = 0  # of threads that make no steps
        self._cut_steps = 0
        self._parallel_steps = 0  # on which several threads worked at once
        self.forwards = 0
        self.loggings = 0
        self.has_workers = False  # a DataLoader has its batches made by other processes
        self.ends_with: int | None = (
            None  # the optimizer whose step ends a step; None: not known yet
        )
        self._is_chosen = False  # by the user
        self._most = 0  # steps of optimizers that a step had
        self._landing = DeferredMarks()
        self._begun: set[int] = set()  # optimizers whose first step has begun
        self._read: dict[int, CoreTimeReading] = {}  # by the optimizer whose step follows
        self._readings = CoreTimeReadings()
        self._within: set[int] = set()  # optimizers that step while something goes backward
        self._held: list[Mark] = []
        self._step: list[Mark] = []  # the marks of the step that goes on
        self._ended: int | None = None  # when the last one did

    def choose(self, optimizer: int) -> None:
        """Have the steps of this optimizer end a step."""
        self.ends_with, self._is_chosen = optimizer, True

    def take(self, marks: list[Mark]) -> list[Step]:
        """Return the steps that have ended since."""
        return self._take(self._landing.take(marks))

    @property
    def is_parallel(self) -> bool:
        """Say whether several threads work on the steps at once, so that the parts of a step overlap."""
        return self._parallel_steps > _PARALLEL_SHARE * self._cut_steps

    def training_waits(self) -> int:
        """Return how many waits for data lie in steps: what follows the last step may be an evaluation."""
        return self.waits - sum(mark.kind == WAITED for mark in self._step)

    def is_in_first_step(self) -> bool:
        """Say whether an optimizer has begun its first step, and none has ended a step."""
        return bool(self._begun) and not self.counts

    def finish(self) -> list[Step]:
        """Return the steps that were not told from each other before the process ended."""
        steps = self._take(self._landing.finish())
        if self.ends_with is None:
            self.ends_with = self._find_end()
        return steps + self._cut()

    def _take(self, marks: list[Mark]) -> list[Step]:
        for mark in marks:
            if mark.kind in _OPTIMIZED:
                self.counts[mark.name] += 1
                if mark.flags & WITHIN:
                    self._within.add(mark.name)
            self.backwards += mark.kind == WENT_BACK
            self.forwards += mark.kind == WENT_FORWARD
            self.loggings += mark.kind == LOGGER_CALL
            if mark.kind == STEP_BEGAN:
                self._begun.add(mark.name)
            if mark.kind == WAITED:
                self._take_wait(mark)
            else:
                self._hold(mark)
        if self.ends_with is None and self._can_tell():
            self.ends_with = self._find_end()
        if self.ends_with is None:
            del self._held[
                :-_MOST_HELD
            ]  # the process may wait for data, as in an evaluation, and never step
            return []
        return self._cut()

    def _take_wait(self, mark: Mark) -> None:
        """Count a wait for data, and keep it if the training may have waited for it."""
        if mark.flags & FROM_WORKERS:
            self.has_workers = True
        if mark.flags & ELSEWHERE:
            self.waits_elsewhere += 1
        elif mark.flags & WITHOUT_GRADIENTS:
            self.waits_of_evaluations += 1
        else:
            self.waits += 1
            self._hold(mark)

    def _counts_of_all(self) -> Counter[int]:
        """Return the number of steps of each optimizer: 0 while its first step runs."""
        counts: Counter[int] = Counter(dict.fromkeys(self._begun, 0))
        counts.update(self.counts)
        return counts

    def _hold(self, mark: Mark) -> None:
        """Keep a mark that is part of a step; a reading belongs to the step of the optimizer that follows."""
        if mark.kind == USED:
            delay_ns = mark.value if 0 <= mark.value < _LONGEST_NS else None
            self._read[mark.name] = CoreTimeReading(mark.began, mark.ended, mark.number, delay_ns)
        elif mark.kind in _OPTIMIZED:
            reading = self._read.pop(mark.name, None)
            self._held.append(mark._replace(reading=reading) if reading else mark)
        elif mark.kind in _OF_A_STEP:
            self._held.append(mark)

    def _can_tell(self) -> bool:
        counts = self._counts_of_all()
        if counts and min(counts.values()) >= _LEAST:
            return True
        if len(self._held) > _MOST_HELD:
            return True
        is_late = (
            bool(self._held) and self._held[-1].ended - self._held[0].began > _PATIENCE_S * 1e9
        )
        if not is_late or self.is_in_first_step():
            return False
        return bool(self.counts or self.backwards > _LEAST)

    def _find_end(self) -> int | None:
        """Return what ends a step among the marks that are held; None if no optimizer stepped and nothing went backward."""
        in_first_step = self._begun - self.counts.keys()
        counts: Counter[int] = Counter(dict.fromkeys(in_first_step, 0))
        last = dict.fromkeys(in_first_step, -1)
        has_backward = False
        for index, mark in enumerate(self._held):
            if mark.kind in _OPTIMIZED:
                counts[mark.name] += 1
                last[mark.name] = index
            elif mark.kind == WENT_BACK:
                has_backward = True
        if (
            has_backward and self._within >= counts.keys()
        ):  # with `--watch steps` no backward is seen
            return BACKWARDS
        return min(counts, key=lambda name: (counts[name], -last[name]), default=None)

    def _cut(self) -> list[Step]:
        """Return the steps that the held marks complete; choose another end of a step if its optimizer steps no more."""
        steps = self._cut_held()
        while self._is_past():
            self._held, self._step, self._most = self._step, [], 0
            self.ends_with = self._find_end()
            more = self._cut_held()
            if not more:
                break
            steps += more
        return steps

    def _cut_held(self) -> list[Step]:
        steps = []
        for mark in self._held:
            self._step.append(mark)
            if self._is_end(mark):
                marks = self._without_evaluations(self._step)
                step = _step_of(marks, self._ended)
                self._cut_steps += 1
                self._parallel_steps += _is_parallel(step, marks)
                step.core_time = self._readings.take(step.ended, mark.reading)
                steps.append(step)
                self._ended = mark.ended
                self._step = []
                self._most = max(self._most, step.optimized)
        self._held = []
        return steps

    def _without_evaluations(self, marks: list[Mark]) -> list[Mark]:
        """Leave out the waits of loops over a DataLoader that began and ended in this step, with no backward between."""
        evaluations = _loops_without_backward(marks)
        if not evaluations:
            return marks
        kept = [mark for mark in marks if mark.kind != WAITED or mark.name not in evaluations]
        self.waits -= len(marks) - len(kept)
        self.waits_of_evaluations += len(marks) - len(kept)
        return kept

    def _is_end(self, mark: Mark) -> bool:
        if self.ends_with == BACKWARDS:
            return mark.kind == WENT_BACK
        return mark.kind in _OPTIMIZED and mark.name == self.ends_with

    def _is_past(self) -> bool:
        """Say whether others go on without the optimizer that ended steps, as in the next fold of a cross-validation."""
        is_long = len(self._step) > _LONG * self._most + _PATIENCE and not self._is_chosen
        return (
            is_long
            and sum(mark.kind in _OPTIMIZED for mark in self._step) > _LONG * self._most + _PATIENCE
        )


def _loops_without_backward(marks: list[Mark]) -> set[int]:
    """Return the numbers of the loops over a DataLoader that begin and end in these marks, with no backward between."""
    optimizers: set[int] = set()
    going: set[int] = set()
    for mark in marks:
        if mark.kind == WENT_BACK:
            going.clear()
        elif mark.kind == WAITED and mark.flags & BEGINS:
            going.add(mark.name)
        elif mark.kind == WAITED and mark.flags & ENDS and mark.name in going:
            optimizers.add(mark.name)
    return optimizers


def _is_parallel(step: Step, marks: list[Mark]) -> bool:
    """Say whether several threads worked on a step at once: what one thread does follows in time, or lies within."""
    if step.is_on_gpu or step.took_ns is None:
        return False
    if step.known_ns > step.took_ns:
        return True
    ends: list[int] = []  # of the marks that the next one may lie within
    for mark in sorted(marks, key=lambda mark: (mark.began, -mark.ended)):
        while ends and ends[-1] <= mark.began:
            ends.pop()
        if ends and mark.ended > ends[-1]:
            return True
        ends.append(mark.ended)
    return False


def _step_of(marks: list[Mark], began: int | None) -> Step:
    """Add up the marks of a step."""
    step = Step(began, marks[-1].ended, gpu_ns=_gpu_ns(marks))
    for index, mark in enumerate(marks):
        step.watched_ns += mark.number
        if mark.kind == WAITED:
            step.waited_ns += (
                mark.ended - mark.began - _logging_ns(marks, index) - _waits_within_ns(marks, index)
            )
        elif mark.kind == LOGGER_CALL:
            step.logging_ns += mark.ended - mark.began
        elif mark.kind == WENT_FORWARD:
            logging_ns = 0 if step.is_on_gpu else _logging_ns(marks, index)
            step.forward_ns += max(_took_ns(mark, step.is_on_gpu) - logging_ns, 0)
        elif mark.kind == WENT_BACK:
            step.backward_ns += _own_ns(marks, index, step.is_on_gpu)
            step.backwards += 1
        else:
            step.optimizer_ns += _own_ns(marks, index, step.is_on_gpu)
            step.optimized += 1
            step.skipped += mark.kind == SKIPPED
    if step.gpu_ns is not None:  # waiting while it works costs nothing
        worked_ns = step.forward_ns + step.backward_ns + step.optimizer_ns
        step.waited_ns = min(step.waited_ns, max(step.gpu_ns - worked_ns, 0))
        step.logging_ns = min(step.logging_ns, max(step.gpu_ns - worked_ns - step.waited_ns, 0))
    step.roots = _roots(marks)
    return step


def _gpu_ns(marks: list[Mark]) -> int | None:
    """Return how long a step took on a GPU; None unless all of it was measured there."""
    lengths = [
        mark.gpu_since_ns
        for mark in marks
        if mark.kind in (STEPPED, WENT_FORWARD, WENT_BACK) or mark.gpu_ns is not None
    ]
    return None if None in lengths else sum(ns or 0 for ns in lengths)


def _own_ns(marks: list[Mark], index: int, is_on_gpu: bool) -> int:
    """Return how long something took without what went on within: an optimizer calls a closure, a backward may call optimizers.

    A closure goes forward and backward, as that of Lightning and of LBFGS: the optimizer's own is what comes after the last
    backward. What goes on within ends before, so that it was marked before.
    """
    outer = marks[index]
    inner = [
        mark
        for mark in takewhile(lambda mark: mark.began >= outer.began, reversed(marks[:index]))
        if mark.kind != WAITED
    ]
    worked = [mark for mark in inner if mark.kind != LOGGER_CALL]
    if outer.kind in _OPTIMIZED and worked and worked[0].kind == WENT_BACK:
        if is_on_gpu:
            return outer.gpu_since_ns or 0
        later = inner[: inner.index(worked[0])]
        return outer.ended - worked[0].ended - sum(mark.ended - mark.began for mark in later)
    others = _outermost([mark for mark in inner if mark.kind != outer.kind])
    return max(_took_ns(outer, is_on_gpu) - sum(_took_ns(mark, is_on_gpu) for mark in others), 0)


def _outermost(marks: list[Mark]) -> list[Mark]:
    """Return the marks that lie within no other mark; the marks come in reverse order."""
    outermost: list[Mark] = []
    for mark in marks:
        if not outermost or mark.began < outermost[-1].began:
            outermost.append(mark)
    return outermost


def _marks_within(marks: list[Mark], index: int) -> Iterator[Mark]:
    """Return the marks that lie within one of them, the last one first."""
    return takewhile(lambda mark: mark.began >= marks[index].began, reversed(marks[:index]))


def _logging_ns(marks: list[Mark], index: int) -> int:
    """Return how long loggers took within a mark."""
    return sum(
        mark.ended - mark.began for mark in _marks_within(marks, index) if mark.kind == LOGGER_CALL
    )


def _waits_within_ns(marks: list[Mark], index: int) -> int:
    """Return how long a wait for data was a wait for another loader, as of a dataset that reads one itself."""
    waits = [mark for mark in _marks_within(marks, index) if mark.kind == WAITED]
    return sum(mark.ended - mark.began for mark in _outermost(waits))


def _took_ns(mark: Mark, is_on_gpu: bool) -> int:
    return mark.gpu_ns or 0 if is_on_gpu else mark.ended - mark.began


def _roots(marks: list[Mark]) -> dict[int, float]:
    """Return the roots of a step, summed by the optimizer that steps next.

    Where several went backward before as many optimizers stepped, each belongs to the one in its place.
    """
    roots: dict[int, float] = {}
    waiting: list[Mark] = []
    stepped: list[int] = []

    def give_out() -> None:
        is_paired = len(waiting) == len(set(stepped)) > 1
        for index, mark in enumerate(waiting):
            owner = stepped[index] if is_paired else stepped[0] if stepped else BACKWARDS
            if mark.flags & HAS_VALUE:
                roots[owner] = roots.get(owner, 0.0) + mark.value
        waiting.clear()
        stepped.clear()

    for mark in marks:
        if mark.kind == WENT_BACK:
            if stepped:
                give_out()
            waiting.append(mark)
        elif mark.kind in _OPTIMIZED and mark.name not in stepped:
            stepped.append(mark.name)
    give_out()
    return roots
