"""The facts about this machine that matter to training, by section; an unknown one has a reason."""

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
from tuilab.probes.libraries import find_libraries
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
_MOST_NODES = 16
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


@dataclass(frozen=True)
class Fact:
    """One fact about the machine.

    An empty value is unknown, and `reason` says why. `note` says what follows from the value.
    """

    section: str
    name: str
    value: str
    reason: str = ""
    note: str = ""


def facts(root: Path = Path("/")) -> list[Fact]:
    """Return the facts that need no GPU; `root` is the folder with /proc, /sys and libraries."""
    cpu = cpu_facts(root)
    environment = environment_facts()
    rows = _machine(root, environment)
    rows += _processor(root, cpu)
    rows += _memory(root, cpu)
    rows += _numa(numa_facts(root))
    rows += _torch(environment)
    rows += _packages(environment)
    rows += _variables(environment)
    rows += libraries(root)
    rows += _calibration()
    return rows


def gpu_facts(answer: Mapping[str, Any] | str) -> list[Fact]:
    """Return the facts in the answer of `probes.gpu.own_process`, which may be an error message."""
    if isinstance(answer, str):
        return [Fact("GPUs", "GPUs", "", answer)]
    if "refusal" in answer:
        return [Fact("GPUs", "GPUs", "", str(answer["refusal"]))]
    names = {"driver": "driver", "nvml": "NVML", "cuda": "newest CUDA"}
    rows = _facts_of_probe("GPUs", answer.get("facts", {}), names)
    gpus = [(gpu["index"], _gpu(gpu)) for gpu in answer.get("gpus", [])]
    for index, reason in answer.get("unusable", {}).items():
        gpus.append((int(index), Fact("GPUs", f"GPU {index}", "", str(reason))))
    gpus.sort(key=lambda numbered: numbered[0])
    return rows + [fact for _, fact in gpus]


def _gpu(gpu: Mapping[str, Any]) -> Fact:
    """Return the name and memory of a GPU as a fact under its label."""
    total_bytes = gpu.get("bytes_total")
    memory = size(total_bytes) if total_bytes else "memory n/a"
    label = show(gpu_label(gpu["index"], gpu.get("slice", "")))
    return Fact("GPUs", label, f"{show(gpu.get('name'), 100)}, {memory}")


def in_order(facts_of_machine: Sequence[Fact]) -> dict[str, list[Fact]]:
    """Return the facts by section, in the order in which sections are shown; no empty section."""
    rows_by_section: dict[str, list[Fact]] = {}
    for section in SECTIONS:
        rows = [fact for fact in facts_of_machine if fact.section == section]
        if rows:
            rows_by_section[section] = rows
    return rows_by_section


def _facts_of_probe(
    section: str, values: Mapping[str, Any], names: Mapping[str, str]
) -> list[Fact]:
    """Return a fact for each key of `names`, under the name given there.

    `values` comes from a probe: its entry `missing` has the reasons for keys without a value.
    """
    missing = values.get("missing", {})
    rows = []
    for key, name in names.items():
        if key in values:
            rows.append(Fact(section, name, show(values[key], 200)))
        else:
            rows.append(Fact(section, name, "", str(missing.get(key, "not asked"))))
    return rows


def _ask(section: str, questions: Mapping[str, Callable[[], str]]) -> list[Fact]:
    """Call the functions, and return their answers as facts of that name."""
    return _facts_of_probe(section, gather(questions), {name: name for name in questions})


# ---- the sections


def _machine(root: Path, environment: Mapping[str, Any]) -> list[Fact]:
    """Return the facts about the system, the host, and Python."""
    names = {
        "host": "host",
        "kernel": "kernel",
        "machine": "architecture",
        "libc": "libc",
        "python": "Python",
    }
    rows = _ask("Machine", {"system": lambda: _system(root)})
    return rows + _facts_of_probe("Machine", environment, names)


def _no_limit(section: str, cpu: Mapping[str, Any], key: str) -> Fact:
    """Return that there is no cgroup limit, or why it is unknown whether there is one."""
    reason = cpu.get("missing", {}).get(key, "")
    value = "none" if reason == "no limit is set" else ""
    return Fact(section, "cgroup limit", value, reason)


def _system(root: Path) -> str:
    """Return the name of the Linux distribution; raise NotKnown if its file has none."""
    for line in (root / "etc/os-release").read_text(errors="replace").splitlines():
        if line.startswith("PRETTY_NAME="):
            return show(line.partition("=")[2].strip("\"'"), 100)
    raise NotKnown("/etc/os-release has no name")


def _processor(root: Path, cpu: Mapping[str, Any]) -> list[Fact]:
    """Return the facts about the processor: its cores, their limits, and how busy they are."""
    names = {"model": "model", "logical_cores": "hardware threads", "physical_cores": "cores"}
    rows = _facts_of_probe("Processor", cpu, names)
    rows += _ask("Processor", {"vector units": lambda: _vectors(root), "usable here": _affinity})
    rows += [_core_limit(cpu), _governor(cpu)]
    load = cpu.get("load_average")
    if load:
        averages = "  ".join(f"{value:.2f}" for value in load)
        rows.append(Fact("Processor", "load", f"{averages}  in 1, 5, 15 min"))
    return rows + _ask("Processor", {"waiting for a core": lambda: pressure(root, "cpu")})


def _core_limit(cpu: Mapping[str, Any]) -> Fact:
    """Return how many cores the cgroup allows, with a note if torch would start more threads."""
    quota_cores = cpu.get("quota_cores")
    if quota_cores is None:
        return _no_limit("Processor", cpu, "quota_cores")
    note = ""
    if quota_cores < cpu.get("usable_cores", 0):
        note = "torch counts cores, not this limit: set OMP_NUM_THREADS"
    return Fact("Processor", "cgroup limit", f"{quota_cores:.3g} cores", note=note)


def _governor(cpu: Mapping[str, Any]) -> Fact:
    """Return the frequency governor as a fact, with a note if it makes short runs slower."""
    governor = cpu.get("governor", "")
    reason = cpu.get("missing", {}).get("governor", "")
    note = ""
    if "powersave" in governor:
        note = "clocks rise slowly under load: short runs are slower and vary more"
    return Fact("Processor", "governor", governor, reason, note)


def _vectors(root: Path) -> str:
    """Return which of the vector units that matter to torch this processor has.

    Raises NotKnown if the kernel lists no flags.
    """
    for line in (root / "proc/cpuinfo").read_text(errors="replace").splitlines():
        key, _, value = line.partition(":")
        if key.strip().lower() in ("flags", "features"):
            flags = value.split()
            units = [name for name in _VECTORS if name in flags]
            return ", ".join(units) or "none of AVX2, AVX-512, AMX, SVE"
    raise NotKnown("/proc/cpuinfo names no flags")


def _affinity() -> str:
    cores = sorted(os.sched_getaffinity(0))
    return f"{plural(len(cores), 'hardware thread')}: {spans(cores)}"


def spans(numbers: Sequence[int]) -> str:
    """Return sorted numbers as the kernel writes them: `0-3,8`."""
    ranges: list[list[int]] = []
    for number in numbers:
        if ranges and number == ranges[-1][-1] + 1:
            ranges[-1].append(number)
        else:
            ranges.append([number])
    words = []
    for numbers_in_range in ranges:
        first = numbers_in_range[0]
        last = numbers_in_range[-1]
        if first == last:
            words.append(str(first))
        else:
            words.append(f"{first}-{last}")
    return ",".join(words)


def pressure(root: Path, resource: str) -> str:
    """Return the share of time in which a process waited for `cpu`, `memory` or `io`."""
    fields = (root / "proc/pressure" / resource).read_text().split()
    return f"{float(fields[1].removeprefix('avg10=')):g} % of the last 10 s"


def _memory(root: Path, cpu: Mapping[str, Any]) -> list[Fact]:
    """Return the facts about memory: its size, the cgroup limit, /dev/shm, swap and waiting."""
    missing = cpu.get("missing", {})
    rows = []
    for key, name in (("memory_total_bytes", "total"), ("memory_available_bytes", "available")):
        value = ""
        if key in cpu:
            value = size(cpu[key])
        rows.append(Fact("Memory", name, value, missing.get(key, "")))
    limit_bytes = cpu.get("memory_limit_bytes")
    if limit_bytes:
        rows.append(Fact("Memory", "cgroup limit", size(limit_bytes)))
    else:
        rows.append(_no_limit("Memory", cpu, "memory_limit_bytes"))
    rows.append(_shared_memory())
    questions = {"swap": _swap, "waiting for memory": lambda: pressure(root, "memory")}
    return rows + _ask("Memory", questions)


def _shared_memory() -> Fact:
    """Return the free space of /dev/shm, with a note if it is small for DataLoader workers."""
    try:
        file_system = os.statvfs("/dev/shm")
    except OSError as problem:
        return Fact("Memory", "/dev/shm", "", problem.strerror or str(problem))
    total_bytes = file_system.f_blocks * file_system.f_frsize
    free_bytes = file_system.f_bavail * file_system.f_frsize
    note = ""
    if total_bytes < _SMALL_SHM_BYTES:
        note = "small: DataLoader workers send tensors through it"
    value = f"{size(free_bytes)} free of {size(total_bytes)}"
    return Fact("Memory", "/dev/shm", value, note=note)


def _swap() -> str:
    swap = psutil.swap_memory()
    if not swap.total:
        return "none"
    return f"{size(swap.used)} used of {size(swap.total)}"


def _numa(numa: Mapping[str, Any]) -> list[Fact]:
    """Return a fact for each NUMA node, up to 16, and one if memory of some nodes is forbidden."""
    nodes = numa.get("nodes")
    if not nodes:
        return [Fact("NUMA", "nodes", "", numa.get("missing", {}).get("nodes", "not asked"))]
    rows = []
    for name, node in list(nodes.items())[:_MOST_NODES]:
        value = f"cores {node.get('cpus') or 'none'}, memory {_node_memory(node)}"
        rows.append(Fact("NUMA", f"node {name}", value))
    allowed_nodes = numa.get("allowed_nodes")
    if allowed_nodes is not None and len(allowed_nodes) < len(nodes):
        note = "memory of other nodes cannot be used here"
        rows.append(Fact("NUMA", "memory usable from", spans(allowed_nodes), note=note))
    return rows


def _node_memory(node: Mapping[str, Any]) -> str:
    free_bytes = node.get("memory_free_bytes")
    total_bytes = node.get("memory_total_bytes")
    if free_bytes is None or total_bytes is None:
        return "n/a"
    return f"{size(free_bytes)} free of {size(total_bytes)}"


def _torch(environment: Mapping[str, Any]) -> list[Fact]:
    """Return the version of torch and its build, without importing it."""
    version = environment.get("packages", {}).get("torch", "")
    reason = "" if version else "not installed: pip install torch"
    rows = [Fact("torch", "version", version, reason)]
    return rows + _ask("torch", {"built for": torch_build, "threads": _torch_threads})


def torch_build() -> str:
    """Return `CUDA 12.8`, `ROCm 6.2` or `the CPU only`, without importing torch.

    Raises NotKnown if torch is not installed.
    """
    spec = importlib.util.find_spec("torch")
    if spec is None or spec.origin is None:
        raise NotKnown("torch is not installed")
    path = Path(spec.origin).with_name("version.py")
    source = read_regular(path, _LIMIT, may_be_link=True).decode(errors="replace")
    for name, platform in (("cuda", "CUDA"), ("hip", "ROCm")):
        version = _assigned_string(source, name)
        if version is not None:
            return f"{platform} {show(version, 40)}"
    return "the CPU only"


def _assigned_string(source: str, name: str) -> str | None:
    """Return the string that a module's source assigns to a name, or None if there is none."""
    match = re.search(rf"^{name}(?:\s*:[^=\n]+)?\s*=\s*(.+)$", source, re.MULTILINE)
    if match is None:
        return None
    try:
        value = ast.literal_eval(match[1])
    except (ValueError, SyntaxError):
        return None
    return value if isinstance(value, str) else None


def _torch_threads() -> str:
    """Return how many threads torch will use, without asking torch."""
    count = os.environ.get("OMP_NUM_THREADS")
    if count:
        return f"{show(count, 20)}, from OMP_NUM_THREADS"
    usable = len(os.sched_getaffinity(0))
    return f"at most {usable}, the number of usable ones; the result of a run shows its real value"


def _packages(environment: Mapping[str, Any]) -> list[Fact]:
    """Return the versions of the known packages; torch has its own section."""
    versions = environment.get("packages", {})
    rows = []
    for name, version in versions.items():
        if name != "torch":
            rows.append(Fact("Packages", name, show(version, 60)))
    return rows


def _variables(environment: Mapping[str, Any]) -> list[Fact]:
    """Return the variables that are set, or one fact that none of the known ones is."""
    rows = []
    for name, value in environment.get("variables", {}).items():
        rows.append(Fact("Variables", name, show(value, 200) or "set, but empty"))
    if not rows:
        value = f"none of the {len(VARIABLES)} known variables is set"
        rows.append(Fact("Variables", "OMP, MKL, MALLOC, CUDA", value))
    return rows


def libraries(root: Path) -> list[Fact]:
    """Return a fact for each allocator and OpenMP library that could be preloaded.

    A library that is not installed has an empty value with a reason. A note marks a preloaded one.
    """
    preloaded = os.environ.get("LD_PRELOAD", "")
    rows = []
    for name, pattern in _LIBRARIES.items():
        paths = find_libraries(root, pattern)
        shown_path = show(paths[0], 200) if paths else ""
        reason = "not found in the usual library folders"
        is_preloaded = any(os.path.basename(path) in preloaded for path in paths)
        note = "preloaded" if is_preloaded else ""
        rows.append(Fact("Libraries", name, shown_path, reason, note))
    return rows


def _calibration() -> list[Fact]:
    """Return what `tuilab calibrate` measured for the CPU and for each GPU.

    If the CPU was never calibrated, one fact names that subcommand.
    """
    rows = _trials(calibration_file.load(), "")
    if not rows:
        reason = "this machine is not calibrated yet; run `tuilab calibrate` (2 minutes)"
        rows = [Fact("Calibration", "error rate of verdicts", "", reason)]
    for gpu in calibration_file.load_gpus().values():
        rows += _trials(gpu, f"{gpu.name or 'GPU'}: ")
    return rows


def _trials(saved: Calibration, prefix: str) -> list[Fact]:
    """Return the saved trials of a machine, or of a GPU with its name as `prefix`."""
    lines = calibration.describe_trials(saved.trials_of_method)
    if not lines:
        return []
    reason = "the calibration file has no date"
    rows = [Fact("Calibration", f"{prefix}measured", saved.day, reason)]
    for line in lines:
        method, _, words = line.partition(": ")
        rows.append(Fact("Calibration", f"{prefix}{method}", words))
    return rows
