"""What a run on a node has around it: what Ray gives to processes of its own is no part of that."""

import contextlib
import os
from pathlib import Path

_OF_RAY = "/ray/core/"  # stands in the path of what it loads into every process


def stand_up() -> None:
    """Take the place that Ray itself has beside all others here.

    It has what it starts give way to everybody, and be ended first when memory is short: times would be of that.
    """
    with contextlib.suppress(OSError):  # not everybody may
        os.setpriority(os.PRIO_PROCESS, 0, os.getpriority(os.PRIO_PROCESS, os.getppid()))
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_bytes(Path(f"/proc/{os.getppid()}/oom_score_adj").read_bytes())


def environment() -> dict[str, str]:
    """Return the environment that Ray was started in on this node, and which GPUs are ours.

    What Ray sets for its own processes is not in it: OMP_NUM_THREADS, and an allocator that would take the place of malloc.
    """
    try:
        pairs = Path(f"/proc/{os.getppid()}/environ").read_bytes().split(b"\0")
        found = {
            os.fsdecode(name): os.fsdecode(value) for name, sign, value in (pair.partition(b"=") for pair in pairs) if sign
        }
    except OSError:
        found = {name: value for name, value in os.environ.items() if name != "OMP_NUM_THREADS"}
    found = {name: value for name, value in found.items() if not name.startswith("RAY_")}
    if preloaded := [path for path in found.pop("LD_PRELOAD", "").replace(" ", ":").split(":") if path and _OF_RAY not in path]:
        found["LD_PRELOAD"] = ":".join(preloaded)
    return {**found, **{name: os.environ[name] for name in ("CUDA_VISIBLE_DEVICES",) if name in os.environ}}
