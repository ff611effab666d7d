"""Checks of the processor: how many cores there are, may be used and are really free, and what slows them."""

import os
import time

from tuilab.doctor import Box, DoctorFinding, passed, unknown, warn
from tuilab.probes.cores import measure_cores
from tuilab.probes.cpu import cpu_facts, cpu_throttled_share, parse_cpu_list
from tuilab.probes.numa import numa_facts
from tuilab.probes.processes import why_hidden
from tuilab.text.display import percent, plural

_SPIN_S = 0.3
_MOST_SPINNING = 64
_BUSY_PERCENT = 10.0
_SLOW_CLOCKS = ("hpet", "acpi_pm", "jiffies")


def cores(box: Box) -> DoctorFinding:
    usable = len(os.sched_getaffinity(0))
    online = len(parse_cpu_list(box.text("sys/devices/system/cpu/online")))
    found = f"{usable} of {plural(online, 'hardware thread')} usable"
    physical = cpu_facts(box.root).get("physical_cores")
    return passed(found + (f", on {plural(physical, 'core')}" if physical else ""))


def quota(box: Box) -> DoctorFinding:
    facts = cpu_facts(box.root)
    limit, usable = facts.get("quota_cores"), len(os.sched_getaffinity(0))
    if limit is None:
        why = facts["missing"]["quota_cores"]
        return passed("no cgroup limit") if why == "no limit is set" else unknown(why)
    share = cpu_throttled_share(box.root)
    found = f"{limit:.3g} cores" + (
        f"; used up in {percent(share)} of all periods" if share else ""
    )
    if limit < usable and box.environ.get("OMP_NUM_THREADS", "") != str(max(int(limit), 1)):
        step = f"export OMP_NUM_THREADS={max(int(limit), 1)}: torch counts cores, not this limit"
        return warn(f"limited to {found}, but {usable} are visible", step)
    return passed(found)


def effective(box: Box) -> DoctorFinding:
    """Measure how many cores are free now: other users, quotas and the hypervisor may use the rest."""
    usable = len(os.sched_getaffinity(0))
    promised = min(cpu_facts(box.root).get("quota_cores") or usable, usable, _MOST_SPINNING)
    count = max(round(promised), 1)
    got = measure_cores(count, _SPIN_S)
    found = f"{got:.3g} of {plural(count, 'core')} free"
    if got < 0.8 * promised:
        return warn(
            f"only {found}: other processes use the rest",
            "find them with `top`; timings will vary until they finish",
        )
    return passed(found)


def pressure(box: Box) -> DoctorFinding:
    waited = _avg10(box, "cpu")
    found = f"processes waited for a core in {waited:g} % of the last 10 s"
    return (
        warn(found, "find the busy processes with `top`; measure again when the machine is idle")
        if waited > _BUSY_PERCENT
        else passed(found)
    )


def governor(box: Box) -> DoctorFinding:
    facts = cpu_facts(box.root)
    found = facts.get("governor")
    if found is None:
        return unknown(facts["missing"]["governor"])
    if "powersave" in found or "ondemand" in found:
        return warn(
            f"{found}: clocks rise slowly under load, so short runs vary more",
            "sudo cpupower frequency-set -g performance",
        )
    return passed(found)


def throttling(box: Box) -> DoctorFinding:
    paths = list(
        (box.root / "sys/devices/system/cpu").glob("cpu[0-9]*/thermal_throttle/core_throttle_count")
    )
    if not paths:
        return unknown(
            "the kernel does not count thermal throttling here (usual in virtual machines)"
        )
    count = sum(int(path.read_text()) for path in paths)
    if count:
        return warn(
            f"throttled by heat {plural(count, 'time')} since boot",
            "fix the cooling; watch the temperatures during a run: watch sensors",
        )
    return passed("not throttled by heat since boot")


def clock(box: Box) -> DoctorFinding:
    """What it costs to read the clock that every block of a race is timed with."""
    began = time.monotonic_ns()
    for _ in range(1000):
        last = time.monotonic_ns()
    cost = f"{(last - began) / 1000:.0f} ns to read"
    try:
        source = box.text("sys/devices/system/clocksource/clocksource0/current_clocksource")
    except OSError:
        return passed(f"{cost}; the kernel does not name its source")
    if source in _SLOW_CLOCKS:
        return warn(
            f"{source}, {cost}",
            "the kernel does not use the fast clock (tsc); find the reason: sudo dmesg | grep -i tsc",
        )
    return passed(f"{source}, {cost}")


def numa(box: Box) -> DoctorFinding:
    facts = numa_facts(box.root)
    nodes, allowed = facts.get("nodes"), facts.get("allowed_nodes")
    if not nodes:
        return unknown(facts["missing"]["nodes"])
    if len(nodes) == 1:
        return passed("one node")
    if allowed is not None and len(allowed) < len(nodes):
        return passed(f"{len(nodes)} nodes; memory of {plural(len(allowed), 'node')} is usable")
    return warn(
        f"{len(nodes)} nodes; access to the memory of another node is slower",
        "bind each process to a node: numactl -N 0 -m 0 COMMAND (`tuilab run numa` measures the difference)",
    )


def others(box: Box) -> DoctorFinding:
    """Whether it can be told who keeps the cores busy."""
    if why := why_hidden(box.root):
        return unknown(f"{why}: tuilab cannot name processes that slow a run")
    return passed("processes of other users are visible")


def _avg10(box: Box, what: str) -> float:
    return float(box.text(f"proc/pressure/{what}").split()[1].removeprefix("avg10="))


CHECKS = {
    "cpu.effective": effective,
    "cpu.cores": cores,
    "cpu.quota": quota,
    "cpu.pressure": pressure,
    "cpu.governor": governor,
    "cpu.throttling": throttling,
    "cpu.clock": clock,
    "cpu.numa": numa,
    "cpu.others": others,
}
