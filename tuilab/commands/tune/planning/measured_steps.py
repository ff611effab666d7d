"""Keep what was measured about the steps of a watched script, as far as the plan needs it."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from tuilab.commands.cpu.core_time import total
from tuilab.commands.step_parts import lacking, parts_of, steady
from tuilab.commands.steps import Step, Steps

STARTING = "starting workers"  # the part of the waits for data in which workers start and end


@dataclass(frozen=True)
class TimedParts:
    """The nanoseconds of a step, and those of its parts. STARTING is included in another part."""

    took_ns: int
    parts: Mapping[str, int]


@dataclass(frozen=True, kw_only=True)
class MeasuredSteps:
    """The steady steps of the process that made the steps."""

    times: list[TimedParts] = field(default_factory=list)  # of the steps whose parts were timed
    lacks: Mapping[str, str] = field(default_factory=dict)  # why a part was not measured
    span_ns: int = 0  # from the first to the last step, warm-up included
    collecting_share: float = 0.0  # of the steady steps: long collections of garbage
    # Cores that the process wanted on average, without its workers; None: not known.
    used_cores: float | None = None

    @property
    def total_ns(self) -> int:
        return sum(step.took_ns for step in self.times)

    def share_of(self, part: str) -> float:
        """Return the share of a part in the time of all steps; 0 if no step was timed."""
        if not self.total_ns:
            return 0.0
        return sum(step.parts.get(part, 0) for step in self.times) / self.total_ns


def measure(steps: Steps, recent: Collection[Step]) -> MeasuredSteps:
    """Return what was measured about `recent` steps, which `steps` has found."""
    steady_steps = steady(recent)
    times = []
    for step in steady_steps:
        parts = parts_of(step)
        if parts:
            parts[STARTING] = min(step.started_ns, step.waited_ns)
            times.append(TimedParts(step.took_ns or 0, parts))
    ends = [step.ended for step in recent]
    span_ns = max(ends) - min(ends) if ends else 0
    steady_ns = sum(step.took_ns or 0 for step in steady_steps)
    pauses_ns = sum(sum(step.pauses_ns) for step in steady_steps)
    core_times = total([step.core_time for step in steady_steps if step.core_time])
    used_cores = None
    if core_times and core_times.wall_ns > 0:
        # Time in which the thread wanted a core and had none counts: it would have used one.
        wanted_ns = core_times.process_ns + core_times.delayed_ns
        used_cores = wanted_ns / core_times.wall_ns
    return MeasuredSteps(
        times=times,
        lacks=lacking(steps),
        span_ns=span_ns,
        collecting_share=pauses_ns / steady_ns if steady_ns else 0.0,
        used_cores=used_cores,
    )
