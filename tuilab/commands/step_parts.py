"""Where the time of a step goes: waiting for data, forward, backward, the optimizer, logging, and all the rest.

Logging is the time in loggers that are known. Where none is called, it is no part.
The forward is told where a library calls it in one place; elsewhere it is in the rest, whose name says so.
"""

from collections.abc import Collection, Sequence
from statistics import median

from tuilab.commands.steps import Step, Steps

DATA, FORWARD, BACKWARD, OPTIMIZER, REST = (
    "waits for data",
    "forward",
    "backward",
    "optimizer",
    "rest",
)
LOGGING = "logging"
PARTS = (DATA, FORWARD, BACKWARD, OPTIMIZER, LOGGING, REST)
UNTOLD = (FORWARD, LOGGING)  # parts of which nothing is said where none was seen
WITH_FORWARD = "forward + rest"
STEP = "step_ms"  # the curve of whole steps
CPU = "cpu_ms"  # that of their CPU time
CURVES = dict(
    zip(
        PARTS,
        ("data_ms", "forward_ms", "backward_ms", "optimizer_ms", "logging_ms", "rest_ms"),
        strict=True,
    )
)  # named with their unit
SEVERAL_THREADS = "several threads work on a step at once"
_LONG = 2  # times as long as most: torch still warms up


def parts_of(step: Step) -> dict[str, int]:
    """Return the nanoseconds of each part of a step; nothing of one whose begin is not known."""
    if step.took_ns is None or step.rest_ns is None:
        return {}
    found = (
        step.waited_ns,
        step.forward_ns,
        step.backward_ns,
        step.optimizer_ns,
        step.logging_ns,
        step.rest_ns,
    )
    return dict(zip(PARTS, found, strict=True))


def lacking(steps: Steps) -> dict[str, str]:
    """Return which parts were not measured, and why: their time is in the rest; of steps that are watched alone all are."""
    if steps.is_parallel:
        return dict.fromkeys(PARTS, SEVERAL_THREADS)
    if not (steps.waits or steps.backwards):
        return dict.fromkeys(PARTS, "only steps were seen")
    waits = steps.training_waits()
    if (
        waits <= steps.waits_elsewhere
    ):  # before the first step it is not known which thread makes steps
        waits = 0
    has_part = {
        DATA: waits,
        FORWARD: steps.forwards,
        BACKWARD: steps.backwards,
        OPTIMIZER: sum(steps.counts.values()),
    }
    has_part[LOGGING] = steps.loggings
    why = dict.fromkeys(PARTS, "none was seen") | {
        DATA: _why_no_waits(steps),
        OPTIMIZER: "no optimizer step was seen",
    }
    return {part: why[part] for part, count in has_part.items() if not count}


def _why_no_waits(steps: Steps) -> str:
    if steps.waits_elsewhere:
        return "a thread that makes no steps reads the DataLoader"
    if steps.waits or steps.waits_of_evaluations:
        return "the DataLoader was read only between steps, as in an evaluation"
    return "no DataLoader was used"


def curves_of(step: Step, lacks: Collection[str] = ()) -> dict[str, float]:
    """Return what is drawn of the times of a step, but for the parts that were not measured."""
    if step.took_ns is None:
        return {}
    curves = {STEP: step.took_ns / 1e6}
    if step.core_time and not step.is_on_gpu:
        curves[CPU] = step.core_time.process_ns / step.core_time.steps / 1e6
    for part, ns in parts_of(step).items():
        if part not in lacks:
            curves[CURVES[part]] = ns / 1e6
    return curves


def steady(steps: Collection[Step]) -> list[Step]:
    """Return the steps that are timed, without the first ones, in which torch warms up."""
    timed = [step for step in steps if step.took_ns]
    if not timed:
        return []
    return timed[first_usual([step.took_ns or 0 for step in timed]) :]


def first_usual(times: Sequence[float]) -> int:
    """Return the place of the first step that takes no longer than others do: torch has warmed up."""
    usual = median(times)
    first = 0
    while times[first] >= _LONG * usual:
        first += 1
    return first


def shares_of(steps: Collection[Step], lacks: Collection[str] = ()) -> dict[str, float]:
    """Return the share of the time that each part takes, in percent, but for the parts that were not measured."""
    timed = steady(steps)
    total = sum(step.took_ns or 0 for step in timed)
    measured = [name for name in PARTS if name not in lacks]
    shares = (
        {name: 100 * sum(parts_of(step)[name] for step in timed) / total for name in measured}
        if total
        else {}
    )
    if FORWARD in lacks and REST in shares:
        shares[WITH_FORWARD] = shares.pop(REST)
    return shares
