"""Read which steps of a process were counted, and what they compute, copy and wait for.

The watcher writes this. The script runs in the same process, so it may have written anything.
"""

import json
from typing import Annotated

import msgspec

from tuilab.record.events import CountedPlace, StepCounted
from tuilab.text.display import show

_MOST = 100  # reports of one process
_Count = Annotated[int, msgspec.Meta(ge=0, lt=2**62)]
_Line = Annotated[int, msgspec.Meta(ge=0, lt=2**31)]
_LONGEST_REASON = 300


class _Place(msgspec.Struct, frozen=True):
    """What one line of the script copies or reads in a counted step."""

    file: str
    line: _Line
    kind: str
    memory: str
    count: _Count
    bytes: _Count
    source: str = ""


class _Package(msgspec.Struct, frozen=True):
    """What an installed package copies and reads in a counted step."""

    package: str
    copies: _Count
    reads: _Count


class CountedPart(msgspec.Struct, frozen=True):
    """One report: the part of the run that was counted, or the reason why nothing was."""

    began: _Count = 0  # nanoseconds of CLOCK_MONOTONIC
    ended: _Count = 0
    until: _Count = 0  # when the report was made, in the step that follows
    reason: str = ""
    flops: _Count = 0
    kinds: dict[str, _Count] = {}  # by dtype
    uncounted: list[str] = []
    tokens: _Count = 0
    tokens_from: str = ""
    places: list[_Place] = []
    packages: list[_Package] = []
    copies: _Count = 0
    reads: _Count = 0
    device: str = ""
    gpu: str = ""
    uuid: str = ""
    threads: _Count = 0
    cores: _Count = 0
    precision: str = ""

    def overlaps(self, began_ns: int | None, ended_ns: int) -> bool:
        """Return whether the counting has made a step longer that began and ended then."""
        if began_ns is None:
            began_ns = ended_ns
        return began_ns < max(self.ended, self.until) and ended_ns > self.began

    def record(self, arm: str, step: int, steps: int) -> StepCounted:
        """Return the record of the counted part, which has so many whole steps."""
        places = []
        for place in self.places:
            places.append(
                CountedPlace(
                    file=show(place.file, 200),
                    line=place.line,
                    source=show(place.source, 100),
                    kind=show(place.kind, 40),
                    memory=show(place.memory, 40),
                    count=place.count,
                    bytes=place.bytes,
                )
            )
        return StepCounted(
            arm=arm,
            step=step,
            steps=steps,
            flops=self.flops,
            kinds={show(kind, 40): flops for kind, flops in list(self.kinds.items())[:10]},
            uncounted=[show(name, 60) for name in self.uncounted[:10]],
            tokens=self.tokens or None,
            tokens_from=show(self.tokens_from, 40),
            copies=self.copies,
            device_reads=self.reads,
            places=places,
            packages={
                show(package.package, 40): [package.copies, package.reads]
                for package in self.packages[:10]
            },
            device=show(self.device, 20),
            gpu=show(self.gpu, 60),
            uuid=show(self.uuid, 60),
            threads=self.threads,
            cores=self.cores,
            precision=show(self.precision, 20),
        )


class CountedParts:
    """The counted parts of one process, as far as they were reported."""

    def __init__(self) -> None:
        self.parts: list[CountedPart] = []
        self._steps_of: dict[int, int] = {}  # steps that ended in a part, by its index
        self._taken = 0  # parts that were returned by `take_finished`

    def take(self, text: str) -> None:
        """Take a report of the watcher; one of another form is ignored."""
        if len(self.parts) >= _MOST:
            return
        try:
            self.parts.append(msgspec.convert(json.loads(text), CountedPart))
        except (ValueError, RecursionError):
            return

    def is_counted(self, began_ns: int | None, ended_ns: int) -> bool:
        """Return whether a step was counted, at least in part, and note that it was seen.

        `began_ns` is None if the beginning of the step is unknown.
        """
        is_counted = False
        for index, part in enumerate(self.parts):
            if not part.overlaps(began_ns, ended_ns):
                continue
            is_counted = True
            if ended_ns <= part.ended:
                self._steps_of[index] = self._steps_of.get(index, 0) + 1
        return is_counted

    def take_finished(self, until_ns: int, arm: str, step: int) -> list[StepCounted]:
        """Return the records of the parts that ended by then, each once.

        `step` is the number of the step that ended then.
        """
        records = []
        while self._taken < len(self.parts) and self.parts[self._taken].ended <= until_ns:
            part = self.parts[self._taken]
            steps = self._steps_of.get(self._taken, 0)
            self._taken += 1
            if steps and not part.reason:
                records.append(part.record(arm, step, steps))
        return records

    def why_not(self) -> str:
        """Return why no step was counted; empty if one was, or if nothing is known."""
        if any(not part.reason for part in self.parts):
            return ""
        for part in reversed(self.parts):
            return show(part.reason, _LONGEST_REASON)
        return ""
