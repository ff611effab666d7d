"""What a summary holds in words for people: a finding, how far a run is, and its last values.

Every view tells them so.
"""

from collections.abc import Sequence

from tuilab.record.blocks import NoiseFloor
from tuilab.record.events import AGAIN, Alerted, Progressed
from tuilab.record.gpus.own_gpus import OwnGpu, held_lines, label_of, own_gpus
from tuilab.record.series import Series
from tuilab.record.states import FINAL_STATES, RunState
from tuilab.record.summary import RunSummary
from tuilab.record.summary_parts import Claim, GpuTenant
from tuilab.record.verdicts import Verdict, is_about_other_values
from tuilab.text.display import join, join_first, percent, plural, shorten, show
from tuilab.text.words import clock, extent, format_number, size, unit_of

RACING = "ms of racing"  # what a race counts
PROCESSES = (
    "processes"  # what a repeat of a race of commands counts: too few and too long for a rate
)
_NEIGHBOURS = 5  # on a GPU, that are told of one by one
_ENDS = 12  # of curves
_NAMED = 3  # arms that noise is of
_GIVEN = ("allocated_bytes", "allocated_peak_bytes")

# NVIDIA's numbers; those of 13, 31 and 43 are mostly a program's own doing, the others the machine's.
_XIDS = {
    13: "a kernel did something invalid, such as writing beyond the memory",
    31: "a kernel used an invalid memory address",
    43: "the work of a program was stopped after an error",
    45: "the work of a program was stopped from outside, or after an error",
    48: "uncorrectable memory error",
    62: "the controller of the GPU halted",
    63: "faulty memory was taken out of use",
    64: "faulty memory could not be taken out of use",
    74: "NVLink error",
    79: "the GPU has fallen off the bus",
    92: "very many corrected memory errors",
    94: "uncorrectable memory error, limited to one program",
    95: "uncorrectable memory error, not limited to one program",
    119: "the processor of the GPU (GSP) does not answer",
}


def lost_words(summary: RunSummary) -> str:
    """Return why a run is lost, as far as that can be told: one of a cluster is brought here by somebody."""
    node = summary.run.node if summary.run else ""
    who = (
        f"its node ({show(node, 60)}), or the process that copied it from there,"
        if node
        else "its supervisor"
    )
    return f"{who} is gone, and nothing is known after the last record"


def why_not_judged(claim: Claim, summary: RunSummary) -> str:
    """Return why a claim has no verdict, as far as the record tells."""
    if not summary.is_over:
        return "the recorded data has no end of the run"
    if summary.state != RunState.SUCCEEDED:
        return f"the run ended early ({summary.state})"
    if why := summary.unavailable.get("verdicts"):
        return why
    return "its verdict was not recorded" if claim.measured or claim.declared else "not measured"


def noise_words(found: NoiseFloor | None) -> str:
    """Return a noise floor as `noise floor ±1.9 % (sum against itself)`; nothing if there is none."""
    if not found:
        return ""
    words = f"noise floor ±{percent(found.share)}"
    arms = [show(arm, 60) for arm in (found.arm, *found.others) if arm]
    if not arms:
        return words
    named = arms[:_NAMED]
    if len(arms) > _NAMED:
        named.append(f"{len(arms) - _NAMED} more")
    return f"{words} ({' and '.join(named)}{', each' if len(arms) > 1 else ''} against itself)"


def reason_words(verdict: str, why: str) -> str:
    """Return why a verdict is what it is: `needs: --compile`, or `n/a: claimed for rows=500`."""
    if is_about_other_values(verdict, why):
        return f"n/a: {why}"
    if verdict == Verdict.NOT_TESTABLE:
        return f"needs: {why}"
    return why


def for_how_long(lasted: str, state: str) -> str:
    """Return `in 3 s` of a run that is over, `for 3 s` of one that goes on; nothing while it waits."""
    return (
        "" if state == RunState.QUEUED else f"{'in' if state in FINAL_STATES else 'for'} {lasted}"
    )


def progress_words(summary: RunSummary) -> str:
    """Return `212/500 steps  35/s  eta 8 s`, `212 steps  35/s`, or how much of a race is done."""
    return "  ".join(filter(None, (done_words(summary), rate_words(summary))))


def rate_words(summary: RunSummary) -> str:
    """Return `35/s  eta 8 s`; no rate until two points are known.

    When the run will be over, its steps tell only where all of them are of its one repeat, and not of a round of several.
    """
    now, first = summary.progress, summary.first_progress
    if not (
        now
        and first
        and now.unit not in (RACING, PROCESSES)
        and now.t > first.t
        and now.done > first.done
    ):
        return ""
    rate = (now.done - first.done) / ((now.t - first.t) / 1e9)
    tells_end = summary.planned_repeats <= 1 and is_whole(now)
    return f"{rate:.3g}/s" + (f"  eta {clock((now.total - now.done) / rate)}" if tells_end else "")


def is_whole(progress: Progressed) -> bool:
    """Say whether all that is to be done is counted, and not one round of several."""
    return progress.total > 0 and "," not in progress.unit


def done_words(summary: RunSummary) -> str:
    """Return how much is done of what is counted now: `212/500 steps`, `timing 24 %`; nothing where nothing is."""
    now = summary.progress
    if now is None:
        return ""
    if now.unit == RACING:
        return (
            f"timing {min(now.done / now.total, 1.0):.0%}".replace("%", " %")
            if now.total
            else "timing"
        )
    unit = show(now.unit, 24)
    return (
        f"{now.done}/{now.total} {unit}" if now.total else plural(now.done, unit.removesuffix("s"))
    )


def cut_words(summary: RunSummary) -> str:
    """Return how far a command came that did not succeed, by what it had printed; of others that is not known.

    One that succeeded may print each tenth step alone; a scenario's progress is written ten times a second, and its last may be
    missing.
    """
    now = summary.progress
    has_more = now and is_whole(now) and now.done < now.total - 1  # or it counts from 0
    is_cut = (
        summary.run and summary.run.command and summary.state != RunState.SUCCEEDED and has_more
    )
    return done_words(summary) if is_cut else ""


def seconds_left(summary: RunSummary, elapsed_s: float) -> float | None:
    """Return how long a run will take yet, by the repeats that are done; None where that is not known."""
    ended = [
        worker.t for name in summary.finished_repeats() if (worker := summary.workers[name].exited)
    ]
    if (
        summary.run is None
        or summary.run.budget_s is not None
        or not 0 < len(ended) < summary.planned_repeats
    ):
        return None
    whole_s = (max(ended) - summary.first_t) / 1e9 / len(ended) * summary.planned_repeats
    return max(whole_s - elapsed_s, 0.0)


def repeat_words(summary: RunSummary) -> str:
    """Return which repeat runs, or was the last: `repeat 2 of 6`, or how long there may be more; nothing where there is one."""
    repeats = [
        worker.started.repeat
        for worker in summary.workers.values()
        if worker.started and not worker.started.arm
    ]
    if summary.run is None or summary.planned_repeats <= 1 or not repeats:
        return ""
    budget = summary.run.budget_s
    return f"repeat {max(repeats) + 1}" + (
        f" of {summary.planned_repeats}" if budget is None else f", budget {budget:g} s"
    )


def last_values(summary: RunSummary) -> list[str]:
    """Return the last value of the few series that were written last."""
    latest = sorted(summary.series.values(), key=lambda series: series.last_t)[-3:]
    return [
        f"{shorten(one.name, 20)}{' ' + shorten(one.arm, 12) if one.arm else ''} {format_number(one.last, unit_of(one.name))}"
        for one in latest
    ]


def ends_of_curves(summary: RunSummary) -> dict[str, str]:
    """Return the last values of the curves of a command, but for the times of its steps, which are told as a whole.

    That of an arm that ran once more as its control tells what chance does, and is left to the charts.
    """
    if summary.run is None or not summary.run.command:
        return {}
    controls = {f"{race.base} {AGAIN}" for _, race in summary.races}
    told = [one for one in summary.series.values() if one.arm not in controls]
    ends: dict[tuple[str, str], list[Series]] = {}  # of each process that has the curve
    for one in told:
        if one.count and unit_of(one.name) != "ms":
            ends.setdefault((one.name, one.arm), []).append(one)
    lasts: dict[str, str] = {}
    for (name, arm), found in list(ends.items())[:_ENDS]:
        owners = [show(owner, 40) for owner in summary.owners_of([one.writer for one in found])]
        lasts[f"last {show(name, 60)} {show(arm, 60)}".strip()] = extent(
            (one.last for one in found), unit_of(name), 4, owners
        )
    return lasts


def node_words(summary: RunSummary) -> str:
    """Return on which node of a cluster the run was, and its host name where that is another; nothing of a run without one."""
    run = summary.run
    if run is None or not run.node:
        return ""
    host = run.supervisor.host
    return show(run.node, 60) + (f", host {show(host, 60)}" if host not in ("", run.node) else "")


def device_words(summary: RunSummary) -> str:
    """Return which GPU the scenario was given first, and why that one; nothing where it asked for none, or got the CPU."""
    first = next(iter(summary.devices), None)
    return (
        ""
        if first is None or first.chosen == "cpu"
        else f"{show(first.chosen, 20)}, {show(first.why, 200)}"
    )


def ranks_words(summary: RunSummary) -> str:
    """Return which rank ran on which of several nodes, and how well their clocks were held against each other."""
    nodes = summary.run.nodes if summary.run else []
    where = dict(sorted((one.rank, one.node) for one in summary.ranks.values()))
    if not where:
        return (
            f"none yet; they will run on {join([show(node, 60) for node in nodes])}"
            if nodes
            else ""
        )
    told = ", ".join(f"{rank} on {show(node, 60)}" for rank, node in where.items())
    error_ms = max(one.clock_error_ns for one in summary.ranks.values()) / 1e6
    return f"{told}; clock error between the nodes: at most {format_number(error_ms, digits=2)} ms"


def device_notices(summary: RunSummary) -> list[str]:
    """Return what is to be known of the device before anything that was measured on it is read."""
    found = [
        show(notice, 1000)
        for notice in dict.fromkeys(given.notice for given in summary.devices)
        if notice
    ]
    left_to_us = {
        given.chosen: None for given in summary.devices if given.wanted == "auto" and not given.rank
    }
    if len(left_to_us) > 1:
        found.append(
            f"the run used more than one device: {', '.join(show(chosen, 20) for chosen in left_to_us)}"
        )
    return found


def dropped_words(summary: RunSummary) -> dict[str, str]:
    """Return, by stream, how much of what a run printed was not kept; nothing of one that was kept whole."""
    found = {}
    for stream, output in summary.outputs.items():
        if dropped := output.bytes_total - output.bytes_head - output.bytes_tail:
            found[stream] = (
                f"{show(stream)}: {dropped} of {output.bytes_total} bytes in the middle were dropped"
            )
    return found


def gpu_errors(summary: RunSummary) -> list[str]:
    """Return a sentence for each kind of error that the driver reported of a GPU while the run went on."""
    found = []
    for (uuid, xid), count in summary.xids.items():
        gpu = summary.gpus.get(uuid)
        meaning = f" ({_XIDS[xid]})" if xid in _XIDS else ""
        often = f", {count} times" if count > 1 else ""
        found.append(
            f"{show(gpu.label) if gpu else show(uuid, 60)} reported Xid {xid}{meaning}{often}"
        )
    return found


def leftover_words(summary: RunSummary) -> str:
    """Return which processes the run left behind, which were ended."""
    names = join_first(summary.leftovers, 3, summary.leftover_count)
    return f"ended {plural(summary.leftover_count, 'process', 'processes')} that the run left behind: {names}"


def alert_words(alert: Alerted) -> str:
    """Return what a run was alerted of, and whose it is where it has several processes."""
    return show(f"{alert.arm}: {alert.text}" if alert.arm else alert.text)


def unmeasured(summary: RunSummary) -> list[tuple[str, str]]:
    """Return what was not measured, and why; a GPU is called as everywhere else, and not by its UUID."""
    found = []
    for what, why in {**summary.unavailable, **summary.left_out}.items():
        uuid, _, metric = what.partition(" ")
        gpu = summary.gpus.get(uuid)
        found.append((f"{gpu.label} {metric}".strip() if gpu else what, why))
    found += [
        (f"processes on {node}", "only those of the first node are watched")
        for node in _other_nodes(summary)
    ]
    return [(show(what), show(why)) for what, why in found]


def _other_nodes(summary: RunSummary) -> list[str]:
    return summary.run.nodes[1:] if summary.run else []


def gpu_rows(summary: RunSummary) -> list[tuple[str, str]]:
    """Return of each GPU of the run how much of it was used, by this run, and who else was there, as (name, words)."""
    rows = []
    for gpu in own_gpus(summary):
        name, model = label_of(gpu, summary), f", {show(gpu.found.name)}" if gpu.found else ""
        used = summary.resources.get(f"{gpu.nvmls} memory_used_bytes")
        rows.append(
            (
                name,
                f"at most {size(used.high or 0)} used, by all processes{model}"
                if used
                else f"memory n/a{model}",
            )
        )
        rows.append(("  this run", _own_memory(summary, gpu)))
        rows.append(("  others", others_words(summary, gpu)))
    return rows


def _own_memory(summary: RunSummary, gpu: OwnGpu) -> str:
    """Return what the run had of a GPU: by the driver's word, and torch's own, which leaves out what CUDA itself takes."""
    seen = summary.resources.get(f"{gpu.nvmls} memory_tree_bytes")
    reserved, given = (
        max(
            (
                one.high or 0
                for metric in metrics
                for one in held_lines(summary, gpu.torchs, metric)
            ),
            default=None,
        )
        for metrics in (
            ("reserved_bytes", *_GIVEN),
            _GIVEN,
        )  # what was given out was reserved, of which there are only looks
    )
    torchs = (
        f"torch reserved {size(reserved)}, allocated {size(given)}"
        if reserved is not None and given is not None
        else ""
    )
    if seen and torchs and (seen.high or 0) < (reserved or 0):  # the driver is asked now and then
        return f"at most: {torchs}; the driver reported {size(seen.high or 0)}"
    if seen:
        return f"at most {size(seen.high or 0)}" + (f" ({torchs})" if torchs else "")
    unknown = f"{'memory of CUDA itself: ' if torchs else ''}n/a: {_why_no_processes(summary, gpu)}"
    return "; ".join(filter(None, [f"at most: {torchs}" if torchs else "", unknown]))


def others_words(summary: RunSummary, gpu: OwnGpu) -> str:
    """Return who else was on a GPU: user, pid, memory."""
    found = summary.neighbours.get(gpu.nvmls)
    if found is None or not found.known:
        is_known = f"{gpu.nvmls} foreign_processes" in summary.resources
        return (
            "no other process was seen" if is_known else f"n/a: {_why_no_processes(summary, gpu)}"
        )
    known = sorted(
        found.known.values(), key=lambda one: (one.seen_t != found.told_t, -(one.most_bytes or 0))
    )
    words = [_neighbour(one, is_there=one.seen_t == found.told_t) for one in known[:_NEIGHBOURS]]
    hidden = max(len(known), found.most) - len(words)
    return ", ".join([*words, *([f"and {hidden} more"] if hidden > 0 else [])])


def neighbour_notes(summary: RunSummary) -> list[str]:
    """Return a sentence for each GPU of the run that others were on, too."""
    shared = [
        gpu
        for gpu in own_gpus(summary)
        if gpu.nvmls in summary.neighbours and summary.neighbours[gpu.nvmls].known
    ]
    return [f"others on {label_of(gpu, summary)}: {others_words(summary, gpu)}" for gpu in shared]


def company_words(summary: RunSummary) -> str:
    """Return who computes beside a run on its GPUs, by user, as `bob 2 processes 11 GiB on GPU 0`; of one that is over, did."""
    parts = []
    for gpu in own_gpus(summary):
        if found := summary.neighbours.get(gpu.nvmls):
            there = [
                one for one in found.known.values() if summary.is_over or one.seen_t == found.told_t
            ]
            several = f", at most {found.most} at a time" if len(there) > found.most else ""
            parts += [f"{words} on {label_of(gpu, summary)}{several}" for words in _by_user(there)]
    return ", ".join(parts)


def _by_user(there: Sequence[GpuTenant]) -> list[str]:
    by_user: dict[str, list[GpuTenant]] = {}
    for one in there:
        by_user.setdefault(show(one.tenant.user, 60) or "user n/a", []).append(one)
    return [
        f"{user} {plural(len(found), 'process', 'processes')} {_memory(found)}"
        for user, found in by_user.items()
    ]


def _memory(found: Sequence[GpuTenant]) -> str:
    known = [one.most_bytes for one in found if one.most_bytes is not None]
    return size(sum(known)) if known else "memory n/a"


def _neighbour(one: GpuTenant, *, is_there: bool) -> str:
    tenant = one.tenant
    unknown = f"pid {tenant.pid} (user n/a: {show(tenant.why, 100) or 'no reason given'})"
    who = f"{show(tenant.user, 60)} (pid {tenant.pid})" if tenant.user else unknown
    return f"{who} {'memory n/a' if one.most_bytes is None else size(one.most_bytes)}{'' if is_there else ' (gone later)'}"


def _why_no_processes(summary: RunSummary, gpu: OwnGpu) -> str:
    """Return why it is not known who is on a GPU."""
    known = summary.unavailable
    if f"{gpu.nvmls} foreign_processes" in summary.resources:
        return "the driver listed no process of this run"
    reasons = (known.get(what, "") for what in ("gpu processes", f"{gpu.nvmls} processes", "gpu"))
    return show(next(filter(None, reasons), "the driver did not report it"))
