"""What else is told of an arm beside what is judged: where a step's time goes, what the process took of cores and memory."""

from statistics import fmean

from tuilab.commands.ab.step_time import cpu_of, slowest, steady_of
from tuilab.commands.parts import BACKWARD, DATA, FORWARD, LOGGING, OPTIMIZER, REST, lacking, parts_of
from tuilab.commands.running import Ended
from tuilab.commands.watched import Lane

_NAMES = {
    DATA: "data_s",
    BACKWARD: "backward_s",
    OPTIMIZER: "optimizer_s",
    REST: "rest_s",
}  # the rest has the forward and logging in it


def account_of(ended: Ended) -> dict[str, float]:
    """Return the account of a process, or of several that of the slowest: seconds and counts a step, and totals.

    What was not seen is not in it.
    """
    whole = {"cpu_s": ended.cpu_s, "peak_bytes": float(ended.peak_bytes)}
    lane = slowest(ended)
    return {**_of_steps(lane), **whole} if lane else whole


def _of_steps(lane: Lane) -> dict[str, float]:
    found = steady_of(lane)
    assert found is not None
    steps = [step for step in lane.last if step.took_ns][-found.count :]
    account = {"step_s": found.step_s, "steps": float(found.count)}
    if cpu := cpu_of(lane, found):
        account["step_cpu_s"] = cpu.whole_ns / 1e9
    lacks = lacking(lane.steps)
    parts = [parts_of(step) for step in steps]
    for one in parts:
        one[REST] += one[FORWARD] + one[LOGGING]
    account |= {told: fmean(one[name] for one in parts) / 1e9 for name, told in _NAMES.items() if name not in lacks}
    counts = {"backwards": "backwards", "optimized": "optimizer_steps", "skipped": "skipped_steps"}
    return account | {told: fmean(getattr(step, name) for step in steps) for name, told in counts.items()}
