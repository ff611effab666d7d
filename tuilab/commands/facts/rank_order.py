"""Find which rank's backward ends last in the sampled steps, and what the others lose by that.

All ranks of a DistributedDataParallel module exchange each bucket together. So the last rank to
compute its gradients decides when the exchange ends, and the others wait for it.

Ranks on CPUs of one machine read the same clock, so their times are compared directly. The time at
which a GPU finished is not known. But the exchange ends for all ranks at about the same time, so
there the rank is last that waits least for the exchange after its own backward.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from math import comb
from statistics import fmean, median
from typing import NamedTuple

from tuilab.commands.facts.exchange import (
    ExchangeFacts,
    ExchangeSample,
    GradientExchange,
    MeanStep,
)
from tuilab.text.display import join, plural, show
from tuilab.text.words import seconds

_LEAST = 8  # sampled steps: fewer do not show that one of two ranks is last by more than chance
_USUAL = 0.8  # of the sampled steps in which the same rank is last
_RARE = 100  # equal ranks may pass this test once in so many runs, by chance
_NOTABLE = 0.05  # of a step: ranks that end nearer to each other lose little
_LARGE = 0.1  # of a step: from here on there is advice about the exchange
_MOST_RANKS = 4  # that are listed
_MANY_BUCKETS = 8


class RankedStep(NamedTuple):
    """One sampled step of all ranks, in nanoseconds."""

    last: int  # the rank whose backward ends last
    after_first_ns: int  # from the end of the first backward to the end of the last one
    # How much later the last rank began its backward than the first one; None on a GPU.
    began_late_ns: int | None
    exchange_ns: int  # after the last backward
    backward_ns: float  # computation and exchange, mean of the ranks
    is_possible: bool  # whether the first rank was still exchanging when the last backward ended


def ranked_steps(
    exchanges: Mapping[int, GradientExchange], module: int, *, is_on_gpu: bool
) -> list[RankedStep]:
    """Return the steps that were sampled on all ranks, in order."""
    samples_by_rank = {rank: other.samples_of(module) for rank, other in exchanges.items()}
    shared = set.intersection(*(set(samples) for samples in samples_by_rank.values()))
    steps = []
    for iteration in sorted(shared):
        samples = {rank: samples[iteration] for rank, samples in samples_by_rank.items()}
        steps.append(_rank_on_gpu(samples) if is_on_gpu else _rank_on_cpu(samples))
    return steps


def _rank_on_cpu(samples: Mapping[int, ExchangeSample]) -> RankedStep:
    last = max(samples, key=lambda rank: samples[rank].ended)
    first = min(samples, key=lambda rank: samples[rank].ended)
    after_first_ns = samples[last].ended - samples[first].ended
    return RankedStep(
        last=last,
        after_first_ns=after_first_ns,
        began_late_ns=samples[last].began - min(sample.began for sample in samples.values()),
        exchange_ns=samples[last].exchange_alone,
        backward_ns=fmean(sample.backward for sample in samples.values()),
        is_possible=samples[first].exchange_alone >= after_first_ns / 2,
    )


def _rank_on_gpu(samples: Mapping[int, ExchangeSample]) -> RankedStep:
    last = min(samples, key=lambda rank: samples[rank].exchange_alone)
    exchange_ns = samples[last].exchange_alone
    longest_ns = max(sample.exchange_alone for sample in samples.values())
    return RankedStep(
        last=last,
        after_first_ns=longest_ns - exchange_ns,
        began_late_ns=None,
        exchange_ns=exchange_ns,
        backward_ns=fmean(sample.backward for sample in samples.values()),
        is_possible=True,
    )


def describe_ranks(exchanges: Mapping[int, GradientExchange], mean_step: MeanStep) -> Iterator[str]:
    """Yield which rank's backward ends last, how long the exchange takes then, and what to try.

    `exchanges` has the ranks that ran on this machine.
    """
    first = next(iter(exchanges.values()), None)
    if first is None:
        return
    modules = first.shared_modules()
    for facts in modules:
        name = f"{show(facts.name, 40)}: " if len(modules) > 1 else ""
        for sentence in _describe_module(exchanges, facts, mean_step):
            yield name + sentence


def _describe_module(
    exchanges: Mapping[int, GradientExchange], facts: ExchangeFacts, mean_step: MeanStep
) -> Iterator[str]:
    if len(exchanges) > facts.world:
        yield "which rank's backward ends last: n/a, the ranks exchange gradients in several groups"
        return
    if len(exchanges) < 2:
        ranks = f"one of {facts.world} ranks ran on this machine"
        yield f"which rank's backward ends last: n/a, {ranks}"
        return
    steps = ranked_steps(exchanges, facts.of, is_on_gpu=facts.is_on_gpu)
    if len(steps) < _LEAST:
        count = plural(len(steps), "step")
        yield f"which rank's backward ends last: n/a, only {count} of all ranks were sampled"
        return
    possible = [step for step in steps if step.is_possible]
    if len(possible) < len(steps) / 2:
        reason = "ranks did not wait for each other, or their clocks differ"
        yield f"which rank's backward ends last: n/a, {reason}"
        return
    step_ns = _sampled_step_ns(steps, mean_step)
    yield from _describe_order(steps, len(exchanges), step_ns)
    if len(exchanges) < facts.world:
        ranks = join(f"rank {rank}" for rank in exchanges)
        yield f"compared: {ranks}, which ran on this machine, of {facts.world}"
    exchange_ns = median(step.exchange_ns for step in steps)
    exchange = f"the exchange of {facts.describe()} takes {_share(exchange_ns, step_ns)}"
    yield f"after the last backward, {exchange}"
    if exchange_ns >= _LARGE * step_ns:
        yield from _exchange_advice(facts)


def _sampled_step_ns(steps: list[RankedStep], mean_step: MeanStep) -> float:
    """Return the length of a sampled step.

    If its backward took longer than that of other steps, as on a busier machine, the whole step is
    taken to be longer as well.
    """
    backward_ns = median(step.backward_ns for step in steps)
    if not mean_step.backward_share:
        return max(mean_step.mean_ns, backward_ns)
    return max(mean_step.mean_ns, 100 * backward_ns / mean_step.backward_share)


def _describe_order(steps: list[RankedStep], ranks: int, step_ns: float) -> Iterator[str]:
    """Yield which rank is last, if it is one rank, and by how much."""
    counts = Counter(step.last for step in steps)
    ((last, count),) = counts.most_common(1)
    after_ns = median(step.after_first_ns for step in steps)
    sampled = f"{count} of {len(steps)} sampled steps"
    if not is_one_last(count, len(steps), ranks):
        listed = join(f"rank {rank} in {times}" for rank, times in counts.most_common(_MOST_RANKS))
        yield (f"no single rank's backward ends last: {listed} of {len(steps)} sampled steps")
        yield f"the last backward ends {_share(after_ns, step_ns)} after the first"
        if after_ns >= _LARGE * step_ns:
            yield (
                "each rank waits in some steps: check whether their work differs "
                "(`tuilab run load-balance`) or other processes use their cores"
            )
        return
    ends = f"rank {last}'s backward ends last in {sampled}"
    if after_ns < _NOTABLE * step_ns:
        yield f"{ends}, but only {_share(after_ns, step_ns)} after the first"
        return
    yield f"{ends}, {_share(after_ns, step_ns)} after the first"
    yield from _describe_cause(steps, last, after_ns)


def _describe_cause(steps: list[RankedStep], last: int, after_ns: float) -> Iterator[str]:
    """Yield whether the last rank begins its backward late, and what to check."""
    began_late = [
        step.began_late_ns for step in steps if step.last == last and step.began_late_ns is not None
    ]
    device = "core" if began_late else "GPU"
    if began_late:
        began_ns = median(began_late)
        began = f"which begins a median of {seconds(began_ns / 1e9)} after the first one"
        if began_ns >= after_ns / 2:
            yield f"most of this delay arises before the backward, {began}"
        else:
            yield f"most of this delay arises in the backward, {began}"
    yield (
        f"the other ranks wait for rank {last}: check whether it has more work "
        f"(`tuilab run load-balance`), waits for data, or has a slower {device}"
    )


def is_one_last(count: int, steps: int, ranks: int) -> bool:
    """Return whether one rank is last so often that equal ranks would hardly do that by chance."""
    if count < _USUAL * steps:
        return False
    others = ranks - 1
    # Of ranks**steps equally likely orders, those in which one given rank is last as often.
    cases = sum(comb(steps, often) * others ** (steps - often) for often in range(count, steps + 1))
    return bool(ranks * cases * _RARE <= ranks**steps)


def _exchange_advice(facts: ExchangeFacts) -> Iterator[str]:
    """Yield what makes an exchange shorter that the module does not use yet, a line for each."""
    ways = []
    if facts.is_float32 and not facts.hook:
        # torch has bfloat16 only for the GPU.
        hook = "bf16_compress_hook" if facts.is_on_gpu else "fp16_compress_hook"
        ways.append(f"{hook}: half the bytes, but less exact gradients")
    if not facts.is_view:
        ways.append("gradient_as_bucket_view=True: no copies between gradients and buckets")
    if len(facts.buckets) >= _MANY_BUCKETS:
        ways.append("a larger bucket_cap_mb: fewer exchanges in a step")
    ways.append("no_sync() with gradient accumulation: fewer exchanges (`tuilab run no-sync`)")
    for number, way in enumerate(ways):
        yield f"or {way}" if number else f"to shorten the exchange, try {way}"


def _share(time_ns: float, step_ns: float) -> str:
    """Return a median time with its share of a step."""
    return f"a median of {seconds(time_ns / 1e9)} ({100 * time_ns / step_ns:.0f} % of a step)"
