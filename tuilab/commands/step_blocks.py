"""Record the steps of a long run in blocks, so that its record stays small.

Up to 100,000 steps of a process have a record each. Later steps share one: a block has at most two
seconds of steps, with the first, last, least and greatest value of each curve, and their sum. The
curves of a run have fewer points than that on any screen.
"""

import math

from tuilab.record.events import BlockLogged, ValuesOfBlock

STEPS_ALONE = 100_000  # steps of a process that have a record each
_LONGEST_NS = 2_000_000_000  # of a block


class _Values:
    """The values of one curve in a block."""

    def __init__(self) -> None:
        self._finite: list[float] = []
        self._bad_count = 0

    def add(self, value: float) -> None:
        if math.isfinite(value):
            self._finite.append(value)
        else:
            self._bad_count += 1

    def close(self) -> ValuesOfBlock:
        values = self._finite
        if not values:
            return ValuesOfBlock(0.0, 0.0, 0.0, 0.0, 0.0, 0, self._bad_count)
        return ValuesOfBlock(
            first=values[0],
            last=values[-1],
            least=min(values),
            greatest=max(values),
            total=math.fsum(values),
            count=len(values),
            bad=self._bad_count,
        )


class OpenBlock:
    """The block of one process that is not recorded yet."""

    def __init__(self, arm: str) -> None:
        self._arm = arm
        self._values: dict[str, _Values] = {}
        self._first_step = 0
        self._steps = 0
        self._began_ns = 0
        self._ended_ns = 0

    def add(self, step: int, values: dict[str, float], ended_ns: int) -> BlockLogged | None:
        """Add the values of a step; return the block before it, if that is complete."""
        complete = None
        if self._steps and ended_ns - self._began_ns > _LONGEST_NS:
            complete = self.close()
        if not self._steps:
            self._first_step = step
            self._began_ns = ended_ns
        self._steps += 1
        self._ended_ns = ended_ns
        for name, value in values.items():
            self._values.setdefault(name, _Values()).add(value)
        return complete

    def close(self) -> BlockLogged | None:
        """Return the block of all steps since the last one; None if there are none."""
        if not self._steps:
            return None
        block = BlockLogged(
            s=self._first_step,
            steps=self._steps,
            v={name: values.close() for name, values in self._values.items()},
            a=self._arm,
            at=self._ended_ns,
        )
        self._values = {}
        self._steps = 0
        return block
