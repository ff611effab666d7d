"""Keep what torch measured of the exchange of gradients in one process, and describe it.

The backward of a DistributedDataParallel module computes gradients in buckets. The exchange of the
first bucket begins while the others are still computed, so both overlap. The exchange that goes on
after the last gradient is computed makes a step longer. It includes waiting for slower ranks.
"""

import json
from collections.abc import Collection, Iterator
from statistics import fmean
from typing import Annotated, NamedTuple

import msgspec

from tuilab.text.display import plural, show
from tuilab.text.words import seconds, size

WARM_UP = 2  # iterations: after the first one, torch makes the buckets again
_SETTLED = 10  # iterations, which torch samples all; they may be slower than later ones
_ENOUGH = 8  # samples of later iterations: with so many, the first ones are left out
_KEPT = 1000  # of the last samples of a module
_MOST_MODULES = 16
_Count = Annotated[int, msgspec.Meta(ge=0, lt=2**62)]
_Number = Annotated[int, msgspec.Meta(ge=1, lt=10_000)]


class ExchangeFacts(msgspec.Struct, frozen=True):
    """A DistributedDataParallel module: the bytes and buckets of its gradients, and its options."""

    of: _Number  # the number of the module in its process
    name: str = ""  # the class of the module within it
    backend: str = ""
    hook: str = ""  # that exchanges in place of torch, if there is one
    world: _Count = 0  # ranks that exchange gradients
    bytes: _Count = 0
    buckets: list[_Count] = []
    is_on_gpu: bool = False
    is_float32: bool = False
    is_view: bool = False  # whether the gradients lie in the buckets, so that nothing is copied

    def describe(self) -> str:
        """Return the size of the gradients, the number of their buckets, and how they travel."""
        buckets = plural(len(self.buckets), "bucket")
        words = f"{size(self.bytes)} in {buckets} over {show(self.backend, 20)}"
        if self.hook:
            words += f" with {show(self.hook, 60)}"
        return words


class ExchangeSample(msgspec.Struct, frozen=True):
    """One iteration of a module, in nanoseconds; a time that torch did not measure is 0.

    On a GPU, `began` and `ended` say when the work was launched, not when the GPU did it.
    """

    module: _Number
    iteration: _Count
    compute: _Count  # from the end of the forward until the last gradient is computed
    exchange: _Count  # from the first full bucket until all gradients are exchanged
    both: _Count  # from the first full bucket until the last gradient is computed
    began: _Count  # when `compute` began
    ended: _Count  # when `compute` ended

    @property
    def is_measured(self) -> bool:
        return bool(self.compute and self.both and self.exchange and self.began and self.ended)

    @property
    def exchange_alone(self) -> int:
        """How long the exchange goes on after all gradients are computed."""
        return max(self.exchange - self.both, 0)

    @property
    def backward(self) -> int:
        """How long the computation and the exchange take together."""
        return self.compute + self.exchange_alone

    @property
    def compute_alone(self) -> int:
        return max(self.compute - self.both, 0)


class MeanStep(NamedTuple):
    """The mean step of a process, which its samples are compared with."""

    steps: int  # of which it is the mean
    mean_ns: float
    backward_share: float  # of a step, in percent


class GradientExchange:
    """The modules of one process that exchange gradients, and their last samples."""

    def __init__(self) -> None:
        self.modules: dict[int, ExchangeFacts] = {}
        self._samples: dict[int, dict[int, ExchangeSample]] = {}  # by module, then by iteration

    def take(self, text: str) -> None:
        """Take a report of the watcher; one of another form is ignored."""
        try:
            report = json.loads(text)
            if isinstance(report, dict) and "of" in report:
                self._add_module(msgspec.convert(report, ExchangeFacts))
            else:
                self._add_sample(msgspec.convert(report, ExchangeSample))
        except (ValueError, RecursionError):
            return

    def _add_module(self, facts: ExchangeFacts) -> None:
        if facts.of in self.modules or len(self.modules) < _MOST_MODULES:
            self.modules[facts.of] = facts

    def _add_sample(self, sample: ExchangeSample) -> None:
        if sample.module not in self.modules:
            return
        samples = self._samples.setdefault(sample.module, {})
        if sample.iteration > WARM_UP and sample.is_measured:
            samples[sample.iteration] = sample
        if len(samples) > _KEPT:
            del samples[min(samples)]

    def shared_modules(self) -> list[ExchangeFacts]:
        """Return the modules that have samples, and exchange gradients with other ranks."""
        modules = []
        for number, facts in self.modules.items():
            if facts.world > 1 and self._samples.get(number):
                modules.append(facts)
        return modules

    def samples_of(self, module: int) -> dict[int, ExchangeSample]:
        """Return the samples of a module by iteration, without those of the warm-up."""
        samples = self._samples.get(module, {})
        later = {number: sample for number, sample in samples.items() if number > _SETTLED}
        return later if len(later) >= _ENOUGH else samples

    def share_of_step(self, mean_step: MeanStep) -> float:
        """Return how much of a step is exchange that no computation hides, in percent.

        All modules count. Sampled steps may have met a busier machine than the others. So the share
        of the exchange is taken from the sampled backwards, and that of the backward from all
        steps. If some backwards of a step are in `no_sync`, only the time of the others counts.
        """
        exchange_ns = 0.0
        backward_ns = 0.0
        for facts in self.shared_modules():
            samples = self.samples_of(facts.of)
            iterations_a_step = max(round(max(samples) / max(mean_step.steps, 1)), 1)
            for sample in samples.values():
                exchange_ns += iterations_a_step * sample.exchange_alone / len(samples)
                backward_ns += iterations_a_step * sample.backward / len(samples)
        if not backward_ns or not mean_step.mean_ns:
            return 0.0
        backward_share = min(mean_step.backward_share, 100 * backward_ns / mean_step.mean_ns)
        return backward_share * exchange_ns / backward_ns

    def sentences(self, mean_step: MeanStep) -> Iterator[str]:
        """Yield how long gradients are computed and exchanged, and what that adds to a step."""
        modules = self.shared_modules()
        for facts in modules:
            samples = self.samples_of(facts.of).values()
            name = f" of {show(facts.name, 40)}" if len(modules) > 1 else ""
            yield (
                f"gradients{name}: computed for {_mean(sample.compute for sample in samples)}, "
                f"exchanged for {_mean(sample.exchange for sample in samples)}, "
                f"both at once for {_mean(sample.both for sample in samples)} "
                f"(mean of {plural(len(samples), 'sampled step')})"
            )
        share = self.share_of_step(mean_step)
        if share:
            yield (
                f"exchange that no computation hides: {share:.0f} % of a step, "
                "including waits for other ranks"
            )

    def bars(self) -> dict[str, float]:
        """Return the parts of a sampled backward in milliseconds; empty without samples.

        If there are several modules, their backwards are added.
        """
        parts_ns = dict.fromkeys(("only computing", "both at once", "only exchanging"), 0.0)
        modules = self.shared_modules()
        for facts in modules:
            samples = self.samples_of(facts.of).values()
            parts_ns["only computing"] += fmean(sample.compute_alone for sample in samples)
            parts_ns["both at once"] += fmean(sample.both for sample in samples)
            parts_ns["only exchanging"] += fmean(sample.exchange_alone for sample in samples)
        if not modules:
            return {}
        return {name: part_ns / 1e6 for name, part_ns in parts_ns.items()}


def _mean(times_ns: Collection[int] | Iterator[int]) -> str:
    return seconds(fmean(times_ns) / 1e9)
