"""Describes parts of a summary in words: findings, progress, last values, GPUs.

All views use these words, so that they agree with each other.
"""

from collections.abc import Sequence

from tuilab.record.blocks import NoiseFloor
from tuilab.record.events import AGAIN, Alerted, Progressed
from tuilab.record.gpus.own_gpus import OwnGpu, held_lines, label_of, own_gpus
from tuilab.record.series import Series
from tuilab.record.states import FINAL_STATES, RunState
from tuilab.record.summary import RunSummary
from tuilab.record.summary_parts import Claim, GpuTenant, GpuTenants
from tuilab.record.tuning.stages import is_tuning, stage_words
from tuilab.record.verdicts import Verdict, is_about_other_values
from tuilab.text.display import join, join_first, percent, plural, shorten, show
from tuilab.text.words import clock, extent, format_number, size, unit_of

# units of progress
RACING = "ms of racing"  # of a race
PROCESSES = "processes"  # of a race of commands: too few and too long for a rate

_TENANTS_SHOWN = 5  # processes of others that are described one by one, for each GPU
_CURVES_SHOWN = 12
_NOISE_ARMS_SHOWN = 3
_LAST_VALUES_SHOWN = 3
_ALLOCATED = ("allocated_bytes", "allocated_peak_bytes")
# Allocated bytes were reserved before, and the reserved bytes are known only from samples.
_RESERVED = ("reserved_bytes", *_ALLOCATED)

# NVIDIA's numbers. The program causes most errors 13, 31 and 43, the machine the others.
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

# ---- findings


def lost_words(summary: RunSummary) -> str:
    """Return why a run is lost, as far as that is known.

    The run of a cluster is copied to this machine by a process of its own.
    """
    node = summary.run.node if summary.run else ""
    if node:
        owner = f"its node ({show(node, 60)}), or the process that copied it from there,"
    else:
        owner = "its supervisor"
    return f"{owner} is gone, and nothing is known after the last record"


def why_not_judged(claim: Claim, summary: RunSummary) -> str:
    """Return why a claim has no verdict, as far as the records show."""
    if not summary.is_over:
        return "the recorded data has no end of the run"
    if summary.state != RunState.SUCCEEDED:
        return f"the run ended early ({summary.state})"
    reason = summary.unavailable.get("verdicts")
    if reason:
        return reason
    if claim.measured or claim.declared:
        return "its verdict was not recorded"
    return "not measured"


def noise_words(noise: NoiseFloor | None) -> str:
    """Return a noise floor as `noise floor ±1.9 % (sum against itself)`; empty if there is none."""
    if not noise:
        return ""
    words = f"noise floor ±{percent(noise.share)}"
    arms = [show(arm, 60) for arm in (noise.arm, *noise.others) if arm]
    if not arms:
        return words
    shown = arms[:_NOISE_ARMS_SHOWN]
    if len(arms) > _NOISE_ARMS_SHOWN:
        shown.append(f"{len(arms) - _NOISE_ARMS_SHOWN} more")
    each = ", each" if len(arms) > 1 else ""
    return f"{words} ({' and '.join(shown)}{each} against itself)"


def reason_words(verdict: str, reason: str) -> str:
    """Return the reason of a verdict as `needs: --compile`, or `n/a: claimed for rows=500`."""
    if is_about_other_values(verdict, reason):
        return f"n/a: {reason}"
    if verdict == Verdict.NOT_TESTABLE:
        return f"needs: {reason}"
    return reason


def for_how_long(elapsed: str, state: str) -> str:
    """Return `in 3 s` for a finished run, `for 3 s` for a running one; empty for a queued one."""
    if state == RunState.QUEUED:
        return ""
    if state in FINAL_STATES:
        return f"in {elapsed}"
    return f"for {elapsed}"


def alert_words(alert: Alerted) -> str:
    """Return the text of an alert, with its arm if the run has several processes."""
    if alert.arm:
        return show(f"{alert.arm}: {alert.text}")
    return show(alert.text)


def leftover_words(summary: RunSummary) -> str:
    """Return which processes the run left behind; they were ended."""
    count = plural(summary.leftover_count, "process", "processes")
    names = join_first(summary.leftovers, 3, summary.leftover_count)
    return f"ended {count} that the run left behind: {names}"


def dropped_words(summary: RunSummary) -> dict[str, str]:
    """Return, by stream, how much of a run's output was dropped; no entry for a complete output."""
    words = {}
    for stream, output in summary.outputs.items():
        dropped = output.bytes_total - output.bytes_head - output.bytes_tail
        if dropped:
            total = output.bytes_total
            words[stream] = f"{show(stream)}: {dropped} of {total} bytes in the middle were dropped"
    return words


def unmeasured(summary: RunSummary) -> list[tuple[str, str]]:
    """Return what was not measured, and why; a GPU has its label instead of its UUID."""
    pairs = []
    for what, why in {**summary.unavailable, **summary.left_out}.items():
        uuid, _, metric = what.partition(" ")
        gpu = summary.gpus.get(uuid)
        name = f"{gpu.label} {metric}".strip() if gpu else what
        pairs.append((name, why))
    other_nodes = summary.run.nodes[1:] if summary.run else []
    for node in other_nodes:
        pairs.append((f"processes on {node}", "only those of the first node are watched"))
    return [(show(what), show(why)) for what, why in pairs]


# ---- progress


def progress_words(summary: RunSummary) -> str:
    """Return `212/500 steps  35/s  eta 8 s`, `212 steps  35/s`, or how much of a race is done."""
    words = [done_words(summary), rate_words(summary)]
    return "  ".join(part for part in words if part)


def done_words(summary: RunSummary) -> str:
    """Return how much is done: `212/500 steps`, `timing 24 %`; nothing if there is no progress."""
    progress = summary.progress
    if progress is None or is_tuning(summary):  # a tuning counts its processes with its stage
        return ""
    if progress.unit == RACING:
        if not progress.total:
            return "timing"
        share = min(progress.done / progress.total, 1.0)
        return f"timing {share:.0%}".replace("%", " %")
    unit = show(progress.unit, 24)
    if progress.total:
        return f"{progress.done}/{progress.total} {unit}"
    return plural(progress.done, unit.removesuffix("s"))


def rate_words(summary: RunSummary) -> str:
    """Return `35/s  eta 8 s`; nothing until two points are known.

    The steps predict the end of the run only if the run has one repeat and all steps are counted,
    not only those of one round.
    """
    last = summary.progress
    first = summary.first_progress
    if last is None or first is None or last.unit in (RACING, PROCESSES):
        return ""
    if is_tuning(summary):
        return ""
    if last.t <= first.t or last.done <= first.done:
        return ""
    rate = (last.done - first.done) / ((last.t - first.t) / 1e9)
    if summary.planned_repeats > 1 or not is_whole(last):
        return f"{rate:.3g}/s"
    return f"{rate:.3g}/s  eta {clock((last.total - last.done) / rate)}"


def is_whole(progress: Progressed) -> bool:
    """Say whether the total is known and counts everything, not one round of several."""
    return progress.total > 0 and "," not in progress.unit


def cut_words(summary: RunSummary) -> str:
    """Return how far a command came that did not succeed, by what it printed; else nothing.

    A command that succeeded may print only every tenth step. The progress of a scenario is written
    ten times a second, and its last one may be missing.
    """
    if summary.run is None or not summary.run.command or summary.state == RunState.SUCCEEDED:
        return ""
    progress = summary.progress
    if progress is None or not is_whole(progress):
        return ""
    is_cut = progress.done < progress.total - 1  # the last step is total - 1 if it counts from 0
    return done_words(summary) if is_cut else ""


def seconds_left(summary: RunSummary, elapsed_s: float) -> float | None:
    """Return how long the run will still take, by its finished repeats.

    None for a run with a time budget, before the first repeat has ended, and after the last one.
    """
    if summary.run is None or summary.run.budget_s is not None:
        return None
    end_times = []
    for name in summary.finished_repeats():
        exited = summary.workers[name].exited
        if exited:
            end_times.append(exited.t)
    if not 0 < len(end_times) < summary.planned_repeats:
        return None
    finished_s = (max(end_times) - summary.first_t) / 1e9
    total_s = finished_s / len(end_times) * summary.planned_repeats
    return max(total_s - elapsed_s, 0.0)


def repeat_words(summary: RunSummary) -> str:
    """Return the newest repeat: `repeat 2 of 6`, or `repeat 2, budget 30 s`.

    Empty for a run with one repeat, and before the first repeat has started. For a tuning, whose
    planned repeats are only a limit, it is the stage: `comparison, 31 processes`.
    """
    repeats = []
    for worker in summary.workers.values():
        if worker.started and not worker.started.arm:
            repeats.append(worker.started.repeat)
    if is_tuning(summary):
        return stage_words(summary)
    if summary.run is None or summary.planned_repeats <= 1 or not repeats:
        return ""
    words = f"repeat {max(repeats) + 1}"
    if summary.run.budget_s is None:
        return f"{words} of {summary.planned_repeats}"
    return f"{words}, budget {summary.run.budget_s:g} s"


# ---- last values


def last_values(summary: RunSummary) -> list[str]:
    """Return the last value of the few series that were written last."""
    by_time = sorted(summary.series.values(), key=lambda series: series.last_t)
    words = []
    for series in by_time[-_LAST_VALUES_SHOWN:]:
        name = shorten(series.name, 20)
        if series.arm:
            name += f" {shorten(series.arm, 12)}"
        words.append(f"{name} {format_number(series.last, unit_of(series.name))}")
    return words


def ends_of_curves(summary: RunSummary) -> dict[str, str]:
    """Return the last values of the curves of a command, by `last NAME ARM`.

    Times are left out: the times of the steps are reported as a whole. The A/A control of an arm
    shows only chance, and is left to the charts. The processes of a tuning end too early to show
    anything by their last values.
    """
    if summary.run is None or not summary.run.command or is_tuning(summary):
        return {}
    controls = {f"{race.base} {AGAIN}" for _, race in summary.races}
    curves: dict[tuple[str, str], list[Series]] = {}  # name, arm: one series of each process
    for series in summary.series.values():
        is_shown = series.arm not in controls and unit_of(series.name) != "ms"
        if is_shown and series.count:
            curves.setdefault((series.name, series.arm), []).append(series)
    words: dict[str, str] = {}
    for (name, arm), of_processes in list(curves.items())[:_CURVES_SHOWN]:
        writers = [series.writer for series in of_processes]
        owners = [show(owner, 40) for owner in summary.owners_of(writers)]
        values = [series.last for series in of_processes]
        label = f"last {show(name, 60)} {show(arm, 60)}".strip()
        words[label] = extent(values, unit_of(name), 4, owners)
    return words


# ---- nodes and devices


def node_words(summary: RunSummary) -> str:
    """Return the node of a cluster that the run was on, with its host name if that differs.

    Empty for a run that was on no cluster.
    """
    run = summary.run
    if run is None or not run.node:
        return ""
    words = show(run.node, 60)
    host = run.supervisor.host
    if host in ("", run.node):
        return words
    return f"{words}, host {show(host, 60)}"


def ranks_words(summary: RunSummary) -> str:
    """Return which rank ran on which of several nodes, and how well their clocks were aligned.

    Before a rank has started, name the planned nodes; empty if the run has one node.
    """
    if not summary.ranks:
        nodes = summary.run.nodes if summary.run else []
        if not nodes:
            return ""
        return f"none yet; they will run on {join([show(node, 60) for node in nodes])}"
    nodes_by_rank = sorted((placed.rank, placed.node) for placed in summary.ranks.values())
    node_of_rank = dict(nodes_by_rank)
    places = [f"{rank} on {show(node, 60)}" for rank, node in node_of_rank.items()]
    error_ms = max(placed.clock_error_ns for placed in summary.ranks.values()) / 1e6
    error = format_number(error_ms, digits=2)
    return f"{', '.join(places)}; clock error between the nodes: at most {error} ms"


def device_words(summary: RunSummary) -> str:
    """Return which GPU the scenario was given first, and why that one.

    Nothing if the scenario asked for no device, or got the CPU.
    """
    if not summary.devices:
        return ""
    first = list(summary.devices)[0]
    if first.chosen == "cpu":
        return ""
    return f"{show(first.chosen, 20)}, {show(first.why, 200)}"


def device_notices(summary: RunSummary) -> list[str]:
    """Return what a reader must know of the device before reading anything measured on it."""
    notices = dict.fromkeys(device.notice for device in summary.devices)  # each of them once
    sentences = [show(notice, 1000) for notice in notices if notice]
    automatic: dict[str, None] = {}  # devices that tuilab chose
    for device in summary.devices:
        if device.wanted == "auto" and not device.rank:
            automatic[device.chosen] = None
    if len(automatic) > 1:
        names = ", ".join(show(chosen, 20) for chosen in automatic)
        sentences.append(f"the run used more than one device: {names}")
    return sentences


def gpu_errors(summary: RunSummary) -> list[str]:
    """Return a sentence for each kind of GPU error (Xid: NVIDIA's number) during the run."""
    sentences = []
    for (uuid, xid), count in summary.xids.items():
        gpu = summary.gpus.get(uuid)
        name = show(gpu.label) if gpu else show(uuid, 60)
        sentence = f"{name} reported Xid {xid}"
        if xid in _XIDS:
            sentence += f" ({_XIDS[xid]})"
        if count > 1:
            sentence += f", {count} times"
        sentences.append(sentence)
    return sentences


# ---- memory of the GPUs, and other processes on them


def gpu_rows(summary: RunSummary) -> list[tuple[str, str]]:
    """Return rows of (name, words) for each GPU of the run.

    They show its memory in use, the part of this run, and the other processes there.
    """
    rows = []
    for gpu in own_gpus(summary):
        model = f", {show(gpu.nvml.name)}" if gpu.nvml else ""
        used = summary.resources.get(f"{gpu.nvml_uuid} memory_used_bytes")
        if used:
            memory = f"at most {size(used.high or 0)} used, by all processes{model}"
        else:
            memory = f"memory n/a{model}"
        rows.append((label_of(gpu, summary), memory))
        rows.append(("  this run", _own_memory(summary, gpu)))
        rows.append(("  others", others_words(summary, gpu)))
    return rows


def _own_memory(summary: RunSummary, gpu: OwnGpu) -> str:
    """Return the GPU memory of the run, as the driver and as torch report it.

    Torch's number leaves out what CUDA itself takes.
    """
    by_driver = summary.resources.get(f"{gpu.nvml_uuid} memory_tree_bytes")
    reserved_bytes = _most_held(summary, gpu, _RESERVED)
    allocated_bytes = _most_held(summary, gpu, _ALLOCATED)
    by_torch = ""
    if reserved_bytes is not None and allocated_bytes is not None:
        by_torch = f"torch reserved {size(reserved_bytes)}, allocated {size(allocated_bytes)}"
    if by_driver:
        driver_bytes = by_driver.high or 0
        if not by_torch:
            return f"at most {size(driver_bytes)}"
        if driver_bytes < (reserved_bytes or 0):  # the driver is asked only now and then
            return f"at most: {by_torch}; the driver reported {size(driver_bytes)}"
        return f"at most {size(driver_bytes)} ({by_torch})"
    unknown = f"n/a: {_why_no_processes(summary, gpu)}"
    if by_torch:
        return f"at most: {by_torch}; memory of CUDA itself: {unknown}"
    return unknown


def _most_held(summary: RunSummary, gpu: OwnGpu, metrics: Sequence[str]) -> float | None:
    """Return the most bytes among some metrics of torch; None if torch reported none."""
    most = None
    for metric in metrics:
        for series in held_lines(summary, gpu.torch_uuid, metric):
            held_bytes = series.high or 0
            if most is None or held_bytes > most:
                most = held_bytes
    return most


def others_words(summary: RunSummary, gpu: OwnGpu) -> str:
    """Return the other processes that were on a GPU (user, pid, memory), or why they are not known.

    Those that are there now come first, then those with the most memory. Only five are described.
    """
    tenants = summary.neighbours.get(gpu.nvml_uuid)
    if tenants is None or not tenants.processes:
        if f"{gpu.nvml_uuid} foreign_processes" in summary.resources:
            return "no other process was seen"
        return f"n/a: {_why_no_processes(summary, gpu)}"

    def rank(tenant: GpuTenant) -> tuple[bool, int]:
        return not tenants.has_now(tenant), -(tenant.most_bytes or 0)

    processes = sorted(tenants.processes.values(), key=rank)
    words = []
    for tenant in processes[:_TENANTS_SHOWN]:
        words.append(_tenant_words(tenant, is_there=tenants.has_now(tenant)))
    hidden = max(len(processes), tenants.most) - len(words)
    if hidden > 0:
        words.append(f"and {hidden} more")
    return ", ".join(words)


def _tenant_words(tenant: GpuTenant, *, is_there: bool) -> str:
    """Return the owner of a process on a GPU, and its memory; say if it is gone."""
    process = tenant.tenant
    if process.user:
        owner = f"{show(process.user, 60)} (pid {process.pid})"
    else:
        reason = show(process.why, 100) or "no reason given"
        owner = f"pid {process.pid} (user n/a: {reason})"
    memory = "memory n/a" if tenant.most_bytes is None else size(tenant.most_bytes)
    if is_there:
        return f"{owner} {memory}"
    return f"{owner} {memory} (gone later)"


def neighbour_notes(summary: RunSummary) -> list[str]:
    """Return a sentence for each GPU of the run that other processes used as well."""
    sentences = []
    for gpu in own_gpus(summary):
        tenants = summary.neighbours.get(gpu.nvml_uuid)
        if tenants and tenants.processes:
            words = others_words(summary, gpu)
            sentences.append(f"others on {label_of(gpu, summary)}: {words}")
    return sentences


def company_words(summary: RunSummary) -> str:
    """Return which users share the GPUs of a run, as `bob 2 processes 11 GiB on GPU 0`.

    For a run that is over, these are all users that ever did.
    """
    parts = []
    for gpu in own_gpus(summary):
        tenants = summary.neighbours.get(gpu.nvml_uuid)
        if tenants:
            label = label_of(gpu, summary)
            parts += _users_of_gpu(tenants, label, is_over=summary.is_over)
    return ", ".join(parts)


def _users_of_gpu(tenants: GpuTenants, label: str, *, is_over: bool) -> list[str]:
    """Return, for each user of a GPU, how many processes there are and their memory.

    During a run only the processes that are there now count, afterwards all that were seen.
    """
    count = 0
    by_user: dict[str, list[GpuTenant]] = {}
    for tenant in tenants.processes.values():
        if is_over or tenants.has_now(tenant):
            user = show(tenant.tenant.user, 60) or "user n/a"
            by_user.setdefault(user, []).append(tenant)
            count += 1
    at_a_time = f", at most {tenants.most} at a time" if count > tenants.most else ""
    parts = []
    for user, of_user in by_user.items():
        processes = plural(len(of_user), "process", "processes")
        parts.append(f"{user} {processes} {_memory_words(of_user)} on {label}{at_a_time}")
    return parts


def _memory_words(tenants: Sequence[GpuTenant]) -> str:
    """Return the memory of all processes together, as far as it is known."""
    sizes = [tenant.most_bytes for tenant in tenants if tenant.most_bytes is not None]
    return size(sum(sizes)) if sizes else "memory n/a"


def _why_no_processes(summary: RunSummary, gpu: OwnGpu) -> str:
    """Return why the processes on a GPU are not known."""
    if f"{gpu.nvml_uuid} foreign_processes" in summary.resources:
        return "the driver listed no process of this run"
    for what in ("gpu processes", f"{gpu.nvml_uuid} processes", "gpu"):
        reason = summary.unavailable.get(what)
        if reason:
            return show(reason)
    return "the driver did not report it"
