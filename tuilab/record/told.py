"""What a summary holds in words for people: a finding, a failure, how far a run is, and its last values.

Every view tells them so.
"""

from tuilab.record.events import ScenarioFailed
from tuilab.record.summary import Claim, RunSummary
from tuilab.text import brief, brief_beside, percent, show
from tuilab.words import number, unit_of


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


def frames(failure: ScenarioFailed) -> str:
    """Return the traceback of a failure without its first and last words, for whoever tells the failure itself."""
    _, *lines = failure.traceback.splitlines() or [""]
    end = next((at for at, line in enumerate(lines) if not line.startswith((" ", "…"))), len(lines))
    said = max(len(failure.message.splitlines()), 1)
    return "\n".join([*lines[:end], *lines[end + said :]])
