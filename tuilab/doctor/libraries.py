"""Checks of tools and libraries that advice needs: numactl, OpenMP, allocators, a compiler."""

import functools
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterable
from pathlib import Path

from tuilab.doctor import Box, DoctorFinding, passed, unknown, warn
from tuilab.doctor.facts import libraries
from tuilab.probes.numa import numa_facts


def numactl(box: Box) -> DoctorFinding:
    """Check whether numactl can bind memory; that matters on machines with several NUMA nodes."""
    facts = numa_facts(box.root)
    nodes = facts.get("nodes") or {}
    allowed_nodes = facts.get("allowed_nodes")
    program = shutil.which("numactl", path=box.environ.get("PATH"))
    if program:
        if len(nodes) > 1 and allowed_nodes:
            return _check_binding(program, allowed_nodes[0])
        return passed(program)
    if len(nodes) > 1:
        return warn(
            f"not installed, but this machine has {len(nodes)} NUMA nodes", "apt install numactl"
        )
    return unknown(
        "not installed; useful only on machines with several NUMA nodes", "apt install numactl"
    )


def _check_binding(program: str, node: int) -> DoctorFinding:
    """Check whether memory can be bound: a container needs a capability for that."""
    done = subprocess.run(
        [program, f"--membind={node}", "true"], capture_output=True, text=True, errors="replace"
    )
    if done.returncode:
        reason = f"it exited with {done.returncode}"
        error_lines = done.stderr.strip().splitlines()
        if error_lines:
            reason = error_lines[-1]
        return warn(
            f"{program} cannot bind memory here: {reason}",
            "in a container, start it with: docker run --cap-add SYS_NICE",
        )
    return passed(program)


def _library(name: str, package: str, box: Box) -> DoctorFinding:
    """Check for a library in the library folders, or in that of this Python."""
    (fact,) = [fact for fact in libraries(box.root) if fact.name == name]
    pattern = f"lib{name}*.so*"
    if name == "Intel OpenMP":
        pattern = "libiomp5.so*"
    paths_in_prefix = sorted(str(path) for path in Path(sys.prefix, "lib").glob(pattern))
    path = fact.value
    if not path and paths_in_prefix:
        path = paths_in_prefix[0]
    if not path:
        return unknown("not found in the usual library folders", package)
    if fact.note:
        return passed(f"{path}, preloaded")
    return passed(path)


def compiler(box: Box) -> DoctorFinding:
    """Check what torch.compile needs: C++ for the CPU, C for Triton, and the headers of Python."""
    candidates = {
        "C++": [box.environ.get("CXX", ""), "g++", "clang++"],
        "C": [box.environ.get("CC", ""), "gcc", "clang", "cc"],
    }
    search_path = box.environ.get("PATH")
    compilers = {}
    for kind, names in candidates.items():
        compilers[kind] = _find_program(names, search_path)
    missing = [f"a {kind} compiler" for kind, path in compilers.items() if not path]
    if not os.path.exists(Path(sysconfig.get_path("include"), "Python.h")):
        missing.append("Python's headers")
    if missing:
        return warn(
            f"missing: {', '.join(missing)}; torch.compile fails, or runs without compiling",
            "apt install g++ python3-dev",
        )
    return passed(f"{compilers['C++']}, {compilers['C']}, Python.h")


def _find_program(names: Iterable[str], search_path: str | None) -> str:
    """Return the path of the first of these programs that is installed, or an empty string."""
    for name in names:
        path = shutil.which(name, path=search_path)
        if path:
            return path
    return ""


def compiled_code(box: Box) -> DoctorFinding:
    """Check whether the code of torch.compile can be loaded: the folder may be mounted noexec."""
    folder = Path(box.environ.get("TORCHINDUCTOR_CACHE_DIR") or tempfile.gettempdir())
    existing = [parent for parent in (folder, *folder.parents) if os.path.exists(parent)]
    nearest = existing[0]
    if os.statvfs(nearest).f_flag & os.ST_NOEXEC:
        return warn(
            f"{nearest} is mounted noexec: torch.compile cannot load the code that it compiled",
            "export TORCHINDUCTOR_CACHE_DIR=~/.cache/inductor",
        )
    return passed(f"torch.compile can load its code from {nearest}")


CHECKS = {
    "tools.numactl": numactl,
    "tools.iomp": functools.partial(_library, "Intel OpenMP", "pip install intel-openmp"),
    "tools.jemalloc": functools.partial(_library, "jemalloc", "apt install libjemalloc2"),
    "tools.tcmalloc": functools.partial(_library, "tcmalloc", "apt install libtcmalloc-minimal4"),
    "tools.compiler": compiler,
    "tools.compiled_code": compiled_code,
}
