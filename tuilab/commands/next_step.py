"""Advise in a sentence what to look at next: the part of a step that promises the largest gain.

Only the parts that were measured are considered.
"""

from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

from tuilab.commands.step_parts import (
    BACKWARD,
    DATA,
    FORWARD,
    LOGGING,
    OPTIMIZER,
    REST,
    WITH_FORWARD,
)
from tuilab.text.display import plural

# Steps. A loader with workers brings batches in bursts, so the mean of fewer steps says little.
LEAST = 20
# Percent. Without such waits, a step is 1.1 times as fast. A race with a few processes can still
# detect that.
_WAITING = 10
# Percent. A part of this work has to be done in any case, so the bound is twice as high.
_BESIDE = 20
# Times. A forward alone usually takes less time than its backward, and almost never three times as
# much.
_LONGER = 3
# Percent. From here on, a GPU or another number format would speed up most of a step.
_COMPUTING = 50

_MORE_WORKERS = "use more DataLoader workers"
_LESS_WORK = "do less work for each item, or prepare batches in advance"
_LESSON = "see `tuilab run loader-workers`"
_ADVICE = {
    DATA: (_WAITING, f"{_MORE_WORKERS}, or do less work for each item; {_LESSON}"),
    LOGGING: (_BESIDE, "log fewer values, or not in every step"),
    OPTIMIZER: (
        _BESIDE,
        (
            "try an optimizer with fused=True; `tuilab run fuse-optimizer` measures the gain on"
            " this machine"
        ),
    ),
    REST: (
        _BESIDE,
        (
            "check the rest of the loop: logging, metrics, callbacks, checkpoints, validation,"
            " batches without a DataLoader"
        ),
    ),
}
_COMPUTE = "try bfloat16 or torch.compile; `tuilab ab` compares the command with and without them"


class Loading(NamedTuple):
    """How a command loads its data, as far as the advice needs it."""

    # The largest number of workers of a DataLoader, in the process that the advice is about.
    workers: int
    is_iterable: bool  # whether a dataset is an IterableDataset
    # The processes of the command that load data: workers, and training processes without workers.
    processes: int
    cores: int  # that the command may use
    is_starved: bool  # whether the command waits because other processes use these cores
    are_idle: bool  # whether these cores were seen to have time left


def loading_of(
    hello: Mapping[str, Any],
    others: Collection[Mapping[str, Any]],
    cores: int,
    *,
    is_starved: bool = False,
    are_idle: bool = False,
) -> Loading | None:
    """Return how a process loads its data; None if the process used no DataLoader.

    `hello` is what this process reported, and `others` is what the other training processes
    reported.
    """
    own_loaders = _loaders(hello)
    if not own_loaders:
        return None
    workers = max(loader["workers"] for loader in own_loaders)
    processes = max(workers, 1)
    for other in others:
        processes += max([loader["workers"] for loader in _loaders(other)], default=0) or 1
    said = hello.get("cores")
    usable = min(said, cores) if isinstance(said, int) and said > 0 else cores
    return Loading(
        workers,
        any(loader["is_iterable"] for loader in own_loaders),
        processes,
        usable,
        is_starved,
        are_idle,
    )


def _loaders(hello: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return what a process reported about its loaders.

    Any code of the process may write into its marks. Entries that the watcher would not write are
    therefore left out.
    """
    entries = hello.get("loaders")
    loaders = []
    for facts in entries if isinstance(entries, list) else []:
        workers = facts.get("workers") if isinstance(facts, dict) else None
        if isinstance(workers, int) and 0 <= workers < 100_000:
            loaders.append({"workers": workers, "is_iterable": facts.get("is_iterable") is True})
    return loaders


def _advice_on_data(loading: Loading | None) -> str:
    """Return advice against waits for data: more workers only if there are cores for them."""
    if loading is None:
        return _ADVICE[DATA][1]
    if loading.is_starved:
        limit = (
            "other processes use the cores, so more workers help only if loading waits, for example"
            " for a disk"
        )
        return f"{_LESS_WORK}; {limit}"
    if loading.processes >= loading.cores and not loading.are_idle:
        load = "process loads" if loading.processes == 1 else "processes load"
        return (
            f"{_LESS_WORK}; {loading.processes} {load} data already, and the command can use"
            f" {plural(loading.cores, 'core')}"
        )
    has = f"{_MORE_WORKERS} (now {loading.workers}, for {plural(loading.cores, 'core')}"
    if loading.processes >= loading.cores:
        has += " that are partly idle"
    has += ")"
    if loading.is_iterable:
        has += ", if the IterableDataset divides its items among the workers"
    return f"{has}, or do less work for each item; {_LESSON}"


def next_step(
    shares: Mapping[str, float],
    steps: int,
    *,
    is_alone: bool = True,
    loading: Loading | None = None,
) -> str:
    """Return the advice; an empty string if too little was measured, or if no part is large.

    If there are several ranks, a backward computes, exchanges gradients and waits for other ranks.
    How much time each of these takes is not measured, so `is_alone` is False for such a rank, and
    there is no advice about its computation.
    """
    if steps < LEAST:
        return ""
    beside = {
        part: shares[part] for part, (least, _) in _ADVICE.items() if shares.get(part, 0) >= least
    }
    if beside:
        part = max(beside, key=lambda part_name: beside[part_name])
        advice = _advice_on_data(loading) if part == DATA else _ADVICE[part][1]
        return f"largest avoidable part: {part}, {beside[part]:.0f} %; {advice}"
    both, backward = shares.get(WITH_FORWARD, 0), shares.get(BACKWARD, 0)
    if BACKWARD in shares and both >= max(_COMPUTING, _LONGER * backward):
        longer = f"{BACKWARD}, usually longer than a forward, takes only {backward:.0f} %"
        return (
            f"largest avoidable part: {WITH_FORWARD}, {both:.0f} % ({longer}); {_ADVICE[REST][1]}"
        )
    computing = shares.get(FORWARD, 0) + shares.get(BACKWARD, 0)
    if computing < _COMPUTING or not is_alone:
        return ""
    names = f"{FORWARD} and {BACKWARD}" if FORWARD in shares else BACKWARD
    return f"largest part: {names}, {computing:.0f} %; {_COMPUTE}"
