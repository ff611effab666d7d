"""From the marks of one process to its training steps: a step is the period of the pattern in which its optimizers step.

The optimizer that steps least often ends a step, of several that step as often the last in turn. Where no optimizer's step is
seen, as in a step that is compiled whole, a backward ends one.
"""

from collections import Counter
from dataclasses import dataclass, field

from tuilab.commands.inside.tuilab_watch.layout import HAS_VALUE, SKIPPED, STEPPED, WAITED, WENT_BACK
from tuilab.commands.marks import Mark

BACKWARDS = 0  # what ends a step where it is no optimizer
_LEAST = 3  # steps of each optimizer, before one tells which steps least often
_MOST_HELD = 20_000  # marks
_PATIENCE_S = 10.0
_OPTIMIZED = (STEPPED, SKIPPED)


@dataclass
class Step:
    """One step: when it began (None: the first, of which that is not known) and ended, and where its time went."""

    began: int | None
    ended: int
    waited_ns: int = 0
    backward_ns: int = 0
    optimizer_ns: int = 0
    backwards: int = 0
    optimized: int = 0  # steps of optimizers
    skipped: int = 0  # of which GradScaler left out
    roots: dict[int, float] = field(default_factory=dict)  # by the optimizer that stepped next: the sum

    @property
    def took_ns(self) -> int | None:
        return None if self.began is None else self.ended - self.began

    @property
    def rest_ns(self) -> int | None:
        """The forward, and all else."""
        if self.took_ns is None:
            return None
        return max(self.took_ns - self.waited_ns - self.backward_ns - self.optimizer_ns, 0)


class Steps:
    """Finds the steps in the marks of one process as they come."""

    def __init__(self) -> None:
        self.counts: Counter[int] = Counter()  # of each optimizer's steps, those that were left out too
        self.backwards = 0
        self.waits = 0
        self.ends_with: int | None = None  # the optimizer whose step ends a step; None: not known yet
        self._held: list[Mark] = []
        self._step: list[Mark] = []  # the marks of the step that goes on
        self._ended: int | None = None  # when the last one did

    def choose(self, optimizer: int) -> None:
        """Have the steps of this optimizer end a step."""
        self.ends_with = optimizer

    def take(self, marks: list[Mark]) -> list[Step]:
        """Return the steps that have ended since."""
        for mark in marks:
            if mark.kind in _OPTIMIZED:
                self.counts[mark.name] += 1
            self.backwards += mark.kind == WENT_BACK
            self.waits += mark.kind == WAITED
        self._held += [mark for mark in marks if mark.kind in (*_OPTIMIZED, WENT_BACK, WAITED)]
        if self.ends_with is None and self._can_tell():
            self.ends_with = self._least_often()
        return self._cut() if self.ends_with is not None else []

    def finish(self) -> list[Step]:
        """Return the steps that were not told from each other before the process ended."""
        if self.ends_with is None and (self.counts or self.backwards):
            self.ends_with = self._least_often()
        return self._cut()

    def _can_tell(self) -> bool:
        if self.counts and min(self.counts.values()) >= _LEAST:
            return True
        is_late = bool(self._held) and self._held[-1].ended - self._held[0].began > _PATIENCE_S * 1e9
        return len(self._held) > _MOST_HELD or (is_late and bool(self.counts or self.backwards > _LEAST))

    def _least_often(self) -> int:
        if not self.counts:
            return BACKWARDS
        last = {mark.name: at for at, mark in enumerate(self._held) if mark.kind in _OPTIMIZED}
        return min(self.counts, key=lambda name: (self.counts[name], -last.get(name, -1)))

    def _cut(self) -> list[Step]:
        found = []
        for mark in self._held:
            self._step.append(mark)
            is_end = mark.kind == WENT_BACK if self.ends_with == BACKWARDS else mark.name == self.ends_with
            if is_end and (self.ends_with == BACKWARDS or mark.kind in _OPTIMIZED):
                found.append(_step_of(self._step, self._ended))
                self._ended, self._step = mark.ended, []
        self._held = []
        return found


def _step_of(marks: list[Mark], began: int | None) -> Step:
    """Add up the marks of a step."""
    step = Step(began, marks[-1].ended)
    for mark in marks:
        took = mark.ended - mark.began
        if mark.kind == WAITED:
            step.waited_ns += took
        elif mark.kind == WENT_BACK:
            step.backward_ns += took
            step.backwards += 1
        else:
            step.optimizer_ns += took - _backward_within(mark, marks)
            step.optimized += 1
            step.skipped += mark.kind == SKIPPED
    step.roots = _roots(marks)
    return step


def _backward_within(outer: Mark, marks: list[Mark]) -> int:
    """Return how long an optimizer's own step went backward, as LBFGS does."""
    inner = [mark for mark in marks if mark.kind == WENT_BACK and outer.began <= mark.began and mark.ended <= outer.ended]
    return sum(mark.ended - mark.began for mark in inner)


def _roots(marks: list[Mark]) -> dict[int, float]:
    """Return the roots of a step, summed by the optimizer that steps next.

    Where several went backward before as many optimizers stepped, each belongs to the one in its place.
    """
    found: dict[int, float] = {}
    waiting: list[Mark] = []
    stepped: list[int] = []

    def give_out() -> None:
        is_paired = len(waiting) == len(set(stepped)) > 1
        for at, mark in enumerate(waiting):
            owner = stepped[at] if is_paired else stepped[0] if stepped else BACKWARDS
            if mark.flags & HAS_VALUE:
                found[owner] = found.get(owner, 0.0) + mark.value
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
    return found
