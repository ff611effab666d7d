"""Checks of the processor: cores that exist, are usable and are free, and what slows them."""

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
    """Report how many hardware threads and cores there are, and how many can be used."""
    usable = len(os.sched_getaffinity(0))
    online = len(parse_cpu_list(box.text("sys/devices/system/cpu/online")))
    message = f"{usable} of {plural(online, 'hardware thread')} usable"
    physical = cpu_facts(box.root).get("physical_cores")
    if physical:
        message += f", on {plural(physical, 'core')}"
    return passed(message)


def quota(box: Box) -> DoctorFinding:
    """Check the CPU limit of the cgroup: torch ignores it, and starts a thread for each core."""
    facts = cpu_facts(box.root)
    quota_cores = facts.get("quota_cores")
    if quota_cores is None:
        reason = facts["missing"]["quota_cores"]
        if reason == "no limit is set":
            return passed("no cgroup limit")
        return unknown(reason)
    message = f"{quota_cores:.3g} cores"
    throttled_share = cpu_throttled_share(box.root)
    if throttled_share:
        message += f"; used up in {percent(throttled_share)} of all periods"
    usable = len(os.sched_getaffinity(0))
    needed_setting = str(max(int(quota_cores), 1))
    if quota_cores < usable and box.environ.get("OMP_NUM_THREADS", "") != needed_setting:
        step = f"export OMP_NUM_THREADS={needed_setting}: torch counts cores, not this limit"
        return warn(f"limited to {message}, but {usable} are visible", step)
    return passed(message)


def effective(box: Box) -> DoctorFinding:
    """Measure how many cores are free: other users, quotas and the hypervisor may use the rest."""
    usable = len(os.sched_getaffinity(0))
    quota_cores = cpu_facts(box.root).get("quota_cores") or usable
    promised_cores = min(quota_cores, usable, _MOST_SPINNING)
    count = max(round(promised_cores), 1)
    free_cores = measure_cores(count, _SPIN_S)
    message = f"{free_cores:.3g} of {plural(count, 'core')} free"
    if free_cores < 0.8 * promised_cores:
        return warn(
            f"only {message}: other processes use the rest",
            "find them with `top`; timings will vary until they finish",
        )
    return passed(message)


def pressure(box: Box) -> DoctorFinding:
    """Warn if processes had to wait for a core in more than a tenth of the last 10 s."""
    waited_percent = _avg10(box, "cpu")
    message = f"processes waited for a core in {waited_percent:g} % of the last 10 s"
    if waited_percent > _BUSY_PERCENT:
        return warn(
            message, "find the busy processes with `top`; measure again when the machine is idle"
        )
    return passed(message)


def governor(box: Box) -> DoctorFinding:
    """Warn if the frequency governor raises clocks slowly."""
    facts = cpu_facts(box.root)
    name = facts.get("governor")
    if name is None:
        return unknown(facts["missing"]["governor"])
    if "powersave" in name or "ondemand" in name:
        return warn(
            f"{name}: clocks rise slowly under load, so short runs vary more",
            "sudo cpupower frequency-set -g performance",
        )
    return passed(name)


def throttling(box: Box) -> DoctorFinding:
    """Check whether heat has lowered the clocks since boot."""
    cpus = box.root / "sys/devices/system/cpu"
    paths = list(cpus.glob("cpu[0-9]*/thermal_throttle/core_throttle_count"))
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
    """Check the cost of reading the clock that times every block of a race."""
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
            "the kernel does not use the fast clock (tsc); find the reason: sudo dmesg | grep"
            " -i tsc",
        )
    return passed(f"{source}, {cost}")


def numa(box: Box) -> DoctorFinding:
    """Report the NUMA nodes; warn if the memory of all of several nodes can be used."""
    facts = numa_facts(box.root)
    nodes = facts.get("nodes")
    allowed_nodes = facts.get("allowed_nodes")
    if not nodes:
        return unknown(facts["missing"]["nodes"])
    if len(nodes) == 1:
        return passed("one NUMA node: every core is equally near to all memory")
    if allowed_nodes is not None and len(allowed_nodes) < len(nodes):
        return passed(
            f"{len(nodes)} NUMA nodes, but processes may only use the memory of"
            f" {len(allowed_nodes)} of them here"
        )
    return warn(
        f"{len(nodes)} NUMA nodes: a core reaches the memory of its own node faster than that of"
        " another node",
        "keep each process on the cores and the memory of one node: numactl -N 0 -m 0 COMMAND"
        " (`tuilab run numa` measures the difference)",
    )


def others(box: Box) -> DoctorFinding:
    """Check whether the processes of other users are visible."""
    reason = why_hidden(box.root)
    if reason:
        return unknown(f"{reason}: tuilab cannot name processes that slow a run")
    return passed("processes of other users are visible")


def _avg10(box: Box, resource: str) -> float:
    """Return the percentage of the last 10 s in which a process waited for a resource."""
    fields = box.text(f"proc/pressure/{resource}").split()
    return float(fields[1].removeprefix("avg10="))


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
