"""What to look at next, in a sentence: the part of a step that most could be gained of, as far as it was measured."""

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

LEAST = (
    20  # steps: a loader with workers brings batches in bursts, so that the mean of few says little
)
_WAITING = 10  # percent: without any waits a step is then 1.1 times as fast, which a race of a few processes can still tell
_BESIDE = 20  # percent: of what has to be done some stays, so that twice as much is asked for
_LONGER = 3  # times: a forward by itself is mostly shorter than its backward, and hardly ever that much longer
_COMPUTING = 50  # percent: then most of a step is what a GPU or other numbers would make faster

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

    workers: int  # of the DataLoader with the most, in the process that the advice is about
    is_iterable: bool  # whether a dataset yields its items
    processes: int  # that load, in all of the command: workers, and training processes without any
    cores: int  # that the command may use
    is_starved: bool  # whether other processes use them
    are_idle: bool  # whether they were seen to have time left


def loading_of(
    hello: Mapping[str, Any],
    others: Collection[Mapping[str, Any]],
    cores: int,
    *,
    is_starved: bool = False,
    are_idle: bool = False,
) -> Loading | None:
    """Return how a process loads, by what it and the other training processes said; None if it used no DataLoader."""
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
    """Return what a process said of its loaders, if it is what the watcher says: anybody may write into its marks."""
    entries = hello.get("loaders")
    loaders = []
    for facts in entries if isinstance(entries, list) else []:
        workers = facts.get("workers") if isinstance(facts, dict) else None
        if isinstance(workers, int) and 0 <= workers < 100_000:
            loaders.append({"workers": workers, "is_iterable": facts.get("is_iterable") is True})
    return loaders


def _advice_on_data(loading: Loading | None) -> str:
    """Return what to try against waits for data: more workers only if there are cores for them."""
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
    """Return the sentence; nothing where too little was measured, or no part stands out.

    The backward of one of several ranks computes, exchanges gradients and waits for the others: of what, nobody measured.
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
