"""What this machine is, as far as it matters to training: plain facts with a name, in sections; what is unknown says why."""

import ast
import importlib.util
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from tuilab.judging import calibration, calibration_file
from tuilab.judging.calibration_file import Calibration
from tuilab.probes import NotKnown, gather
from tuilab.probes.cpu import cpu_facts
from tuilab.probes.env import environment_facts
from tuilab.probes.numa import numa_facts
from tuilab.probes.settings import VARIABLES
from tuilab.storage.files import read_regular
from tuilab.text.display import plural, show
from tuilab.text.words import gpu_label, size

SECTIONS = (
    "Machine",
    "Processor",
    "Memory",
    "NUMA",
    "GPUs",
    "torch",
    "Packages",
    "Variables",
    "Libraries",
    "Calibration",
)
_LIMIT = 64 * 1024
_SMALL_SHM_BYTES = 1e9
_VECTORS = (
    "avx2",
    "avx512f",
    "avx512_vnni",
    "avx512_bf16",
    "amx_tile",
    "amx_bf16",
    "asimd",
    "sve",
    "bf16",
)
_LIBRARIES = {
    "jemalloc": "libjemalloc.so*",
    "tcmalloc": "libtcmalloc*.so*",
    "mimalloc": "libmimalloc.so*",
    "Intel OpenMP": "libiomp5.so*",
    "GNU OpenMP": "libgomp.so*",
}
_LIBRARY_FOLDERS = ("usr/lib", "usr/lib64", "usr/lib/*-linux-gnu", "usr/local/lib", "opt/conda/lib")


@dataclass(frozen=True)
class Fact:
    """One thing about the machine. An empty value is unknown, and `reason` says why; `note` is what follows from it."""

    section: str
    name: str
    value: str
    reason: str = ""
    note: str = ""


def facts(root: Path = Path("/")) -> list[Fact]:
    """Return what can be learnt without touching a GPU; `root` is where /proc, /sys and libraries are looked for."""
    cpu, numa, environment = cpu_facts(root), numa_facts(root), environment_facts()
    return [
        *_machine(root, environment),
        *_processor(root, cpu),
        *_memory(root, cpu),
        *_numa(numa),
        *_torch(environment),
        *_packages(environment),
        *_variables(environment),
        *libraries(root),
        *_calibration(),
    ]


def gpu_facts(answer: Mapping[str, Any] | str) -> list[Fact]:
    """Return what `probes.apart` said about the GPUs, as facts."""
    if isinstance(answer, str) or "refusal" in answer:
        why = answer if isinstance(answer, str) else answer["refusal"]
        return [Fact("GPUs", "GPUs", "", str(why))]
    known = answer.get("facts", {})
    found = _told("GPUs", known, {"driver": "driver", "nvml": "NVML", "cuda": "newest CUDA"})
    gpus = [(gpu["index"], _gpu(gpu)) for gpu in answer.get("gpus", [])]
    gpus += [
        (int(index), Fact("GPUs", f"GPU {index}", "", str(why)))
        for index, why in answer.get("unusable", {}).items()
    ]
    return found + [fact for _, fact in sorted(gpus, key=lambda one: one[0])]


def _gpu(gpu: Mapping[str, Any]) -> Fact:
    memory = size(total) if (total := gpu.get("bytes_total")) else "memory n/a"
    return Fact(
        "GPUs",
        show(gpu_label(gpu["index"], gpu.get("slice", ""))),
        f"{show(gpu.get('name'), 100)}, {memory}",
    )


def in_order(found: Sequence[Fact]) -> dict[str, list[Fact]]:
    """Return facts by section, in the order in which they are shown."""
    return {
        name: rows
        for name in SECTIONS
        if (rows := [fact for fact in found if fact.section == name])
    }


def _told(section: str, known: Mapping[str, Any], names: Mapping[str, str]) -> list[Fact]:
    """Return some of what a probe knows, under other names."""
    missing = known.get("missing", {})
    rows = []
    for key, name in names.items():
        if key in known:
            rows.append(Fact(section, name, show(known[key], 200)))
        else:
            rows.append(Fact(section, name, "", str(missing.get(key, "not asked"))))
    return rows


def _asked(section: str, questions: Mapping[str, Callable[[], str]]) -> list[Fact]:
    return _told(section, gather(questions), {name: name for name in questions})


# ---- the sections


def _machine(root: Path, environment: Mapping[str, Any]) -> list[Fact]:
    names = {
        "host": "host",
        "kernel": "kernel",
        "machine": "architecture",
        "libc": "libc",
        "python": "Python",
    }
    return [
        *_asked("Machine", {"system": lambda: _system(root)}),
        *_told("Machine", environment, names),
    ]


def _no_limit(section: str, cpu: Mapping[str, Any], key: str) -> Fact:
    """Return that there is no limit, or that it is not known whether there is one."""
    reason = cpu.get("missing", {}).get(key, "")
    return Fact(section, "cgroup limit", "none" if reason == "no limit is set" else "", reason)


def _system(root: Path) -> str:
    for line in (root / "etc/os-release").read_text(errors="replace").splitlines():
        if line.startswith("PRETTY_NAME="):
            return show(line.partition("=")[2].strip("\"'"), 100)
    raise NotKnown("/etc/os-release has no name")


def _processor(root: Path, cpu: Mapping[str, Any]) -> list[Fact]:
    rows = _told(
        "Processor",
        cpu,
        {"model": "model", "logical_cores": "hardware threads", "physical_cores": "cores"},
    )
    rows += _asked("Processor", {"vector units": lambda: _vectors(root), "usable here": _affinity})
    usable, quota = cpu.get("usable_cores", 0), cpu.get("quota_cores")
    if quota is None:
        rows.append(_no_limit("Processor", cpu, "quota_cores"))
    else:
        note = "torch counts cores, not this limit: set OMP_NUM_THREADS" if quota < usable else ""
        rows.append(Fact("Processor", "cgroup limit", f"{quota:.3g} cores", note=note))
    governor = cpu.get("governor", "")
    note = (
        "clocks rise slowly under load: short runs are slower and vary more"
        if "powersave" in governor
        else ""
    )
    rows.append(
        Fact("Processor", "governor", governor, cpu.get("missing", {}).get("governor", ""), note)
    )
    if load := cpu.get("load_average"):
        rows.append(
            Fact(
                "Processor",
                "load",
                "  ".join(f"{value:.2f}" for value in load) + "  in 1, 5, 15 min",
            )
        )
    return [*rows, *_asked("Processor", {"waiting for a core": lambda: pressure(root, "cpu")})]


def _vectors(root: Path) -> str:
    for line in (root / "proc/cpuinfo").read_text(errors="replace").splitlines():
        key, _, value = line.partition(":")
        if key.strip().lower() in ("flags", "features"):
            return (
                ", ".join(name for name in _VECTORS if name in value.split())
                or "none of AVX2, AVX-512, AMX, SVE"
            )
    raise NotKnown("/proc/cpuinfo names no flags")


def _affinity() -> str:
    cores = sorted(os.sched_getaffinity(0))
    return f"{plural(len(cores), 'hardware thread')}: {spans(cores)}"


def spans(numbers: Sequence[int]) -> str:
    """Return sorted numbers as the kernel writes them: `0-3,8`."""
    parts: list[list[int]] = []
    for number in numbers:
        if parts and number == parts[-1][-1] + 1:
            parts[-1].append(number)
        else:
            parts.append([number])
    return ",".join(str(part[0]) if len(part) == 1 else f"{part[0]}-{part[-1]}" for part in parts)


def pressure(root: Path, what: str) -> str:
    """Return the share of time in which some process waited for cores, memory or disks."""
    some = (root / "proc/pressure" / what).read_text().split()
    return f"{float(some[1].removeprefix('avg10=')):g} % of the last 10 s"


def _memory(root: Path, cpu: Mapping[str, Any]) -> list[Fact]:
    missing = cpu.get("missing", {})
    names = {"memory_total_bytes": "total", "memory_available_bytes": "available"}
    rows = [
        Fact("Memory", name, size(cpu[key]) if key in cpu else "", missing.get(key, ""))
        for key, name in names.items()
    ]
    limit = cpu.get("memory_limit_bytes")
    rows.append(
        Fact("Memory", "cgroup limit", size(limit))
        if limit
        else _no_limit("Memory", cpu, "memory_limit_bytes")
    )
    try:
        shm = os.statvfs("/dev/shm")
        total = shm.f_blocks * shm.f_frsize
        note = (
            "small: DataLoader workers send tensors through it" if total < _SMALL_SHM_BYTES else ""
        )
        rows.append(
            Fact(
                "Memory",
                "/dev/shm",
                f"{size(shm.f_bavail * shm.f_frsize)} free of {size(total)}",
                note=note,
            )
        )
    except OSError as problem:
        rows.append(Fact("Memory", "/dev/shm", "", problem.strerror or str(problem)))
    return [
        *rows,
        *_asked("Memory", {"swap": _swap, "waiting for memory": lambda: pressure(root, "memory")}),
    ]


def _swap() -> str:
    swap = psutil.swap_memory()
    return f"{size(swap.used)} used of {size(swap.total)}" if swap.total else "none"


def _numa(numa: Mapping[str, Any]) -> list[Fact]:
    nodes = numa.get("nodes")
    if not nodes:
        return [Fact("NUMA", "nodes", "", numa.get("missing", {}).get("nodes", "not asked"))]
    rows = []
    for name, node in list(nodes.items())[:16]:
        rows.append(
            Fact(
                "NUMA",
                f"node {name}",
                f"cores {node.get('cpus') or 'none'}, memory {_node_memory(node)}",
            )
        )
    allowed = numa.get("allowed_nodes")
    if allowed is not None and len(allowed) < len(nodes):
        rows.append(
            Fact(
                "NUMA",
                "memory usable from",
                spans(allowed),
                note="memory of other nodes cannot be used here",
            )
        )
    return rows


def _node_memory(node: Mapping[str, Any]) -> str:
    free, total = node.get("memory_free_bytes"), node.get("memory_total_bytes")
    return "n/a" if free is None or total is None else f"{size(free)} free of {size(total)}"


def _torch(environment: Mapping[str, Any]) -> list[Fact]:
    """Return what torch is, without importing it."""
    version = environment.get("packages", {}).get("torch", "")
    rows = [
        Fact("torch", "version", version, "" if version else "not installed: pip install torch")
    ]
    return [*rows, *_asked("torch", {"built for": torch_build, "threads": _torch_threads})]


def torch_build() -> str:
    """Return what the installed torch was built for, without importing it."""
    spec = importlib.util.find_spec("torch")
    if spec is None or spec.origin is None:
        raise NotKnown("torch is not installed")
    text = read_regular(Path(spec.origin).with_name("version.py"), _LIMIT, may_be_link=True).decode(
        errors="replace"
    )
    for name, words in (("cuda", "CUDA"), ("hip", "ROCm")):
        if (version := _assigned(text, name)) is not None:
            return f"{words} {show(version, 40)}"
    return "the CPU only"


def _assigned(text: str, name: str) -> str | None:
    """Return the string that a module's text assigns to a name."""
    found = re.search(rf"^{name}(?:\s*:[^=\n]+)?\s*=\s*(.+)$", text, re.MULTILINE)
    try:
        value = ast.literal_eval(found[1]) if found else None
    except (ValueError, SyntaxError):
        return None
    return value if isinstance(value, str) else None


def _torch_threads() -> str:
    given = os.environ.get("OMP_NUM_THREADS")
    if given:
        return f"{show(given, 20)}, from OMP_NUM_THREADS"
    return f"at most {len(os.sched_getaffinity(0))}, the number of usable ones; the result of a run shows its real value"


def _packages(environment: Mapping[str, Any]) -> list[Fact]:
    found = environment.get("packages", {})
    return [
        Fact("Packages", name, show(version, 60))
        for name, version in found.items()
        if name != "torch"
    ]


def _variables(environment: Mapping[str, Any]) -> list[Fact]:
    found = environment.get("variables", {})
    rows = [
        Fact("Variables", name, show(value, 200) or "set, but empty")
        for name, value in found.items()
    ]
    return rows or [
        Fact(
            "Variables",
            "OMP, MKL, MALLOC, CUDA",
            f"none of the {len(VARIABLES)} known variables is set",
        )
    ]


def libraries(root: Path) -> list[Fact]:
    """Return which allocators and OpenMP libraries are there to be preloaded."""
    rows = []
    preloaded = os.environ.get("LD_PRELOAD", "")
    for name, pattern in _LIBRARIES.items():
        paths = sorted(
            {str(path) for folder in _LIBRARY_FOLDERS for path in root.glob(f"{folder}/{pattern}")},
            key=len,
        )
        is_used = bool(paths) and any(os.path.basename(path) in preloaded for path in paths)
        reason = "not found in the usual library folders"
        rows.append(
            Fact(
                "Libraries",
                name,
                show(paths[0], 200) if paths else "",
                reason,
                "preloaded" if is_used else "",
            )
        )
    return rows


def _calibration() -> list[Fact]:
    known = calibration_file.load()
    never = "this machine is not calibrated yet; run `tuilab calibrate` (2 minutes)"
    rows = _calibrated(known, "") or [Fact("Calibration", "error rate of verdicts", "", never)]
    for gpu in calibration_file.load_gpus().values():
        rows += _calibrated(gpu, f"{gpu.name or 'GPU'}: ")
    return rows


def _calibrated(known: Calibration, of: str) -> list[Fact]:
    """Return what is kept of a calibration, of a GPU with its name; nothing where there is none."""
    lines = [line.partition(": ") for line in calibration.describe_trials(known.trials_of_method)]
    rows = [Fact("Calibration", f"{of}{where}", words) for where, _, words in lines]
    return (
        [Fact("Calibration", f"{of}measured", known.day, "the calibration file has no date"), *rows]
        if rows
        else []
    )
