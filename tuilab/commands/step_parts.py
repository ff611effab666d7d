"""The parts of a step: waiting for data, forward, backward, optimizer, logging, and the rest.

Logging is the time in known loggers; without a known logger, logging is not a part. The forward is
a part if a library calls it in one place. Otherwise it belongs to the rest, and the name of the
rest says so.
"""

from collections.abc import Collection, Sequence
from statistics import fmean, median

from tuilab.commands.steps import Step, Steps

DATA = "waits for data"
FORWARD = "forward"
BACKWARD = "backward"
OPTIMIZER = "optimizer"
LOGGING = "logging"
REST = "rest"
PARTS = (DATA, FORWARD, BACKWARD, OPTIMIZER, LOGGING, REST)
UNTOLD = (FORWARD, LOGGING)  # parts that are not mentioned if they were not seen
WITH_FORWARD = "forward + rest"
STEP = "step_ms"  # the curve of whole steps
CPU = "cpu_ms"  # the curve of their CPU time
CURVES = {
    DATA: "data_ms",
    FORWARD: "forward_ms",
    BACKWARD: "backward_ms",
    OPTIMIZER: "optimizer_ms",
    LOGGING: "logging_ms",
    REST: "rest_ms",
}
SEVERAL_THREADS = "several threads work on a step at once"
_LONG = 2  # times the median: such a step belongs to the warm-up of torch


def parts_of(step: Step) -> dict[str, int]:
    """Return the nanoseconds of each part of a step; an empty dict if they were not timed."""
    if not step.has_parts or step.took_ns is None or step.rest_ns is None:
        return {}
    return {
        DATA: step.waited_ns,
        FORWARD: step.forward_ns,
        BACKWARD: step.backward_ns,
        OPTIMIZER: step.optimizer_ns,
        LOGGING: step.logging_ns,
        REST: step.rest_ns,
    }


def lacking(steps: Steps) -> dict[str, str]:
    """Return the parts that were not measured, each with the reason; their time is in the rest.

    If the parts cannot be separated, all of them are returned.
    """
    if steps.is_parallel:
        return dict.fromkeys(PARTS, SEVERAL_THREADS)
    if not (steps.waits or steps.backwards):
        return dict.fromkeys(PARTS, "only steps were seen")
    reasons = {}
    # Before the first step, nobody knows which thread makes steps, so a wait of another thread may
    # count as one of the training. The training waits only if it has more waits than the others.
    if steps.training_waits() <= steps.waits_of_other_threads:
        reasons[DATA] = _why_no_waits(steps)
    if not steps.forwards:
        reasons[FORWARD] = "none was seen"
    if not steps.backwards:
        reasons[BACKWARD] = "none was seen"
    if not steps.counts.total():
        reasons[OPTIMIZER] = "no optimizer step was seen"
    if not steps.loggings:
        reasons[LOGGING] = "none was seen"
    return reasons


def _why_no_waits(steps: Steps) -> str:
    """Return why waiting for data is no part of a step."""
    if steps.waits_of_other_threads:
        return "a thread that makes no steps reads the DataLoader"
    if steps.waits or steps.waits_of_evaluations:
        return "the DataLoader was read only between steps, as in an evaluation"
    return "no DataLoader was used"


def curves_of(step: Step, lacks: Collection[str] = ()) -> dict[str, float]:
    """Return the points of the curves for a step, without the parts that were not measured.

    Empty if the length of the step is unknown.
    """
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
    """Return the steps with a known length after the warm-up of torch."""
    timed = [step for step in steps if step.took_ns]
    if not timed:
        return []
    return timed[first_usual([step.took_ns or 0 for step in timed]) :]


def mean_length_ns(steps: Collection[Step]) -> float:
    """Return the mean length of the steps after the warm-up of torch; 0 if no length is known."""
    lengths_ns = [step.took_ns or 0 for step in steady(steps)]
    return fmean(lengths_ns) if lengths_ns else 0.0


def first_usual(times: Sequence[float]) -> int:
    """Return the index of the first step that is not much longer than the median."""
    usual = median(times)
    for index, time in enumerate(times):
        if time < _LONG * usual:
            return index
    return 0  # for example if all times are 0


def shares_of(steps: Collection[Step], lacks: Collection[str] = ()) -> dict[str, float]:
    """Return the share of each measured part in percent of the time; empty without timed steps.

    Only steps whose parts were timed count. If the forward was not measured, the rest includes it
    and is named WITH_FORWARD.
    """
    timed = [step for step in steady(steps) if step.has_parts]
    total_ns = sum(step.took_ns or 0 for step in timed)
    if not total_ns:
        return {}
    totals_ns = dict.fromkeys(PARTS, 0)
    for step in timed:
        for name, part_ns in parts_of(step).items():
            totals_ns[name] += part_ns
    shares = {}
    for name in PARTS:
        if name not in lacks:
            shares[name] = 100 * totals_ns[name] / total_ns
    if FORWARD in lacks and REST in shares:
        shares[WITH_FORWARD] = shares.pop(REST)
    return shares
