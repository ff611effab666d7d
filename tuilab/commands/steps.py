"""Find the training steps in the marks of one process: a step is one period of its optimizer steps.

A mark is an event, such as an optimizer step, that the watcher in a process writes to a file. The
optimizer that steps least often ends a step. If several optimizers step equally seldom, the one
that steps last ends it. A backward ends a step if no optimizer step is seen, as in a step that is
compiled whole, or if all optimizers step during a backward.

Times from the GPU are preferred to times from the host, because the host only sees launches.
"""

from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import dataclass, field

from tuilab.commands.cpu.core_time import CoreTime, CoreTimeReading, CoreTimeReadings
from tuilab.commands.deferred_marks import DeferredMarks
from tuilab.commands.marks import UNKNOWN_NS, Mark
from tuilab.commands.watcher._tuilab_watch.layout import (
    BEGINS,
    COLLECTED,
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

BACKWARDS = 0  # used in place of an optimizer if a backward ends a step
_LEAST = 3  # steps of each optimizer are awaited, to see which optimizer steps least often
_MOST_HELD = 20_000  # marks
_PATIENCE_S = 10.0  # of held marks; then they have to show what ends a step
# If a step has more than _LONG times the most optimizer steps so far plus _PATIENCE, another
# optimizer has to end it.
_LONG = 4
_PATIENCE = 20
_OPTIMIZED = (STEPPED, SKIPPED)
_OF_A_STEP = (*_OPTIMIZED, WENT_FORWARD, WENT_BACK, WAITED, LOGGER_CALL)
_PARALLEL_SHARE = 0.05  # of the steps: a second thread that works in fewer steps is ignored
_LONGEST_NS = 2**62  # a longer delay cannot be true


@dataclass
class Step:
    """One step: when it began and ended, and where its time went.

    `began` is None for the first step, because its beginning is unknown.
    """

    began: int | None
    ended: int
    waited_ns: int = 0
    # Of waited_ns: what loops over a DataLoader took until the first batch, and at their end.
    started_ns: int = 0
    forward_ns: int = 0  # if a library calls the forward in one place
    backward_ns: int = 0
    optimizer_ns: int = 0
    logging_ns: int = 0  # in known loggers
    backwards: int = 0
    backwards_in_optimizer: int = 0  # the most within one step of an optimizer
    optimized: int = 0  # steps of optimizers
    skipped: int = 0  # the optimizer steps that GradScaler skipped
    watched_ns: int = 0  # the time that watching took on the host
    gpu_ns: int | None = None  # on the GPU since the previous step, if its end was timed there
    has_parts: bool = True  # whether its parts were timed: on a GPU, those of a few steps are
    roots: dict[int, float] = field(default_factory=dict)  # sum, by the optimizer that steps next
    # How many values each of these sums has.
    root_counts: dict[int, int] = field(default_factory=dict)
    core_time: CoreTime | None = None  # of this step, and of earlier ones without a reading
    pauses_ns: list[int] = field(default_factory=list)  # of collections of garbage, if long

    @property
    def is_on_gpu(self) -> bool:
        return self.gpu_ns is not None

    @property
    def took_ns(self) -> int | None:
        """The length of the step; None if it is unknown, for example if clocks went back."""
        if self.began is None or self.ended < self.began:
            return None
        if self.gpu_ns is not None:
            return self.gpu_ns
        return self.ended - self.began

    @property
    def rest_ns(self) -> int | None:
        """The rest of the step, including the forward if it was not measured."""
        if self.took_ns is None:
            return None
        return max(self.took_ns - self.known_ns, 0)

    @property
    def known_ns(self) -> int:
        """The time of the measured parts."""
        return (
            self.waited_ns
            + self.forward_ns
            + self.backward_ns
            + self.optimizer_ns
            + self.logging_ns
        )


class Steps:
    """Find the steps in the marks of one process as the marks come."""

    def __init__(self) -> None:
        self.counts: Counter[int] = Counter()  # steps of each optimizer, also skipped steps
        self.backwards = 0
        self.waits = 0  # for data of the training
        self.waits_of_evaluations = 0
        self.waits_of_other_threads = 0  # of threads that make no steps
        self._cut_steps = 0
        self._parallel_steps = 0  # steps on which several threads worked at the same time
        self.forwards = 0
        self.loggings = 0
        self.has_workers = False  # whether a DataLoader has worker processes
        self.ends_with: int | None = None  # the optimizer that ends a step; None: not known yet
        self._is_chosen = False  # whether the user chose that optimizer
        self._most = 0  # the most optimizer steps in one step
        self._deferred = DeferredMarks()
        self._begun: set[int] = set()  # optimizers whose first step has begun
        self._read: dict[int, CoreTimeReading] = {}  # by the optimizer that steps next
        self._readings = CoreTimeReadings()
        self._within: set[int] = set()  # optimizers that step during a backward
        # Collections of garbage since the last step.
        self._pauses: deque[Mark] = deque(maxlen=_MOST_HELD)
        self._held: list[Mark] = []
        self._step: list[Mark] = []  # the marks of the unfinished step
        self._ended: int | None = None  # the end of the last step

    def choose(self, optimizer: int) -> None:
        """Let this optimizer end a step, as the user asked."""
        self.ends_with = optimizer
        self._is_chosen = True

    def take(self, marks: list[Mark]) -> list[Step]:
        """Take new marks, and return the steps that they complete.

        None are returned until it is known which optimizer ends a step; then those of the held
        marks follow.
        """
        return self._take(self._deferred.take(marks))

    @property
    def is_parallel(self) -> bool:
        """Whether several threads work on steps at the same time, so that parts overlap."""
        return self._parallel_steps > _PARALLEL_SHARE * self._cut_steps

    @property
    def step_count(self) -> int:
        """The number of steps that were found so far."""
        return self._cut_steps

    def training_waits(self) -> int:
        """Return the number of waits for data in finished steps.

        Later waits do not count, because they may belong to an evaluation.
        """
        waits_in_step = [mark for mark in self._step if mark.kind == WAITED]
        return self.waits - len(waits_in_step)

    def is_in_first_step(self) -> bool:
        """Say whether an optimizer has begun its first step, and no optimizer has ended one."""
        return bool(self._begun) and not self.counts

    def finish(self) -> list[Step]:
        """Take the end of the process; return the steps that are only found then.

        Marks after the end of the last step make no step.
        """
        steps = self._take(self._deferred.finish())
        if self.ends_with is None:
            self.ends_with = self._find_end()
        return steps + self._cut()

    def _take(self, marks: list[Mark]) -> list[Step]:
        """Count and hold marks, and return the steps that they complete.

        The GPU values of these marks have arrived.
        """
        for mark in marks:
            if mark.kind in _OPTIMIZED:
                self.counts[mark.name] += 1
                if mark.flags & WITHIN:
                    self._within.add(mark.name)
            elif mark.kind == WENT_BACK:
                self.backwards += 1
            elif mark.kind == WENT_FORWARD:
                self.forwards += 1
            elif mark.kind == LOGGER_CALL:
                self.loggings += 1
            elif mark.kind == STEP_BEGAN:
                self._begun.add(mark.name)
            if mark.kind == WAITED:
                self._take_wait(mark)
            elif mark.kind == COLLECTED:
                self._pauses.append(mark)
            else:
                self._hold(mark)
        if self.ends_with is None and self._can_find_end():
            self.ends_with = self._find_end()
        if self.ends_with is None:
            del self._held[:-_MOST_HELD]  # a process that only evaluates never steps
            return []
        return self._cut()

    def _take_wait(self, mark: Mark) -> None:
        """Count a wait for data; keep it unless an evaluation or another thread waited."""
        if mark.flags & FROM_WORKERS:
            self.has_workers = True
        if mark.flags & ELSEWHERE:
            self.waits_of_other_threads += 1
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
        """Keep a mark of a step; a CPU reading belongs to the next step of its optimizer.

        Other marks are dropped.
        """
        if mark.kind == USED:
            is_delay = 0 <= mark.value < _LONGEST_NS  # this also excludes NaN
            delay_ns = mark.value if is_delay else None
            self._read[mark.name] = CoreTimeReading(mark.began, mark.ended, mark.number, delay_ns)
        elif mark.kind in _OPTIMIZED:
            reading = self._read.pop(mark.name, None)
            if reading:
                mark = mark._replace(reading=reading)
            self._held.append(mark)
        elif mark.kind in _OF_A_STEP:
            self._held.append(mark)

    def _can_find_end(self) -> bool:
        """Say whether there are enough marks to see which optimizer ends a step."""
        counts = self._counts_of_all()
        if counts and min(counts.values()) >= _LEAST:
            return True
        if len(self._held) > _MOST_HELD:
            return True
        if not self._held or self.is_in_first_step():
            return False
        if self._held[-1].ended - self._held[0].began <= _PATIENCE_S * 1e9:
            return False
        return bool(self.counts or self.backwards > _LEAST)

    def _find_end(self) -> int | None:
        """Return the optimizer (or BACKWARDS) that ends a step in the held marks.

        None if no optimizer has stepped or begun a step, and nothing has gone backward.
        """
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
        if has_backward and self._within >= counts.keys():  # `--watch steps` sees no backward
            return BACKWARDS
        # The optimizer with the fewest steps; if several have as few, the one that stepped last.
        return min(counts, key=lambda name: (counts[name], -last[name]), default=None)

    def _cut(self) -> list[Step]:
        """Return the steps that the held marks complete.

        If the optimizer that ended steps is gone, find another one that ends them.
        """
        steps = self._cut_held()
        while self._has_lost_its_end():
            self._held = self._step
            self._step = []
            self._most = 0
            self.ends_with = self._find_end()
            later_steps = self._cut_held()
            if not later_steps:
                break
            steps += later_steps
        return steps

    def _cut_held(self) -> list[Step]:
        """Return the steps that the held marks complete; keep the marks of the unfinished one."""
        steps = []
        for mark in self._held:
            self._step.append(mark)
            if self._is_end(mark):
                marks = self._without_evaluations(self._step)
                step = _step_of(marks, self._ended)
                self._cut_steps += 1
                if _is_parallel(step, marks):
                    self._parallel_steps += 1
                step.core_time = self._readings.take(step.ended, mark.reading)
                step.pauses_ns = self._take_pauses(step.ended)
                steps.append(step)
                self._ended = mark.ended
                self._step = []
                self._most = max(self._most, step.optimized)
        self._held = []
        return steps

    def _take_pauses(self, until_ns: int) -> list[int]:
        """Return how long the collections of garbage took that ended by then, and forget them."""
        pauses_ns = []
        while self._pauses and self._pauses[0].ended <= until_ns:
            pause = self._pauses.popleft()
            pauses_ns.append(max(pause.ended - pause.began, 0))
        return pauses_ns

    def _without_evaluations(self, marks: list[Mark]) -> list[Mark]:
        """Return the marks of a step without the waits of evaluations.

        An evaluation is a loop over a DataLoader that begins and ends within the step, without a
        backward.
        """
        evaluations = _loops_without_backward(marks)
        if not evaluations:
            return marks
        training_marks = []
        for mark in marks:
            if mark.kind == WAITED and mark.name in evaluations:
                self.waits -= 1
                self.waits_of_evaluations += 1
            else:
                training_marks.append(mark)
        return training_marks

    def _is_end(self, mark: Mark) -> bool:
        if self.ends_with == BACKWARDS:
            return mark.kind == WENT_BACK
        return mark.kind in _OPTIMIZED and mark.name == self.ends_with

    def _has_lost_its_end(self) -> bool:
        """Say whether the optimizer that ended steps is gone, while other optimizers step.

        This happens in cross-validation, for example.
        """
        limit = _LONG * self._most + _PATIENCE
        # This test is cheap, because it runs for each batch of marks.
        if self._is_chosen or len(self._step) <= limit:
            return False
        optimizer_steps = [mark for mark in self._step if mark.kind in _OPTIMIZED]
        return len(optimizer_steps) > limit


def _loops_without_backward(marks: list[Mark]) -> set[int]:
    """Return the loops over a DataLoader that begin and end in these marks, without a backward."""
    evaluations: set[int] = set()
    open_loops: set[int] = set()
    for mark in marks:
        if mark.kind == WENT_BACK:
            open_loops.clear()
        elif mark.kind == WAITED and mark.flags & BEGINS:
            open_loops.add(mark.name)
        elif mark.kind == WAITED and mark.flags & ENDS and mark.name in open_loops:
            evaluations.add(mark.name)
    return evaluations


def _is_parallel(step: Step, marks: list[Mark]) -> bool:
    """Say whether several threads worked on a step: marks of one thread never overlap partly."""
    if step.is_on_gpu or step.took_ns is None:
        return False
    if step.known_ns > step.took_ns:
        return True
    ends: list[int] = []  # of the marks that may contain the next mark
    for mark in sorted(marks, key=lambda mark: (mark.began, -mark.ended)):
        while ends and ends[-1] <= mark.began:
            ends.pop()
        if ends and mark.ended > ends[-1]:
            return True
        ends.append(mark.ended)
    return False


def _step_of(marks: list[Mark], began: int | None) -> Step:
    """Return the step that these marks make up; `began` is the end of the previous one."""
    step = Step(began, marks[-1].ended, gpu_ns=_gpu_ns(marks))
    new_loops: set[int] = set()  # loops over a DataLoader that still have to bring a batch
    for index, mark in enumerate(marks):
        step.watched_ns += mark.number
        if mark.kind == WAITED:
            inner_ns = _logging_ns(marks, index) + _waits_within_ns(marks, index)
            waited_ns = mark.ended - mark.began - inner_ns
            step.waited_ns += waited_ns
            if mark.flags & BEGINS:
                new_loops.add(mark.name)
                step.started_ns += waited_ns
            elif mark.name in new_loops or mark.flags & ENDS:
                new_loops.discard(mark.name)
                step.started_ns += waited_ns
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
            inner_kinds = [inner.kind for inner in _marks_within(marks, index)]
            backwards = inner_kinds.count(WENT_BACK)
            step.backwards_in_optimizer = max(step.backwards_in_optimizer, backwards)
            if mark.kind == SKIPPED:
                step.skipped += 1
    if step.gpu_ns is not None:
        step.has_parts = _has_gpu_parts(marks)
        # A wait of the host costs nothing while the GPU works.
        worked_ns = step.forward_ns + step.backward_ns + step.optimizer_ns
        idle_ns = step.gpu_ns - worked_ns
        step.waited_ns = min(step.waited_ns, max(idle_ns, 0))
        step.started_ns = min(step.started_ns, step.waited_ns)
        step.logging_ns = min(step.logging_ns, max(idle_ns - step.waited_ns, 0))
    _add_roots_of_step(step, marks)
    return step


def _gpu_ns(marks: list[Mark]) -> int | None:
    """Return the length of a step on the GPU; None unless it was measured there.

    Each time is that since the previous timed work. Their sum reaches from end to end of the steps.
    """
    if marks[-1].gpu_since_ns is None:
        return None
    times_ns = [mark.gpu_since_ns for mark in marks if mark.gpu_since_ns is not None]
    if UNKNOWN_NS in times_ns:
        return None
    return sum(times_ns)


def _has_gpu_parts(marks: list[Mark]) -> bool:
    """Return whether the GPU has timed each part of a step."""
    parts = [mark for mark in marks if mark.kind in (STEPPED, WENT_FORWARD, WENT_BACK)]
    return all(mark.gpu_ns is not None for mark in parts)


def _own_ns(marks: list[Mark], index: int, is_on_gpu: bool) -> int:
    """Return the length of a mark without the marks inside it.

    An optimizer may call a closure, and a backward may call optimizers. The closures of Lightning
    and LBFGS go forward and backward. For these, only the time after the last backward counts as
    time of the optimizer. Inner marks come before the outer mark, because they end earlier.
    """
    outer = marks[index]
    inner = [mark for mark in _marks_within(marks, index) if mark.kind != WAITED]
    inner_work = [mark for mark in inner if mark.kind != LOGGER_CALL]
    if outer.kind in _OPTIMIZED and inner_work and inner_work[0].kind == WENT_BACK:
        if is_on_gpu:
            return outer.gpu_since_ns or 0
        last_backward = inner_work[0]
        later_calls = inner[: inner.index(last_backward)]  # of loggers
        logging_ns = sum(call.ended - call.began for call in later_calls)
        return outer.ended - last_backward.ended - logging_ns
    other_kinds = _outermost([mark for mark in inner if mark.kind != outer.kind])
    inner_ns = sum(_took_ns(mark, is_on_gpu) for mark in other_kinds)
    return max(_took_ns(outer, is_on_gpu) - inner_ns, 0)


def _outermost(marks: list[Mark]) -> list[Mark]:
    """Return the marks that are inside no other mark; `marks` are in reverse order."""
    outermost: list[Mark] = []
    for mark in marks:
        if not outermost or mark.began < outermost[-1].began:
            outermost.append(mark)
    return outermost


def _marks_within(marks: list[Mark], index: int) -> Iterator[Mark]:
    """Yield the marks inside the mark at an index, the last one first.

    They come before it in `marks`, because they end earlier.
    """
    began = marks[index].began
    for inner_index in range(index - 1, -1, -1):
        if marks[inner_index].began < began:
            return
        yield marks[inner_index]


def _logging_ns(marks: list[Mark], index: int) -> int:
    """Return the time of loggers inside a mark."""
    calls = [mark for mark in _marks_within(marks, index) if mark.kind == LOGGER_CALL]
    return sum(mark.ended - mark.began for mark in calls)


def _waits_within_ns(marks: list[Mark], index: int) -> int:
    """Return the time of waits inside a wait for data: a dataset may read a DataLoader itself."""
    waits = [mark for mark in _marks_within(marks, index) if mark.kind == WAITED]
    return sum(mark.ended - mark.began for mark in _outermost(waits))


def _took_ns(mark: Mark, is_on_gpu: bool) -> int:
    """Return the time of a mark on the GPU or on the host; 0 if the GPU did not measure it."""
    if is_on_gpu:
        return mark.gpu_ns or 0
    return mark.ended - mark.began


def _add_roots_of_step(step: Step, marks: list[Mark]) -> None:
    """Add the values of the roots of a step, summed by the optimizer that steps next.

    If as many backwards as optimizers follow each other, the first backward belongs to the first
    optimizer, the second backward to the second optimizer, and so on.
    """
    backwards: list[Mark] = []
    optimizers: list[int] = []  # that stepped after these backwards, each once
    for mark in marks:
        if mark.kind == WENT_BACK:
            if optimizers:
                _add_roots(step, backwards, optimizers)
                backwards = []
                optimizers = []
            backwards.append(mark)
        elif mark.kind in _OPTIMIZED and mark.name not in optimizers:
            optimizers.append(mark.name)
    _add_roots(step, backwards, optimizers)


def _add_roots(step: Step, backwards: list[Mark], optimizers: list[int]) -> None:
    """Add the values of backwards to the roots of the optimizers that stepped after them."""
    is_paired = len(backwards) == len(optimizers) > 1
    for index, mark in enumerate(backwards):
        owner = BACKWARDS
        if is_paired:
            owner = optimizers[index]
        elif optimizers:
            owner = optimizers[0]
        if mark.flags & HAS_VALUE:
            step.roots[owner] = step.roots.get(owner, 0.0) + mark.value
            step.root_counts[owner] = step.root_counts.get(owner, 0) + 1
