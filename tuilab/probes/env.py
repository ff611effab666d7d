"""The software around a run: versions, the variables that steer threads and allocators, the commit; never a secret."""

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
# A repository may be hostile: no monitor, no hook, no lock, no pager, no question, no fetch of what is missing.
_GIT = ("git", "--no-pager", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null")
_GIT_ENVIRONMENT = {
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_ALLOW_PROTOCOL": "none",
    "LC_ALL": "C",
}


def environment_facts(folder: Path | None = None) -> dict[str, Any]:
    """Return the software of this box and, when `folder` is given, the commit that is checked out there."""
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
    """Return what an imported torch is; it touches no GPU."""
    return gather(
        {
            "version": lambda: str(torch.__version__),
            "build": lambda: _torch_build(torch),
            "cudnn": lambda: _cudnn(torch),
            "threads": lambda: torch.get_num_threads(),
            "interop_threads": lambda: torch.get_num_interop_threads(),
            "parallel_info": lambda: [
                show(line, 200) for line in torch.__config__.parallel_info().splitlines()[:12]
            ],
            "cpu_capability": lambda: torch.backends.cpu.get_cpu_capability(),
            "has_avx512_bf16": lambda: bool(torch.cpu._is_avx512_bf16_supported()),
            "has_amx_tile": lambda: bool(torch.cpu._is_amx_tile_supported()),
        }
    )


def _packages() -> dict[str, str]:
    """Return the versions of the packages that are installed."""
    from importlib import metadata  # workers ask for nothing of it, and it is slow to load

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
    """Return `glibc 2.36`; musl does not tell."""
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
    """Say whether tracked files differ from the commit; not asked of a repository that would run its own commands."""
    scopes = _git(
        folder, "config", "--show-scope", "--name-only", "--get-regexp", r"^filter\.", may_fail=True
    )
    if any(line.startswith(("local", "worktree")) for line in scopes.splitlines()):
        raise NotKnown(
            "not looked: the repository has filters of its own, and looking would run them"
        )
    return bool(
        _git(folder, "status", "--porcelain", "--untracked-files=no", "--ignore-submodules=all")
    )


def _git(folder: Path, *words: str, may_fail: bool = False) -> str:
    """Return what git says of `folder`."""
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith("GIT_")
    } | _GIT_ENVIRONMENT
    command = [*_GIT, "-C", os.fspath(folder), *words]
    try:
        ran = subprocess.run(
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
    if ran.returncode and not may_fail:
        raise NotKnown(
            ran.stderr.decode(errors="replace").partition("\n")[0].removeprefix("fatal: ")
            or "git failed"
        )
    return ran.stdout.decode(errors="replace")


def _torch_build(torch: Any) -> str:
    if torch.version.cuda:
        return f"cuda {torch.version.cuda}"
    return f"hip {torch.version.hip}" if torch.version.hip else "cpu"


def _cudnn(torch: Any) -> int:
    cudnn = getattr(
        torch._C, "_cudnn", None
    )  # torch.backends.cudnn.version() makes a context on every GPU to compare them
    if cudnn is None:
        raise NotKnown("not in this build of torch")
    return int(cudnn.getVersionInt())
