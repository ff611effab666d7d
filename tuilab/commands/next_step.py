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
from tuilab.text.display import join, plural

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
# Percent of the waits for data. If the start and end of workers take so much, more workers make
# these waits longer.
_STARTING = 50
# Percent. From here on, a GPU or another number format would speed up most of a step.
_COMPUTING = 50

_MOST_WORKERS = 100_000  # of a loader; a larger number was not written by the watcher
_MORE_WORKERS = "use more DataLoader workers"
_LESS_WORK = "do less work for each item, or prepare batches in advance"
_LESSON = "see `tuilab run loader-workers`"
_KEEP_WORKERS = (
    "{share:.0f} % of these waits start workers, and end them after each loop; create the"
    " DataLoader once, with persistent_workers=True; see `tuilab run loader-persist`"
)
_INDEX_TENSORS = (
    "its items are tensors in memory, which workers would only copy; take whole batches from the"
    " tensors by index, without a DataLoader"
)
_FUSE = (
    "try fused=True for {optimizers}; `tuilab run fuse-optimizer` measures the gain on this machine"
)
_CHECK_LOOP = (
    "check the rest of the loop: logging, metrics, callbacks, checkpoints, validation, batches"
    " without a DataLoader"
)
# Collections are within other parts, so only what is left of these parts is compared with them.
_GARBAGE = (
    "largest avoidable part: garbage collection, {share:.0f} %; before the loop call gc.collect()"
    " and gc.freeze(), in the loop collect rarely and make fewer reference cycles; see"
    " `tuilab run gc-pause`"
)
# A part of the backward, measured in the steps of DistributedDataParallel that torch samples.
EXCHANGE = "exchange of gradients that no computation hides"
# By part: from how many percent of a step the advice is given, and the advice.
_ADVICE = {
    EXCHANGE: (_WAITING, 'see "all ranks"'),
    DATA: (_WAITING, f"{_MORE_WORKERS}, or do less work for each item; {_LESSON}"),
    LOGGING: (_BESIDE, "log fewer values, or not in every step"),
    OPTIMIZER: (_BESIDE, _FUSE),
    REST: (_BESIDE, _CHECK_LOOP),
}
_MENTIONED = 1  # percent: a share of the watcher from which on the advice mentions it
_HALVES = ("float16", "bfloat16")
_TUNE = "`tuilab tune` tries such changes on the script"


class Computing(NamedTuple):
    """What a process could use, and does not use yet as far as the watcher sees."""

    # The classes of its optimizers, if all of them accept fused=True and none of them uses it.
    unfused: tuple[str, ...] = ()
    untried: tuple[str, ...] = ()  # ways to compute faster


_UNKNOWN = Computing()


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
    is_persistent: bool = False  # whether the workers of every loader outlive a loop
    is_in_memory: bool = False  # whether every loader takes its items from a TensorDataset


def computing_of(hello: Mapping[str, Any], *, has_fast_bfloat16: bool) -> Computing:
    """Return what a process could use to compute faster, from what the process reported.

    A CPU without `has_fast_bfloat16` often multiplies bfloat16 numbers more slowly than float32.

    Without a report about its optimizers, nothing is known: an older watcher wrote the marks, or no
    optimizer of torch has stepped.
    """
    optimizers = _groups(hello, "optimizers")
    if not optimizers:
        return _UNKNOWN
    unfused: list[str] = []
    for facts in optimizers:
        if facts.get("takes_fused") is True and facts.get("is_fused") is False:
            unfused.append(str(facts.get("class", "the optimizer")))
    if len(unfused) < len(optimizers):  # an optimizer that cannot be fused may take all the time
        unfused = []
    untried = []
    if has_fast_bfloat16 and hello.get("dtype") not in _HALVES:
        untried.append("bfloat16")
    if hello.get("has_compiled") is False:
        untried.append("torch.compile")
    return Computing(tuple(dict.fromkeys(unfused)), tuple(untried))


def loading_of(
    hello: Mapping[str, Any],
    other_hellos: Collection[Mapping[str, Any]],
    cores: int,
    *,
    is_starved: bool = False,
    are_idle: bool = False,
) -> Loading | None:
    """Return how a process loads its data; None if the process used no DataLoader.

    `hello` is what this process reported, and `other_hellos` is what the other training processes
    reported.
    """
    own_loaders = _loaders(hello)
    if not own_loaders:
        return None
    # A process without workers loads its data itself.
    processes = max(_most_workers(own_loaders), 1)
    for other_hello in other_hellos:
        processes += max(_most_workers(_loaders(other_hello)), 1)
    reported_cores = hello.get("cores")
    if isinstance(reported_cores, int) and reported_cores > 0:
        cores = min(reported_cores, cores)
    return Loading(
        workers=_most_workers(own_loaders),
        is_iterable=any(loader["is_iterable"] for loader in own_loaders),
        processes=processes,
        cores=cores,
        is_starved=is_starved,
        are_idle=are_idle,
        is_persistent=_are_workers_kept(own_loaders),
        is_in_memory=all(loader["is_in_memory"] for loader in own_loaders),
    )


def _are_workers_kept(loaders: Collection[Mapping[str, Any]]) -> bool:
    """Return whether no loader has workers that end with a loop."""
    return all(loader["is_persistent"] for loader in loaders if loader["workers"])


def _most_workers(loaders: Collection[Mapping[str, Any]]) -> int:
    """Return the largest number of workers of a loader; 0 if there is no loader."""
    return max((loader["workers"] for loader in loaders), default=0)


def _loaders(hello: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return what a process reported about its loaders.

    Entries that the watcher would not write are left out.
    """
    loaders = []
    for facts in _groups(hello, "loaders"):
        workers = facts.get("workers")
        if not isinstance(workers, int) or not 0 <= workers < _MOST_WORKERS:
            continue
        loader: dict[str, Any] = {"workers": workers}
        for name in ("is_iterable", "is_persistent", "is_in_memory"):
            loader[name] = facts.get(name) is True
        loaders.append(loader)
    return loaders


def _groups(hello: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    """Return the groups of facts that a process reported under a name.

    Any code of the process may write into its marks, so the name may stand for anything.
    """
    groups = hello.get(name)
    if not isinstance(groups, list):
        return []
    return [group for group in groups if isinstance(group, dict)]


def _advice_on(part: str, loading: Loading | None, starting: float, computing: Computing) -> str:
    if part == DATA:
        return _advice_on_data(loading, starting)
    if part == OPTIMIZER:
        return _FUSE.format(optimizers=join(computing.unfused))
    return _ADVICE[part][1]


def _advice_on_data(loading: Loading | None, starting: float) -> str:
    """Return advice against waits for data: more workers only if there are cores for them.

    `starting` is the share of these waits that start and end workers, in percent.
    """
    if loading is None:
        return _ADVICE[DATA][1]
    if starting >= _STARTING and loading.workers and not loading.is_persistent:
        return _KEEP_WORKERS.format(share=starting)
    if loading.is_in_memory:
        return _INDEX_TENSORS
    if loading.is_starved:
        limit = "more workers help only if loading waits, for example for a disk"
        return f"{_LESS_WORK}; other processes use the cores, so {limit}"
    cores = plural(loading.cores, "core")
    are_taken = loading.processes >= loading.cores
    if are_taken and not loading.are_idle:
        load = "process loads" if loading.processes == 1 else "processes load"
        limit = f"{loading.processes} {load} data already, and the command can use {cores}"
        return f"{_LESS_WORK}; {limit}"
    if are_taken:
        cores += " that are partly idle"
    more_workers = f"{_MORE_WORKERS} (now {loading.workers}, for {cores})"
    if loading.is_iterable:
        more_workers += ", if the IterableDataset divides its items among the workers"
    return f"{more_workers}, or do less work for each item; {_LESSON}"


def _without_watching(shares: Mapping[str, float], watching: float) -> dict[str, float]:
    """Return the shares of the parts, with a rest that is less by that of the watcher."""
    own_shares = dict(shares)
    for name in (REST, WITH_FORWARD):
        if name in own_shares:
            own_shares[name] = max(own_shares[name] - watching, 0.0)
    return own_shares


def next_step(
    shares: Mapping[str, float],
    steps: int,
    *,
    is_alone: bool = True,
    loading: Loading | None = None,
    starting: float = 0.0,
    computing: Computing = _UNKNOWN,
    exchange: float = 0.0,
    garbage: float = 0.0,
    watching: float = 0.0,
    is_rest_mixed: bool = False,
) -> str:
    """Return the advice; an empty string if too little was measured, or if no part is large.

    `starting` is the share of the waits for data that start and end workers, in percent.
    `garbage` is the share of the steps in which Python collected garbage, in percent. `watching` is
    the share that the watcher took. Its hooks run between the other parts, so this is subtracted
    from the rest. If `is_rest_mixed`, the rest includes work of an optimizer between the calls of
    its closure, so there is no advice about the rest.

    If there are several ranks, a backward computes, exchanges gradients and waits for other ranks.
    `exchange` is the share of the last two, in percent, as far as torch measured it. The share of
    the computation is not known, so `is_alone` is False for such a rank, and there is no advice
    about its computation.
    """
    if steps < LEAST:
        return ""
    shares = _without_watching(shares, watching)
    if is_rest_mixed:
        shares.pop(REST, None)
        shares.pop(WITH_FORWARD, None)
    without_watching = " without watching" if watching >= _MENTIONED else ""
    large_parts: dict[str, float] = {}
    candidates = {**shares, EXCHANGE: exchange}
    for part, (least, _) in _ADVICE.items():
        share = candidates.get(part, 0)
        if share >= least:
            large_parts[part] = share
    if not computing.unfused:
        large_parts.pop(OPTIMIZER, None)
    largest_share = max(large_parts.values(), default=0.0)
    if garbage >= _WAITING and garbage >= largest_share - garbage:
        return _GARBAGE.format(share=garbage)
    if large_parts:
        largest = max(large_parts, key=lambda part: large_parts[part])
        advice = _advice_on(largest, loading, starting, computing)
        share_text = f"{largest_share:.0f} %"
        if largest == REST:
            share_text += without_watching
        return f"largest avoidable part: {largest}, {share_text}; {advice}"
    backward = shares.get(BACKWARD, 0)
    forward_and_rest = shares.get(WITH_FORWARD, 0)
    if BACKWARD in shares and forward_and_rest >= max(_COMPUTING, _LONGER * backward):
        part = f"{WITH_FORWARD}, {forward_and_rest:.0f} %{without_watching}"
        longer = f"{BACKWARD}, usually longer than a forward, takes only {backward:.0f} %"
        return f"largest avoidable part: {part} ({longer}); {_CHECK_LOOP}"
    computed = shares.get(FORWARD, 0) + backward
    if computed < _COMPUTING or not is_alone or not computing.untried:
        return ""
    names = f"{FORWARD} and {BACKWARD}" if FORWARD in shares else BACKWARD
    ways = " or ".join(computing.untried)
    return f"largest part: {names}, {computed:.0f} %; try {ways}; {_TUNE}"
