"""What a summary holds in words for people: a finding, a failure, how far a run is, and its last values.

Every view tells them so.
"""

from tuilab.record.events import ScenarioFailed
from tuilab.record.summary import Claim, RunSummary
from tuilab.text import brief, percent, show
from tuilab.words import number, unit_of


def evidence(claim: Claim) -> str:
    """Return the estimate with its interval, or what was measured, in one line."""
    reached = claim.verdict
    if reached is None:
        return "nothing was measured for it"
    if claim.declared is not None and reached.estimate is not None:
        low, high = (brief(end) if end is not None else "n/a" for end in (reached.low, reached.high))
        bound = f"{claim.declared.op.replace('_', ' ')} {claim.declared.bound:g}"
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


def last_values(summary: RunSummary) -> list[str]:
    """Return the last value of the few series that were written last."""
    latest = sorted(summary.series.values(), key=lambda series: series.last_t)[-3:]
    return [
        f"{show(one.name, 20)}{' ' + show(one.arm, 12) if one.arm else ''} {number(one.last, unit_of(one.name))}"
        for one in latest
    ]


def frames(failure: ScenarioFailed) -> str:
    """Return the traceback of a failure without its first words and what the failure says, for whoever tells that itself."""
    _, *lines = failure.traceback.splitlines() or [""]
    said = failure.message.splitlines() or [""]
    ends = [at for at, line in enumerate(lines) if not line.startswith((" ", "…"))]
    name = f"{failure.type}: {said[0]}" if said[0] else failure.type
    end = next((at for at in ends if lines[at].endswith(name)), [*ends, len(lines)][0])  # there may be others before it
    return "\n".join([*lines[:end], *lines[end + len(said) :]])
