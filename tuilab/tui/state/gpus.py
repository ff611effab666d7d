"""The GPUs of this machine, as a form lists them.

A process of its own asks NVML, because NVML may hang or crash.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tuilab.probes.gpu.is_present import is_gpu_there
from tuilab.probes.gpu.own_process import NvmlProcess
from tuilab.text.display import plural, show
from tuilab.text.words import size

NO_USERS = "no processes"

_PAUSE_S = 5.0  # between two questions


@dataclass(frozen=True)
class ListedGpu:
    """A GPU that a run can use, in words."""

    label: str  # the name that CUDA has for it, if that is known
    free: str
    users: str
    name: str


@dataclass(frozen=True)
class GpuList:
    """The GPUs, and notes on what is not known about them."""

    gpus: tuple[ListedGpu, ...] = ()
    notes: tuple[str, ...] = ()


class GpuQuestion:
    """Asks for the GPUs every few seconds while the user looks; without a driver only once."""

    def __init__(self) -> None:
        self._process: NvmlProcess | None = None
        self._asked_s = -_PAUSE_S
        self._is_refused = False

    def is_due(self, now_s: float) -> bool:
        """Return whether to ask now.

        The last question must be answered and a few seconds old, and must not have been refused.
        """
        is_idle = self._process is None and not self._is_refused
        return is_idle and now_s - self._asked_s >= _PAUSE_S

    def begin(self, now_s: float) -> None:
        """Start the process that asks. Raise OSError if it cannot be started."""
        self._asked_s = now_s
        self._process = NvmlProcess("list")

    def answer(self) -> GpuList | None:
        """Wait for the answer, in a thread of its own, and end the process that was asked.

        Return None if the question was closed meanwhile, or if the machine has no GPU. If the
        process has refused to answer, there are no further questions.
        """
        process = self._process
        if process is None:
            return None
        answer = process.next()
        was_closed = self._process is None
        self.close()
        self._is_refused = not isinstance(answer, str) and "refusal" in answer
        if was_closed:
            return None
        return listed(answer)

    def close(self) -> None:
        """End the question. A thread that waits for the answer continues at once."""
        process = self._process
        self._process = None  # first, because the waiting thread calls this method as well
        if process is not None:
            process.close()


def listed(answer: Mapping[str, Any] | str) -> GpuList | None:
    """Return the answer of the process in words; None on a machine without a GPU.

    An answer that is a text is the reason why the process could not answer.
    """
    if isinstance(answer, str):
        answer = {"refusal": answer}
    refusal = answer.get("refusal", "")
    if refusal:
        if not is_gpu_there():
            return None
        return GpuList((), (f"the GPUs are not known: {show(refusal, 200)}",))
    rows = answer.get("listed", [])
    notes = []
    if answer.get("no_numbers"):
        notes.append(f"it is not known which GPU is cuda:0: {show(answer['no_numbers'], 200)}")
    reasons = [show(row["why"], 200) for row in rows if row["why"]]
    for reason in dict.fromkeys(reasons):
        notes.append(f"processes on the GPUs n/a: {reason}")
    gpus = [_describe_gpu(row) for row in rows]
    return GpuList(tuple(gpus), tuple(notes))


def _describe_gpu(row: Mapping[str, Any]) -> ListedGpu:
    """Return a GPU in words; "n/a" stands for free memory or users that are not known."""
    if row["bytes_free"] is None:
        free = "free n/a"
    else:
        free = f"{size(row['bytes_free'])} free"
    # "why" is the reason why the processes on this GPU are not known.
    users = "n/a" if row["why"] else _describe_users(row["tenants"])
    name = show(row["name"], 60).removeprefix("NVIDIA ")
    return ListedGpu(show(row["label"], 40), free, users, name)


def _describe_users(tenants: Sequence[Mapping[str, Any]]) -> str:
    """Return `ana 61 GiB (pid 812), bo 2 GiB (3 processes)` for the tenants of a GPU.

    A tenant is a process that uses the GPU. If no user is known, pids are left out: they may be
    those of another namespace.
    """
    if not tenants:
        return NO_USERS
    by_user: dict[str, list[Mapping[str, Any]]] = {}
    for tenant in tenants:
        by_user.setdefault(tenant["user"], []).append(tenant)
    has_pids = any(by_user)  # the name of an unknown user is empty
    users = []
    for user, own_tenants in by_user.items():
        users.append(_describe_user(show(user, 32), own_tenants, has_pids))
    return ", ".join(users)


def _describe_user(user: str, tenants: Sequence[Mapping[str, Any]], has_pids: bool) -> str:
    """Return `bo 2 GiB (3 processes)`; for an unknown user, which is empty, `3 processes, 2 GiB`.

    A single process has its pid instead of the count, if `has_pids`. Memory that is not known is
    left out.
    """
    if len(tenants) == 1 and has_pids:
        processes = f"pid {tenants[0]['pid']}"
    else:
        processes = plural(len(tenants), "process", "processes")
    all_sizes = [tenant["bytes_used"] for tenant in tenants]
    sizes = [bytes_used for bytes_used in all_sizes if bytes_used is not None]
    if not sizes:
        return f"{user} ({processes})" if user else processes
    memory = size(sum(sizes))
    if not user:
        return f"{processes}, {memory}"
    return f"{user} {memory} ({processes})"
