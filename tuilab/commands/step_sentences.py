"""Describe the steps of a command in sentences."""

from collections.abc import Collection, Iterator
from statistics import fmean, median

from tuilab.commands.cpu.core_time import total
from tuilab.commands.facts.exchange import MeanStep
from tuilab.commands.marks import MarkedProcess
from tuilab.commands.next_step import Loading, computing_of, next_step
from tuilab.commands.step_parts import (
    BACKWARD,
    OPTIMIZER,
    REST,
    SEVERAL_THREADS,
    UNTOLD,
    WITH_FORWARD,
    lacking,
    shares_of,
    steady,
)
from tuilab.commands.steps import BACKWARDS, Step, Steps
from tuilab.text.display import percent, plural
from tuilab.text.words import seconds

ROOT = "backward root"
_EVEN = 0.2  # of the mean: a median that is nearer to the mean is not mentioned
_CLEAR = 0.1  # of the time of a step: a CPU time that is nearer to it is not mentioned
_LEAST_PAUSED = 0.02  # of the time, in which Python collected garbage
_LEAST_READ = 0.9  # of the steps must have a CPU time


def story_of(
    process: MarkedProcess,
    steps: Steps,
    last: Collection[Step],
    loading: Loading | None = None,
    helper_cores: float = 0.0,
    *,
    is_starved: bool = False,
    has_fast_bfloat16: bool = False,
) -> Iterator[str]:
    """Yield sentences about the length of a step, its parts, what ends it, and skipped steps.

    `helper_cores` is the mean number of cores that child processes used. `is_starved` says whether
    the command waited long for cores, and `has_fast_bfloat16` whether its CPU or GPU multiplies
    bfloat16 numbers faster than others.
    """
    timed = steady(last)
    if timed:
        number = _count_timed(steps, last, timed)
        yield from _times(process, steps, timed, number, loading, helper_cores, has_fast_bfloat16)
        yield from _pauses(timed)
        yield from _cost(timed, is_starved=is_starved)
    if last:
        yield _pattern(process, steps, timed or last)
        yield from _sums(process, steps, timed or last)
    skipped = sum(step.skipped for step in last)
    if skipped:
        optimized = sum(step.optimized for step in last)
        yield f"GradScaler skipped {skipped} of {plural(optimized, 'optimizer step')}"


def _count_timed(steps: Steps, last: Collection[Step], timed: Collection[Step]) -> str:
    """Return in words how many steps make up the mean length, and of how many steps.

    Left out are the first step, whose beginning is unknown, the long steps of a warm-up,
    and counted steps.
    """
    kept = plural(len(last), "step")
    if len(last) < steps.step_count:  # of a long run, only the last steps are kept
        kept = f"the last {kept}"
    if len(timed) == len(last):
        return kept
    return f"{len(timed)} of {kept}"


def _times(
    process: MarkedProcess,
    steps: Steps,
    timed: Collection[Step],
    number: str,
    loading: Loading | None,
    helper_cores: float,
    has_fast_bfloat16: bool,
) -> Iterator[str]:
    """Yield sentences about the mean length of a step, its CPU time, its parts, and advice.

    `number` is the number of the timed steps in words. A part that was not measured is n/a, with
    the reason.
    """
    took_ns = [step.took_ns or 0 for step in timed]
    mean_ns = fmean(took_ns)
    median_ns = median(took_ns)
    where = " on the GPU" if all(step.is_on_gpu for step in timed) else ""
    sentence = f"a step takes {seconds(mean_ns / 1e9)}{where}, mean of {number}"
    if abs(mean_ns - median_ns) > _EVEN * mean_ns:  # for example if batches come in bursts
        sentence += f"; the median is {seconds(median_ns / 1e9)}"
    yield sentence
    core_time = _core_time(timed, helper_cores)
    if core_time:
        yield core_time
    lacks = lacking(steps)
    if steps.is_parallel:
        yield f"parts of a step: n/a, {SEVERAL_THREADS}"
        return
    shares = shares_of(timed, lacks)
    if not shares:
        return
    parts = ", ".join(f"{name} {share:.0f} %" for name, share in shares.items())
    with_parts = [step for step in timed if step.has_parts]
    if len(with_parts) < len(timed):
        parts += f"; measured in {plural(len(with_parts), 'step')}"
    yield parts
    for part, reason in lacks.items():
        if part not in UNTOLD:
            yield f"{part}: n/a, {reason}"
    # An optimizer such as LBFGS works between the calls of its closure.
    is_rest_mixed = any(step.backwards_in_optimizer > 1 for step in with_parts)
    if is_rest_mixed:
        rest = WITH_FORWARD if WITH_FORWARD in shares else REST
        yield (
            f"{rest} can include the optimizer's own work: its step calls backward several times,"
            f" and only the time after the last backward counts as {OPTIMIZER}"
        )
    mean_step = MeanStep(steps.step_count, mean_ns, shares.get(BACKWARD, 0.0))
    yield from process.exchange.sentences(mean_step)
    waited_ns = sum(step.waited_ns for step in with_parts)
    started_ns = sum(step.started_ns for step in with_parts)
    advice = next_step(
        shares,
        len(with_parts),
        is_alone=not process.is_of_several,
        loading=loading,
        starting=100 * started_ns / waited_ns if waited_ns else 0.0,
        computing=computing_of(process.hello, has_fast_bfloat16=has_fast_bfloat16),
        exchange=process.exchange.share_of_step(mean_step),
        garbage=_garbage_share(timed),
        watching=_watching_share(timed),
        is_rest_mixed=is_rest_mixed,
    )
    if advice:
        yield advice


def _pauses(timed: Collection[Step]) -> Iterator[str]:
    """Yield a sentence about collections of garbage, if they take a noticeable part of the time."""
    pauses_ns = [pause_ns for step in timed for pause_ns in step.pauses_ns]
    share = sum(pauses_ns) / sum(step.took_ns or 0 for step in timed)
    if share < _LEAST_PAUSED:
        return
    count = plural(len(pauses_ns), "pause")
    longest = seconds(max(pauses_ns) / 1e9)
    if len(pauses_ns) > 1:
        longest = f"up to {longest}"
    yield (
        f"Python collected garbage for {100 * share:.0f} % of the time: "
        f"{count} of {longest}; see `tuilab run gc-pause`"
    )


def _garbage_share(timed: Collection[Step]) -> float:
    """Return the share of the steps in which Python collected garbage, in percent.

    It is 0 if a step was timed on a GPU, which may work while Python pauses.
    """
    if any(step.is_on_gpu for step in timed):
        return 0.0
    paused_ns = sum(sum(step.pauses_ns) for step in timed)
    return 100 * paused_ns / sum(step.took_ns or 0 for step in timed)


def _core_time(timed: Collection[Step], helper_cores: float) -> str:
    """Return a sentence about the CPU time of a step; empty if it is close to the whole time."""
    times = []
    for step in timed:
        if step.core_time and not step.is_on_gpu:
            times.append(step.core_time)
    sums = total(times)
    if sums is None or sums.steps < _LEAST_READ * len(timed):
        return ""
    own_s = sums.process_ns / sums.steps / 1e9
    wall_s = sums.wall_ns / sums.steps / 1e9
    delayed_s = sums.delayed_ns / sums.steps / 1e9
    helpers_s = helper_cores * wall_s
    if abs(own_s + helpers_s - wall_s) <= _CLEAR * wall_s:
        return ""
    sentence = f"CPU time of a step: {seconds(own_s)}"
    if helpers_s > _CLEAR * own_s:
        sentence += f", and {seconds(helpers_s)} in its child processes"
    if delayed_s > _CLEAR * wall_s:
        share = 100 * delayed_s / wall_s
        sentence += f"; it waited {seconds(delayed_s)} ({share:.0f} %) for a core"
    return sentence


def _cost(timed: Collection[Step], *, is_starved: bool) -> Iterator[str]:
    """Yield a sentence about the cost of watching, which the watcher measures itself."""
    spent_ns = fmean(step.watched_ns for step in timed)
    took_ns = fmean(step.took_ns or 0 for step in timed)
    if not spent_ns:
        return
    how = "measured by itself"
    if is_starved:  # the CPU time alone is a small part of it
        how += ", by the clock, which includes waiting for a core"
    share = percent(spent_ns / took_ns)
    yield f"watching took {seconds(spent_ns / 1e9)} of a step ({share}, {how})"


def _watching_share(timed: Collection[Step]) -> float:
    """Return the share of the steps that watching took, in percent.

    It is 0 if a step was timed on a GPU, which may work while the hooks run.
    """
    if any(step.is_on_gpu for step in timed):
        return 0.0
    spent_ns = sum(step.watched_ns for step in timed)
    return 100 * spent_ns / sum(step.took_ns or 0 for step in timed)


def _pattern(process: MarkedProcess, steps: Steps, last: Collection[Step]) -> str:
    """Return a sentence about the optimizer steps and backwards of a step, and what ends it."""
    if steps.ends_with == BACKWARDS:
        reason = "no optimizer step was seen"
        if steps.counts:
            reason = f"{plural(len(steps.counts), 'optimizer')} stepped during the run"
        return f"{reason}, so each backward counts as a step"
    optimized = fmean(step.optimized for step in last)
    backwards = fmean(step.backwards for step in last)
    sentence = _count(optimized, "optimizer step")
    if len(steps.counts) > 1:
        name = optimizer_name(process, steps.ends_with or 0)
        sentence += f" ({len(steps.counts)} optimizers; a step ends with {name})"
    if steps.backwards:
        sentence += f" and {_count(backwards, 'backward')}"
    sentence += " a step"
    if not _is_whole(optimized) or not _is_whole(backwards):
        sentence += f", mean of {plural(len(last), 'step')}"
    return sentence


def _sums(process: MarkedProcess, steps: Steps, last: Collection[Step]) -> Iterator[str]:
    """Yield a sentence about each backward root that is a sum of several backwards."""
    counts: dict[int, list[int]] = {}
    for step in last:
        for owner, count in step.root_counts.items():
            counts.setdefault(owner, []).append(count)
    for owner, counts_of_owner in counts.items():
        if max(counts_of_owner) == 1:
            continue
        name = root_name(process, steps, owner)
        sentence = f"{name} is the sum of {_count(fmean(counts_of_owner), 'backward')}"
        if min(counts_of_owner) < max(counts_of_owner):
            sentence += ", on average"
        yield sentence


def _count(number: float, noun: str) -> str:
    if _is_whole(number):
        return plural(round(number), noun)
    return f"{number:.1f} {noun}s"


def _is_whole(number: float) -> bool:
    return abs(number - round(number)) < 0.05


def root_name(process: MarkedProcess, steps: Steps, owner: int) -> str:
    """Return the name of the curve of a root: the value that goes backward.

    If several optimizers step, the name includes `owner`, the optimizer that steps after the
    backward.
    """
    if len(steps.counts) < 2 or owner == BACKWARDS:
        return ROOT
    return f"{ROOT} of {optimizer_name(process, owner)}"


def optimizer_name(process: MarkedProcess, number: int) -> str:
    """Return the name of an optimizer: its class, and its number among those of the class."""
    kind, _, which = process.names.get(number, "optimizer").partition("\n")
    return f"{kind} {which.rpartition(' ')[2]}".strip()
