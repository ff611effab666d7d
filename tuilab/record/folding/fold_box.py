"""What records of the box, its GPUs, and those who use them change in the summary."""

import math

from tuilab.record import events
from tuilab.record.folding.limits import _KEPT
from tuilab.record.series import Series
from tuilab.record.summary import RunSummary
from tuilab.record.summary_parts import GivenDevice, GpuState, GpuTenant, GpuTenants
from tuilab.record.usage import usage_of


def environment_recorded(
    summary: RunSummary, stream: str, event: events.EnvironmentRecorded
) -> None:
    summary.environment.setdefault(event.part, event.facts)
    if event.part == "cuda":
        summary.cuda.setdefault(stream, event.facts)
    if event.part == "device" and len(summary.devices) < _KEPT:
        told = (
            str(event.facts.get(name, "")) for name in ("wanted", "chosen", "why", "notice", "rank")
        )
        summary.devices.setdefault(GivenDevice(*told))


def sampled(summary: RunSummary, stream: str, event: events.Sampled) -> None:
    waiting = {"waiting_bytes": float(event.waiting_bytes)} if event.waiting_bytes else {}
    for name, value in (usage_of(event) | waiting).items():
        _add_resource(summary, name, event.t, value)
    for uuid, metrics in event.gpus.items():
        t = event.gpus_asked.get(uuid, event.t)
        for metric, value in metrics.items():
            _add_resource(summary, f"{uuid} {metric}", t, value)
        told = {name: value for name, value in metrics.items() if math.isfinite(value)}
        mask = told.get("throttle_mask")
        mask_bits = None if mask is None else int(mask)
        summary.gpu_states.append(
            GpuState(t, uuid, mask_bits, told.get("sm_mhz"), told.get("foreign_percent"))
        )


def _add_resource(summary: RunSummary, name: str, t: int, value: float) -> None:
    """Add what was measured; NaN, as a share that could not be told is written, is a gap."""
    if math.isfinite(value):
        series = summary.resources.setdefault(name, Series(name, writer="sampler"))
        series.add(series.count, t, float(value))
    elif name in summary.resources:
        summary.resources[name].leave_gap(t)


def gpu_held(summary: RunSummary, stream: str, event: events.GpuHeld) -> None:
    if event.uuid not in summary.gpus_held and len(summary.gpus_held) >= _KEPT:
        return
    summary.gpus_held.setdefault(event.uuid, {})[stream] = None
    for metric in ("allocated_bytes", "reserved_bytes", "allocated_peak_bytes"):
        name = f"{event.uuid} {metric}"
        series = summary.resources.setdefault(f"{name} {stream}", Series(name, writer=stream))
        series.add(series.count, event.t, float(getattr(event, metric)))


def gpu_found(summary: RunSummary, stream: str, event: events.GpuFound) -> None:
    summary.gpus[event.uuid] = event


def gpu_shared(summary: RunSummary, stream: str, event: events.GpuShared) -> None:
    if event.uuid not in summary.neighbours and len(summary.neighbours) >= _KEPT:
        return
    found = summary.neighbours.setdefault(event.uuid, GpuTenants())
    found.most, found.told_t = max(found.most, event.count), max(found.told_t, event.t)
    for one in event.others:
        name = one.pid, one.user
        if name in found.known or len(found.known) < _KEPT:
            known = found.known.setdefault(name, GpuTenant(one, one.bytes_used, event.t))
            known.most_bytes = max(
                (used for used in (known.most_bytes, one.bytes_used) if used is not None),
                default=None,
            )
            known.seen_t = max(known.seen_t, event.t)


def xid_reported(summary: RunSummary, stream: str, event: events.XidReported) -> None:
    error = event.uuid, event.xid
    if error in summary.xids or len(summary.xids) < _KEPT:
        summary.xids[error] = summary.xids.get(error, 0) + 1


def unavailable(summary: RunSummary, stream: str, event: events.Unavailable) -> None:
    summary.unavailable[event.what] = event.reason


def sampler_ended(summary: RunSummary, stream: str, event: events.SamplerEnded) -> None:
    often = {0: "", 1: " (restarted once)"}.get(
        event.restarts, f" (restarted {event.restarts} times)"
    )
    summary.unavailable["sampler"] = f"{event.reason}{often}"
