"""Plan the treatments of garbage collection, threads, allocators and memory nodes."""

import math
import os
import shlex
from statistics import NormalDist

from tuilab.commands.step_parts import DATA, REST
from tuilab.commands.tune.planning.candidate import (
    Answer,
    ApplicableTreatment,
    Situation,
    already_set,
    not_applicable,
)
from tuilab.commands.tune.planning.possible_gain import (
    CONFIDENCE,
    PossibleGain,
    process_reach,
)
from tuilab.text.display import percent, plural, show

_COMMAND = "COMMAND"  # stands for the command of the user
_CUDA_CONFIG = "PYTORCH_CUDA_ALLOC_CONF"
_CONFIG = "PYTORCH_ALLOC_CONF"  # torch reads it if the other one is not set
_EXPANDABLE = "expandable_segments:True"
_THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS")
_MOST_COLLECTING = 0.99  # of the time: a step itself is assumed to take at least 1 %
_NO_ALLOCATOR_BOUND = "allocating is not timed as a part of a step, so nothing bounds the gain"


def plan_gc_freeze(situation: Situation) -> Answer:
    """Plan to end collections of garbage after the first steps."""
    settings = situation.facts.settings
    if not settings.collections:
        return not_applicable("Python collected no garbage during the watched steps")
    return [
        ApplicableTreatment(
            gain=_gain_of_collecting(situation),
            change="gc.collect(), gc.freeze() and gc.disable() after the first steps",
        )
    ]


def _gain_of_collecting(situation: Situation) -> PossibleGain:
    """Return the possible gain if no garbage is collected.

    The time of all collections is known, but not the step of each short one. So the larger of two
    shares counts: that of all collections in the whole time, and that of long ones in the steady
    steps. The number of collections varies like the count of rare events.
    """
    settings = situation.facts.settings
    steps = situation.steps
    if steps.span_ns <= 0:
        return PossibleGain(None, "too few steps were timed")
    share = max(settings.collecting_ns / steps.span_ns, steps.collecting_share)
    why = f"collecting garbage takes {percent(min(share, 1.0))} of the time"
    share = min(share, _MOST_COLLECTING)
    if not share:
        return PossibleGain(1.0, why)
    quantile = NormalDist().inv_cdf((1 + CONFIDENCE) / 2)
    count_reach = quantile / math.sqrt(settings.collections)
    reach = math.hypot(count_reach, process_reach(situation.process_sd))
    return PossibleGain(1 + share / (1 - share) * math.exp(reach), why)


def plan_threads(situation: Situation) -> Answer:
    """Plan other numbers of threads: one, half of the cores, and all physical cores."""
    present = situation.facts.settings.threads
    cores = situation.physical_cores
    counts = {1, max(1, cores // 2), cores}
    counts.discard(present)
    if not counts:
        return not_applicable("the script can use one core, and computes with one thread")
    answer: Answer = []
    for count in sorted(counts):
        value = str(count)
        env = dict.fromkeys(_THREAD_VARIABLES, value)
        candidate = ApplicableTreatment(
            value=value,
            title=f"computing with {plural(count, 'thread')}",
            gain=_gain_of_threads(situation),
            change=_with_variables(env),
            env=env,
        )
        answer.append(candidate)
    return answer


def _gain_of_threads(situation: Situation) -> PossibleGain:
    """Return the possible gain of another number of threads, which only a GPU bounds.

    On a GPU, threads of torch compute what is left on the CPU: batches that the training process
    makes itself, and operators on CPU tensors in the rest of a step.
    """
    if not situation.has_gpu:
        return PossibleGain(None, "all work on the CPU depends on it, so nothing bounds the gain")
    stays = {REST: 0.0}
    if DATA not in situation.steps.lacks:
        stays[DATA] = 0.0
    return situation.gain_without(stays, "the work on the CPU takes at most")


def plan_expandable_segments(situation: Situation) -> Answer:
    """Plan segments of GPU memory that can grow."""
    if not situation.has_gpu:
        return not_applicable("the script uses no GPU, whose memory has these segments")
    present = situation.environ.get(_CUDA_CONFIG, situation.environ.get(_CONFIG, ""))
    options = [option.strip() for option in present.split(",") if option.strip()]
    if _EXPANDABLE in options:
        return already_set(f"the environment has {_EXPANDABLE}")
    if any("cudaMallocAsync" in option for option in options):
        return not_applicable("the allocator is cudaMallocAsync, which has no segments of torch")
    kept = [option for option in options if not option.startswith("expandable_segments:")]
    env = {_CUDA_CONFIG: ",".join([*kept, _EXPANDABLE])}
    gain = PossibleGain(None, _NO_ALLOCATOR_BOUND)
    change = _with_variables(env)
    return [ApplicableTreatment(gain=gain, change=change, env=env)]


def plan_jemalloc(situation: Situation) -> Answer:
    """Plan jemalloc in place of malloc."""
    return _plan_allocator(situation, "jemalloc", situation.machine.jemalloc, "libjemalloc2")


def plan_tcmalloc(situation: Situation) -> Answer:
    """Plan tcmalloc in place of malloc."""
    package = "libtcmalloc-minimal4"
    return _plan_allocator(situation, "tcmalloc", situation.machine.tcmalloc, package)


def _plan_allocator(situation: Situation, name: str, library: str, package: str) -> Answer:
    preloaded = situation.environ.get("LD_PRELOAD", "")
    if f"lib{name}" in preloaded:
        return already_set(f"LD_PRELOAD has {name}")
    if not library:
        return not_applicable(f"lib{name} is not installed: apt install {package}")
    if any(separator in library for separator in " :"):
        return not_applicable(
            f"LD_PRELOAD separates paths by spaces and colons, and {show(library, 200)} has one"
        )
    others = []
    for other in preloaded.replace(":", " ").split():
        if "malloc" not in os.path.basename(other):  # only one allocator can be in use
            others.append(other)
    env = {"LD_PRELOAD": ":".join([library, *others])}
    gain = PossibleGain(None, _NO_ALLOCATOR_BOUND)
    change = _with_variables(env)
    return [ApplicableTreatment(gain=gain, change=change, env=env)]


def plan_numa(situation: Situation) -> Answer:
    """Plan to bind the script to its first memory node."""
    nodes = situation.machine.nodes
    if len(nodes) < 2:
        return not_applicable("the script can use only one memory node")
    if situation.facts.settings.world > 1:
        return not_applicable("all ranks would share one memory node")
    if not situation.machine.has_numactl:
        return not_applicable("numactl is not installed: apt install numactl")
    node = nodes[0]
    prefix = ["numactl", f"--cpunodebind={node}", f"--membind={node}"]
    why = "memory that is nearer speeds up all parts, so nothing bounds the gain"
    return [
        ApplicableTreatment(
            value=str(node),
            title=f"binding to memory node {node}",
            gain=PossibleGain(None, why),
            change=shlex.join([*prefix, _COMMAND]),
            prefix=prefix,
        )
    ]


def _with_variables(env: dict[str, str]) -> str:
    """Return a command with these variables, as in a shell."""
    words = [f"{name}={shlex.quote(value)}" for name, value in env.items()]
    return " ".join([*words, _COMMAND])
