"""What a command's steps amount to, in sentences."""

from collections.abc import Collection, Iterator
from statistics import fmean, median

from tuilab.commands.cpu.core_time import total
from tuilab.commands.marks import MarkedProcess
from tuilab.commands.next_step import Loading, next_step
from tuilab.commands.step_parts import SEVERAL_THREADS, UNTOLD, lacking, shares_of, steady
from tuilab.commands.steps import BACKWARDS, Step, Steps
from tuilab.text.display import percent, plural
from tuilab.text.words import seconds

_EVEN = 0.2  # of a mean, by which a median may be off
_CLEAR = 0.1  # of a step, by which its CPU time differs from it
_LEAST_READ = 0.9  # of the steps, whose CPU time has to be known


def story_of(
    process: MarkedProcess,
    steps: Steps,
    last: Collection[Step],
    loading: Loading | None = None,
    helper_cores: float = 0.0,
) -> Iterator[str]:
    """Yield the sentences: how long a step takes and where that goes, what a step is, what was left out.

    `helper_cores` is how many cores the processes below this one used in the mean.
    """
    if timed := steady(last):
        yield from _times(process, steps, timed, loading, helper_cores)
        yield from _cost(timed)
    if last:
        yield _pattern(process, steps, timed or last)
    if skipped := sum(step.skipped for step in last):
        yield (
            f"GradScaler skipped {skipped} of"
            f" {plural(sum(step.optimized for step in last), 'optimizer step')}"
        )


def _times(
    process: MarkedProcess,
    steps: Steps,
    timed: Collection[Step],
    loading: Loading | None,
    helper_cores: float,
) -> Iterator[str]:
    took_ns = [step.took_ns or 0 for step in timed]
    mean_ns, median_ns = fmean(took_ns), median(took_ns)
    where = " on the GPU" if all(step.is_on_gpu for step in timed) else ""
    sentence = f"a step takes {seconds(mean_ns / 1e9)}{where}, mean of {plural(len(timed), 'step')}"
    is_uneven = (
        abs(mean_ns - median_ns) > _EVEN * mean_ns
    )  # as where workers of a loader bring batches in bursts
    yield sentence + (f"; the median is {seconds(median_ns / 1e9)}" if is_uneven else "")
    if core_time := _core_time(timed, helper_cores):
        yield core_time
    lacks = lacking(steps)
    if steps.is_parallel:
        yield f"parts of a step: n/a, {SEVERAL_THREADS}"
    elif shares := shares_of(timed, lacks):
        yield ", ".join(f"{name} {share:.0f} %" for name, share in shares.items())
        yield from (f"{part}: n/a, {why}" for part, why in lacks.items() if part not in UNTOLD)
        if advice := next_step(
            shares, len(timed), is_alone=not process.is_of_several, loading=loading
        ):
            yield advice


def _core_time(timed: Collection[Step], helper_cores: float) -> str:
    """Return the CPU time of a step, and how long it waited for a core; nothing where that is about the whole step."""
    times = [step.core_time for step in timed if step.core_time and not step.is_on_gpu]
    sums = total(times)
    if sums is None or sums.steps < _LEAST_READ * len(timed):
        return ""
    own_s, wall_s, delayed_s = (
        ns / sums.steps / 1e9 for ns in (sums.process_ns, sums.wall_ns, sums.delayed_ns)
    )
    helpers_s = helper_cores * wall_s
    if abs(own_s + helpers_s - wall_s) <= _CLEAR * wall_s:
        return ""
    sentence = f"CPU time of a step: {seconds(own_s)}"
    if helpers_s > _CLEAR * own_s:
        sentence += f", and {seconds(helpers_s)} in its child processes"
    if delayed_s > _CLEAR * wall_s:
        sentence += (
            f"; it waited {seconds(delayed_s)} ({100 * delayed_s / wall_s:.0f} %) for a core"
        )
    return sentence


def _cost(timed: Collection[Step]) -> Iterator[str]:
    """Yield what watching took of a step, as it timed itself in each."""
    spent_ns, took_ns = (
        fmean(ns)
        for ns in zip(*((step.watched_ns, step.took_ns or 0) for step in timed), strict=True)
    )
    if spent_ns:
        yield (
            f"watching took {seconds(spent_ns / 1e9)} of a step ({percent(spent_ns / took_ns)},"
            " measured by itself)"
        )


def _pattern(process: MarkedProcess, steps: Steps, last: Collection[Step]) -> str:
    """Return what makes a step, and which optimizer ends it."""
    if steps.ends_with == BACKWARDS:
        why = (
            f"{plural(len(steps.counts), 'optimizer')} stepped during the run"
            if steps.counts
            else "no optimizer step was seen"
        )
        return f"{why}, so each backward counts as a step"
    optimized, backwards = (
        fmean(getattr(step, name) for step in last) for name in ("optimized", "backwards")
    )
    number = len(steps.counts)
    of = (
        f" ({number} optimizers; a step ends with {optimizer_name(process, steps.ends_with or 0)})"
        if number > 1
        else ""
    )
    went_back = f" and {_count(backwards, 'backward')}" if steps.backwards else ""
    mean_of = (
        ""
        if _is_whole(optimized) and _is_whole(backwards)
        else f", mean of {plural(len(last), 'step')}"
    )
    return f"{_count(optimized, 'optimizer step')}{of}{went_back} a step{mean_of}"


def _count(number: float, noun: str) -> str:
    return plural(round(number), noun) if _is_whole(number) else f"{number:.1f} {noun}s"


def _is_whole(number: float) -> bool:
    return abs(number - round(number)) < 0.05


def optimizer_name(process: MarkedProcess, number: int) -> str:
    """Return what an optimizer is called: its class, and which one it is."""
    kind, _, which = process.names.get(number, "optimizer").partition("\n")
    return f"{kind} {which.rpartition(' ')[2]}".strip()
