"""What a summary holds in words for people: a finding, a failure, how far a run is, and its last values.

Every view tells them so.
"""

from tuilab.record.events import ScenarioFailed
from tuilab.record.summary import Claim, RunSummary
from tuilab.text import brief, brief_beside, percent, show
from tuilab.words import number, unit_of

# NVIDIA's numbers; those of 13, 31 and 43 are mostly a program's own doing, the others the machine's.
_XIDS = {
    13: "a kernel did what the GPU cannot do, as to write beyond its memory",
    31: "a kernel touched memory that is not there",
    43: "a program's work was ended after an error",
    45: "a program's work was ended from outside, or after an error",
    48: "memory error that could not be corrected",
    62: "the GPU's own controller halted",
    63: "faulty memory was taken out of use",
    64: "faulty memory could not be taken out of use",
    74: "NVLink error",
    79: "the GPU has fallen off the bus",
    92: "very many corrected memory errors",
    94: "memory error that could not be corrected, contained in one program",
    95: "memory error that could not be corrected, and not contained",
    119: "the GPU's own processor (GSP) does not answer",
}


def evidence(claim: Claim) -> str:
    """Return the estimate with its interval, or what was measured, in one line."""
    reached = claim.verdict
    if reached is None:
        return "nothing was measured for it"
    if claim.declared is not None and reached.estimate is not None:
        limit = claim.declared.bound
        low, high = (brief_beside(limit, end) if end is not None else "n/a" for end in (reached.low, reached.high))
        bound = f"{claim.declared.op.replace('_', ' ')} {limit:g}"
        ratio = f"{claim.declared.over}/{claim.declared.under}"
        floor = f"; noise ±{percent(reached.noise_floor)}" if reached.noise_floor is not None else ""
        return f"{ratio} {brief(reached.estimate)} [{low}, {high}], claimed {bound}; {reached.why}{floor}"
    return reached.why


def progress_words(summary: RunSummary) -> str:
    """Return `212/500 steps  35/s  eta 8 s`; no rate until two points are known."""
    now, first = summary.progress, summary.first_progress
    if now is None:
        return ""
    words = f"{now.done}/{now.total} {show(now.unit, 20)}"
    if first is not None and now.t > first.t and now.done > first.done:
        rate = (now.done - first.done) / ((now.t - first.t) / 1e9)
        words += f"  {rate:.3g}/s  eta {(now.total - now.done) / rate:.0f} s"
    return words


def repeat_words(summary: RunSummary) -> str:
    """Return which repeat runs, or was the last: `repeat 2/6`, or how long there may be more; nothing where there is one."""
    repeats = [worker.started.repeat for worker in summary.workers.values() if worker.started and not worker.started.arm]
    if summary.run is None or summary.planned_repeats <= 1 or not repeats:
        return ""
    budget = summary.run.budget_s
    return f"repeat {max(repeats) + 1}" + (f"/{summary.planned_repeats}" if budget is None else f", budget {budget:g} s")


def last_values(summary: RunSummary) -> list[str]:
    """Return the last value of the few series that were written last."""
    latest = sorted(summary.series.values(), key=lambda series: series.last_t)[-3:]
    return [
        f"{show(one.name, 20)}{' ' + show(one.arm, 12) if one.arm else ''} {number(one.last, unit_of(one.name))}"
        for one in latest
    ]


def device_words(summary: RunSummary) -> str:
    """Return which GPU the scenario was given first, and why that one; nothing where it asked for none, or got the CPU."""
    first = next(iter(summary.devices), None)
    return "" if first is None or first.chosen == "cpu" else f"{show(first.chosen, 20)}, {show(first.why, 200)}"


def device_notices(summary: RunSummary) -> list[str]:
    """Return what is to be known of the device before anything that was measured on it is read."""
    found = [show(notice, 1000) for notice in dict.fromkeys(given.notice for given in summary.devices) if notice]
    left_to_us = {given.chosen: None for given in summary.devices if given.wanted == "auto" and not given.rank}
    if len(left_to_us) > 1:
        found.append(f"the run did not stay on one device: {', '.join(show(chosen, 20) for chosen in left_to_us)}")
    return found


def gpu_errors(summary: RunSummary) -> list[str]:
    """Return a sentence for each kind of error that the driver reported of a GPU while the run went on."""
    found = []
    for (uuid, xid), count in summary.xids.items():
        gpu = summary.gpus.get(uuid)
        meaning = f" ({_XIDS[xid]})" if xid in _XIDS else ""
        often = f", {count} times" if count > 1 else ""
        found.append(f"{show(gpu.label) if gpu else show(uuid, 60)} reported Xid {xid}{meaning}{often}")
    return found


def frames(failure: ScenarioFailed) -> str:
    """Return the traceback of a failure without its first words and what the failure says, for whoever tells that itself."""
    _, *lines = failure.traceback.splitlines() or [""]
    said = failure.message.splitlines() or [""]
    ends = [at for at, line in enumerate(lines) if not line.startswith((" ", "…"))]
    name = f"{failure.type}: {said[0]}" if said[0] else failure.type
    end = next((at for at in ends if lines[at].endswith(name)), [*ends, len(lines)][0])  # there may be others before it
    return "\n".join([*lines[:end], *lines[end + len(said) :]])
