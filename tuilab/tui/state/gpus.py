"""The GPUs of this box as the form of a scenario lists them: asked of NVML by a process of its own, which may hang or crash."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tuilab.probes.gpu.is_present import is_gpu_there
from tuilab.probes.gpu.own_process import NvmlProcess
from tuilab.text.display import plural, show
from tuilab.text.words import size

_AGAIN_S = 5.0


@dataclass(frozen=True)
class ListedGpu:
    """One that a run can have, in words."""

    label: str  # as CUDA names it, where that is known
    free: str
    who: str
    name: str


@dataclass(frozen=True)
class GpuList:
    """What was found, and why not more."""

    gpus: tuple[ListedGpu, ...] = ()
    notes: tuple[str, ...] = ()


class GpuQuestion:
    """Asks when somebody looks, but not again at once; on a box without a driver never again."""

    def __init__(self) -> None:
        self._apart: NvmlProcess | None = None
        self._asked_at = -_AGAIN_S
        self._is_refused = False

    def is_due(self, now_s: float) -> bool:
        """Say whether to ask now."""
        return self._apart is None and not self._is_refused and now_s - self._asked_at >= _AGAIN_S

    def begin(self, now_s: float) -> None:
        """Start the process that asks; OSError where there can be none."""
        self._asked_at = now_s
        self._apart = NvmlProcess("list")

    def answer(self) -> GpuList | None:
        """Wait for the answer, in a thread that may wait; None where nobody wants it any more, or there is nothing to say."""
        if (apart := self._apart) is None:
            return None
        said = apart.next()
        is_closed = self._apart is None
        self.close()
        self._is_refused = not isinstance(said, str) and "refusal" in said
        return None if is_closed else listed(said)

    def close(self) -> None:
        """Ask no more; an answer that is waited for comes at once."""
        apart, self._apart = self._apart, None  # the thread that waits closes it, too
        if apart is not None:
            apart.close()


def listed(said: Mapping[str, Any] | str) -> GpuList | None:
    """Return what the process said, in words; None on a box without a GPU."""
    refusal = said if isinstance(said, str) else said.get("refusal", "")
    if refusal:
        return (
            GpuList((), (f"the GPUs are not known: {show(refusal, 200)}",))
            if is_gpu_there()
            else None
        )
    assert not isinstance(said, str)
    rows = said.get("listed", [])
    reasons = [show(row["why"], 200) for row in rows if row["why"]]
    numbers = (
        [f"it is not known which GPU is cuda:0: {show(said['no_numbers'], 200)}"]
        if said.get("no_numbers")
        else []
    )
    unseen = [f"processes on the GPUs n/a: {reason}" for reason in dict.fromkeys(reasons)]
    return GpuList(tuple(_words(row) for row in rows), tuple(numbers + unseen))


def _words(row: Mapping[str, Any]) -> ListedGpu:
    free = "free n/a" if row["bytes_free"] is None else f"{size(row['bytes_free'])} free"
    who = "n/a" if row["why"] else _who(row["tenants"])
    return ListedGpu(
        show(row["label"], 40), free, who, show(row["name"], 60).removeprefix("NVIDIA ")
    )


def _who(tenants: list[dict[str, Any]]) -> str:
    """Return `ana 61 GiB (pid 812), bo 2 GiB (3 processes)`; where no user is known, pids may not be those seen here."""
    by_user: dict[str, list[dict[str, Any]]] = {}
    for tenant in tenants:
        by_user.setdefault(tenant["user"], []).append(tenant)
    are_pids_ours = any(by_user)
    return (
        ", ".join(_one(show(user, 32), found, are_pids_ours) for user, found in by_user.items())
        or "no processes"
    )


def _one(user: str, found: list[dict[str, Any]], are_pids_ours: bool) -> str:
    known = [one["bytes_used"] for one in found if one["bytes_used"] is not None]
    amount = f" {size(sum(known))}" if known else ""
    which = (
        f"pid {found[0]['pid']}"
        if len(found) == 1 and are_pids_ours
        else plural(len(found), "process", "processes")
    )
    return f"{user}{amount} ({which})" if user else f"{which}{amount and ','}{amount}"
