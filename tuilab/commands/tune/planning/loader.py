"""Plan the treatments of the DataLoader."""

import math

from tuilab.commands.step_parts import DATA, FORWARD, REST
from tuilab.commands.tune.planning.candidate import (
    Answer,
    ApplicableTreatment,
    Situation,
    already_set,
    not_applicable,
)
from tuilab.commands.tune.planning.change import CallEdit, Edit
from tuilab.commands.tune.planning.measured_steps import STARTING
from tuilab.commands.tune.planning.possible_gain import PossibleGain
from tuilab.commands.tune.script_facts import LoaderFacts
from tuilab.text.display import percent, plural

_KEPT_BATCHES = 8  # of the ideal loader: enough for batches that differ, and few enough to keep
_MOST_WORKERS = 256
_MOST_WAITING = 16  # workers that wait more than they compute; each has memory of its own
_USUAL_PREFETCH = 2  # of torch, for each worker
_LEAST_PREFETCH = 4
_MOST_PREFETCH = 64
POSITIONAL = 5  # arguments of DataLoader before num_workers
_NO_LOADER = "the training used no DataLoader"


def plan_ideal_loader(situation: Situation) -> Answer:
    """Plan to repeat the first batches, which shows the most that faster loading can gain."""
    if not _loaders(situation):
        return not_applicable(_NO_LOADER)
    change = "none: it only shows how much faster loading could gain"
    return [
        ApplicableTreatment(value=str(_KEPT_BATCHES), gain=_gain_of_data(situation), change=change)
    ]


def plan_workers(situation: Situation) -> Answer:
    """Plan one or two numbers of workers.

    Workers load in time if together they make a batch in the rest of a step. So the number needed
    is the time to make the batches of a step, divided by the rest of the step. The first number is
    this one, but at most the cores that the training leaves free. If more are needed, the second
    number is at most all cores, or even more if loading waits instead of computing.
    """
    loaders = _loaders(situation)
    if not loaders:
        return not_applicable(_NO_LOADER)
    if all(loader.is_iterable for loader in loaders):
        return not_applicable("each worker would yield all items of an IterableDataset")
    present = _main_loader(situation).workers
    cores = situation.cores
    gain = _gain_of_data(situation)
    if present > cores:
        counts = {cores}
        why = f"the {present} workers share {plural(cores, 'core')}, so fewer may be faster"
        gain = PossibleGain(None, why)
    else:
        if present and gain.is_too_small:
            share = percent(situation.steps.share_of(DATA))
            verb = "loads" if present == 1 else "load"
            workers = plural(present, "worker")
            why = f"{workers} {verb} in time: the training waits for data {share} of a step"
            return already_set(why)
        needed = _workers_needed(situation, present)
        free = max(1, cores - _computing_threads(situation))
        counts = {min(needed, free), min(needed, _most_useful(situation, present))}
        counts = {count for count in counts if present < count <= _MOST_WORKERS}
        if not counts:
            taken = "it can use one core" if cores == 1 else f"it can use {cores} cores"
            return already_set(f"the script has {plural(present, 'worker')}, and {taken}")
    return [_more_workers(situation, count, gain) for count in sorted(counts)]


def _more_workers(situation: Situation, count: int, gain: PossibleGain) -> ApplicableTreatment:
    keywords = {"num_workers": str(count), "persistent_workers": "True"}
    return ApplicableTreatment(
        value=str(count),
        title=f"DataLoader with {plural(count, 'worker')}",
        gain=gain,
        change=f"DataLoader(..., num_workers={count}, persistent_workers=True)",
        edits=_edits(_map_style(situation), keywords),
    )


def _workers_needed(situation: Situation, present: int) -> int:
    """Return how many workers load in time, at least 1.

    Without workers, the waits are the time to make the batches. With workers that do not load in
    time, all of them make batches during the whole step. If the waits were not timed, or fill the
    steps, the number is _MOST_WORKERS, which later limits lower.
    """
    steps = situation.steps
    if DATA in steps.lacks or not steps.times:
        return _MOST_WORKERS
    waited_ns = 0
    for step in steps.times:
        waited_ns += step.parts.get(DATA, 0)
        if present:
            waited_ns -= step.parts.get(STARTING, 0)
    rest_ns = steps.total_ns - waited_ns
    loading_ns = present * steps.total_ns if present else waited_ns
    if rest_ns <= 0 or loading_ns > _MOST_WORKERS * rest_ns:
        return _MOST_WORKERS
    return max(1, math.ceil(loading_ns / rest_ns))


def _most_useful(situation: Situation, present: int) -> int:
    """Return how many workers could load at once, at least the number of cores.

    A process that loads without workers uses a core for a share of its time, for example a tenth if
    it waits for a disk. A worker needs at most this share of a core.
    """
    cores = situation.cores
    used_cores = situation.steps.used_cores
    if present or used_cores is None:
        return cores
    return max(cores, math.floor(min(cores / max(used_cores, 0.01), _MOST_WAITING)))


def _computing_threads(situation: Situation) -> int:
    """Return how many cores the training itself uses.

    On a GPU, one thread launches the work. On a CPU, all threads of torch compute.
    """
    if situation.has_gpu:
        return 1
    return max(1, situation.facts.settings.threads)


def plan_persistent(situation: Situation) -> Answer:
    """Plan to keep the workers from one loop over the DataLoader to the next."""
    loaders = _loaders(situation)
    with_workers = [loader for loader in loaders if loader.workers]
    if not with_workers:
        return not_applicable("the DataLoader has no workers" if loaders else _NO_LOADER)
    ending = [loader for loader in with_workers if not loader.keeps_workers]
    if not ending:
        return already_set("the DataLoader keeps its workers")
    if all(loader.loops <= 1 for loader in ending):
        return not_applicable(
            "the watched steps need one loop over the DataLoader, so its workers start once"
        )
    return [
        ApplicableTreatment(
            gain=_gain_from_waits(situation, STARTING, "starting and ending workers takes"),
            change="DataLoader(..., persistent_workers=True)",
            edits=_edits(ending, {"persistent_workers": "True"}),
        )
    ]


def plan_prefetch(situation: Situation) -> Answer:
    """Plan more batches ahead, which helps if single batches take long."""
    loaders = _loaders(situation)
    with_workers = [loader for loader in loaders if loader.workers]
    if not with_workers:
        why = "the DataLoader has no workers, so it prefetches nothing" if loaders else _NO_LOADER
        return not_applicable(why)
    present = max(loader.prefetch or _USUAL_PREFETCH for loader in with_workers)
    if present >= _MOST_PREFETCH:
        return already_set(f"each worker already prefetches {plural(present, 'batch', 'batches')}")
    factor = min(max(2 * present, _LEAST_PREFETCH), _MOST_PREFETCH)
    return [
        ApplicableTreatment(
            value=str(factor),
            title=f"DataLoader that prefetches {factor} batches per worker",
            gain=_gain_of_data(situation),
            change=f"DataLoader(..., prefetch_factor={factor})",
            edits=_edits(with_workers, {"prefetch_factor": str(factor)}),
        )
    ]


def plan_pin(situation: Situation) -> Answer:
    """Plan pinned memory, from which a GPU copies without the CPU.

    The copies are not a part of a step. They are in the rest, or in the forward.
    """
    loaders = _loaders(situation)
    if not loaders:
        return not_applicable(_NO_LOADER)
    if not situation.has_gpu:
        return not_applicable("pinned memory speeds up copies to a GPU, and the script uses none")
    pageable = [loader for loader in loaders if not loader.pins]
    if not pageable:
        return already_set("the DataLoader pins its batches")
    stays = {REST: 0.0}
    subject = "the rest of a step, which includes copies to the GPU, takes"
    if FORWARD not in situation.steps.lacks:
        stays[FORWARD] = 0.0
        subject = "forward and rest, which include copies to the GPU, take"
    change = "DataLoader(..., pin_memory=True), and batch.to(device, non_blocking=True)"
    return [
        ApplicableTreatment(
            gain=situation.gain_without(stays, subject),
            change=change,
            edits=_edits(pageable, {"pin_memory": "True"}),
        )
    ]


# ---- what the treatments have in common


def _loaders(situation: Situation) -> list[LoaderFacts]:
    """Return the DataLoaders from which the training took batches."""
    return [loader for loader in situation.facts.loaders if loader.batches]


def _map_style(situation: Situation) -> list[LoaderFacts]:
    return [loader for loader in _loaders(situation) if not loader.is_iterable]


def _main_loader(situation: Situation) -> LoaderFacts:
    """Return the DataLoader with the most batches among those that could have more workers."""
    return max(_map_style(situation), key=lambda loader: loader.batches)


def _gain_of_data(situation: Situation) -> PossibleGain:
    return _gain_from_waits(situation, DATA, "waiting for data takes")


def _gain_from_waits(situation: Situation, part: str, subject: str) -> PossibleGain:
    """Return the possible gain if a part of the waits for data vanishes."""
    if DATA in situation.steps.lacks:
        return PossibleGain(None, f"{DATA} was not timed: {situation.steps.lacks[DATA]}")
    return situation.gain_without({part: 0.0}, subject)


def _edits(loaders: list[LoaderFacts], keywords: dict[str, str]) -> list[Edit]:
    """Return the edits that give all these DataLoaders the keywords."""
    edits: list[Edit] = []
    for loader in loaders:
        edit = CallEdit(
            place=loader, callee="DataLoader", keywords=keywords, most_positional=POSITIONAL
        )
        edits.append(edit)
    return edits
