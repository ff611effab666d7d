"""Folds the records of the machine, its GPUs and the processes on them."""

import math

from tuilab.record import events
from tuilab.record.folding.limits import MOST
from tuilab.record.series import Series
from tuilab.record.summary import RunSummary
from tuilab.record.summary_parts import GivenDevice, GpuState, GpuTenant, GpuTenants
from tuilab.record.usage import usage_of


def environment_recorded(
    summary: RunSummary, stream: str, event: events.EnvironmentRecorded
) -> None:
    """Keep the facts of each part of the environment that arrive first.

    CUDA is kept for each worker, and the devices that the scenario was given are kept in order.
    """
    summary.environment.setdefault(event.part, event.facts)
    if event.part == "cuda":
        summary.cuda.setdefault(stream, event.facts)
    if event.part == "device" and len(summary.devices) < MOST:
        fields = {name: str(event.facts.get(name, "")) for name in GivenDevice._fields}
        summary.devices.setdefault(GivenDevice(**fields))


def sampled(summary: RunSummary, stream: str, event: events.Sampled) -> None:
    """Add the readings of the sampler to their series, and the state of each GPU for verdicts.

    A reading of a GPU has the time at which its driver was asked, if that is recorded.
    """
    for name, value in usage_of(event).items():
        _add_resource(summary, name, event.t, value)
    if event.waiting_bytes:
        _add_resource(summary, "waiting_bytes", event.t, float(event.waiting_bytes))
    for uuid, metrics in event.gpus.items():
        t = event.gpus_asked.get(uuid, event.t)
        for metric, value in metrics.items():
            _add_resource(summary, f"{uuid} {metric}", t, value)
        finite = {metric: value for metric, value in metrics.items() if math.isfinite(value)}
        mask = None
        if "throttle_mask" in finite:
            mask = int(finite["throttle_mask"])
        state = GpuState(t, uuid, mask, finite.get("sm_mhz"), finite.get("foreign_percent"))
        summary.gpu_states.append(state)


def _add_resource(summary: RunSummary, name: str, t: int, value: float) -> None:
    """Add a measurement; NaN, which stands for a share that is not known, leaves a gap."""
    if math.isfinite(value):
        series = summary.resources.setdefault(name, Series(name, writer="sampler"))
        series.add(series.count, t, float(value))  # readings have no step of their own
    elif name in summary.resources:
        summary.resources[name].leave_gap(t)


def gpu_held(summary: RunSummary, stream: str, event: events.GpuHeld) -> None:
    """Add what torch holds on a GPU to the series of the process that reported it."""
    if event.uuid not in summary.gpus_held and len(summary.gpus_held) >= MOST:
        return
    summary.gpus_held.setdefault(event.uuid, {})[stream] = None
    for metric in ("allocated_bytes", "reserved_bytes", "allocated_peak_bytes"):
        name = f"{event.uuid} {metric}"
        series = summary.resources.setdefault(f"{name} {stream}", Series(name, writer=stream))
        series.add(series.count, event.t, float(getattr(event, metric)))


def gpu_found(summary: RunSummary, stream: str, event: events.GpuFound) -> None:
    summary.gpus[event.uuid] = event


def gpu_shared(summary: RunSummary, stream: str, event: events.GpuShared) -> None:
    """Note the other processes on a GPU: when each was seen last, and its most memory."""
    if event.uuid not in summary.neighbours and len(summary.neighbours) >= MOST:
        return
    tenants = summary.neighbours.setdefault(event.uuid, GpuTenants())
    tenants.most = max(tenants.most, event.count)
    tenants.reported_t = max(tenants.reported_t, event.t)
    for process in event.others:
        key = process.pid, process.user
        if key not in tenants.processes and len(tenants.processes) >= MOST:
            continue
        first = GpuTenant(process, process.bytes_used, event.t)
        tenant = tenants.processes.setdefault(key, first)
        tenant.seen_t = max(tenant.seen_t, event.t)
        if process.bytes_used is not None:
            tenant.most_bytes = max(tenant.most_bytes or 0, process.bytes_used)


def xid_reported(summary: RunSummary, stream: str, event: events.XidReported) -> None:
    """Count the errors of a GPU by their number."""
    error = event.uuid, event.xid
    if error in summary.xids or len(summary.xids) < MOST:
        summary.xids[error] = summary.xids.get(error, 0) + 1


def unavailable(summary: RunSummary, stream: str, event: events.Unavailable) -> None:
    summary.unavailable[event.what] = event.reason


def sampler_ended(summary: RunSummary, stream: str, event: events.SamplerEnded) -> None:
    """Note why the sampler ended, and how often it was restarted."""
    restarts = ""
    if event.restarts == 1:
        restarts = " (restarted once)"
    elif event.restarts:
        restarts = f" (restarted {event.restarts} times)"
    summary.unavailable["sampler"] = f"{event.reason}{restarts}"
