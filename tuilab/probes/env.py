"""Read the facts about the software: versions, variables of training, the commit; no secrets."""

import os
import platform
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tuilab.probes import NotKnown, gather
from tuilab.probes.settings import VARIABLES
from tuilab.text.display import show

PACKAGES = ("tuilab", "torch", "numpy", "triton", "nvidia-ml-py", "textual", "plotext", "psutil")

_GIT_PATIENCE_S = 2.0
# A repository may be hostile: git must start no monitor, hook or pager, take no lock, ask no
# question, and fetch no missing objects.
_GIT = ("git", "--no-pager", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null")
_GIT_ENVIRONMENT = {
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_ALLOW_PROTOCOL": "none",
    "LC_ALL": "C",
}


def environment_facts(folder: Path | None = None) -> dict[str, Any]:
    """Return the facts about the software, and about the commit that a folder has checked out."""
    questions: dict[str, Callable[[], Any]] = {
        "python": platform.python_version,
        "packages": _packages,
        "variables": _variables,
        "kernel": lambda: show(os.uname().release, 200),
        "machine": lambda: os.uname().machine,
        "libc": _libc,
        "host": lambda: show(os.uname().nodename, 200),
    }
    if folder is not None:
        questions["checkout"] = lambda: _checkout(folder)
    return gather(questions)


def torch_facts(torch: Any) -> dict[str, Any]:
    """Return the facts about an imported torch, without using a GPU."""
    return gather(
        {
            "version": lambda: str(torch.__version__),
            "build": lambda: _torch_build(torch),
            "cudnn": lambda: _cudnn(torch),
            "threads": lambda: torch.get_num_threads(),
            "interop_threads": lambda: torch.get_num_interop_threads(),
            "parallel_info": lambda: _parallel_info(torch),
            "cpu_capability": lambda: torch.backends.cpu.get_cpu_capability(),
            "has_avx512_bf16": lambda: bool(torch.cpu._is_avx512_bf16_supported()),
            "has_amx_tile": lambda: bool(torch.cpu._is_amx_tile_supported()),
        }
    )


def _packages() -> dict[str, str]:
    """Return the versions of the packages that are installed."""
    from importlib import metadata  # imported here: it loads slowly, and workers do not need it

    versions = {}
    for name in PACKAGES:
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return versions


def _variables() -> dict[str, str]:
    return {name: show(os.environ[name]) for name in VARIABLES if name in os.environ}


def _libc() -> str:
    """Return the version of the C library, such as `glibc 2.36`.

    Raises NotKnown for a library that does not report it, such as musl.
    """
    try:
        libc = os.confstr("CS_GNU_LIBC_VERSION")
    except ValueError:
        libc = None
    if libc is None:
        raise NotKnown("this libc does not report its version")
    return libc


def _checkout(folder: Path) -> dict[str, Any]:
    commit = _git(folder, "rev-parse", "--verify", "HEAD").strip()
    return {"commit": commit, **gather({"is_dirty": lambda: _is_dirty(folder)})}


def _is_dirty(folder: Path) -> bool:
    """Return whether tracked files differ from the commit.

    NotKnown if git would run commands of the repository to find out.
    """
    scopes = _git(
        folder, "config", "--show-scope", "--name-only", "--get-regexp", r"^filter\.", may_fail=True
    )
    if any(line.startswith(("local", "worktree")) for line in scopes.splitlines()):
        raise NotKnown(
            "not looked: the repository has filters of its own, and looking would run them"
        )
    status = _git(
        folder, "status", "--porcelain", "--untracked-files=no", "--ignore-submodules=all"
    )
    return status != ""


def _git(folder: Path, *words: str, may_fail: bool = False) -> str:
    """Return the output of a git command in a folder.

    Raises NotKnown if git is missing, is too slow, or fails; with `may_fail`, a failure is fine.
    """
    environment = dict(_GIT_ENVIRONMENT)
    for name, value in os.environ.items():
        if not name.startswith("GIT_"):
            environment.setdefault(name, value)
    command = [*_GIT, "-C", os.fspath(folder), *words]
    try:
        completed = subprocess.run(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_GIT_PATIENCE_S,
        )
    except FileNotFoundError as problem:
        raise NotKnown("git is not installed") from problem
    except subprocess.TimeoutExpired as problem:
        raise NotKnown(f"git did not answer in {_GIT_PATIENCE_S:g} s") from problem
    if completed.returncode and not may_fail:
        first_line = completed.stderr.decode(errors="replace").partition("\n")[0]
        raise NotKnown(first_line.removeprefix("fatal: ") or "git failed")
    return completed.stdout.decode(errors="replace")


def _torch_build(torch: Any) -> str:
    if torch.version.cuda:
        return f"cuda {torch.version.cuda}"
    if torch.version.hip:
        return f"hip {torch.version.hip}"
    return "cpu"


def _parallel_info(torch: Any) -> list[str]:
    lines = torch.__config__.parallel_info().splitlines()
    return [show(line, 200) for line in lines[:12]]


def _cudnn(torch: Any) -> int:
    """Return the version of cuDNN as a number; raise NotKnown if this torch has none."""
    # Not torch.backends.cudnn.version(): it makes a context on every GPU to compare them.
    cudnn = getattr(torch._C, "_cudnn", None)
    if cudnn is None:
        raise NotKnown("not in this build of torch")
    return int(cudnn.getVersionInt())
