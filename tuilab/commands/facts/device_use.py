"""Record how much of its device a command used, and where its script copies and waits.

The FLOPs and tokens of a step are those of the counted steps, its time is the mean of the others.
They are compared with a matrix product, which a process of tuilab times after the command. A step
that waited for a core has no rate: the product is the fastest of several, so it did not wait.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import PurePath
from statistics import fmean
from typing import NamedTuple

from tuilab.commands.cpu.core_time import CoreTime
from tuilab.engine import processes
from tuilab.engine.messages import CommandOrder
from tuilab.record.events import (
    CoresAwaited,
    DeviceUsed,
    Event,
    StepCounted,
    TableShown,
    TextShown,
    Unavailable,
)
from tuilab.text.display import join, percent, plural, show
from tuilab.text.words import seconds, size

TITLE = "use of the device"
COPIES = "copies and waits of a step"
STAGE = "timing a matrix product"
LEAST = 20  # steady steps, from which on a step is compared with a product
_MOST_WAITED_S = 30.0  # for the product, on a machine that is busy
_POLL_S = 0.05
_READ = ".item()"
_DIFFERENT = 0.01  # of the FLOPs: counted steps that differ by more are all shown
_MOST_AWAITED = 0.1  # of the time of the steps: if they waited longer for cores, no rate is shown
_PREFIXES = ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))


class Times(NamedTuple):
    """The steady steps of a process."""

    step_s: float  # mean; 0 without steps
    steps: int
    arm: str = ""
    why_slow: str = ""  # that the steps waited for cores, so their length says little about them


# Returns the FLOPs a second of a product like the counted step, in this dtype; or why there is no
# such number.
Measure = Callable[[StepCounted, str], float | str]


def records_of(
    counted: Sequence[StepCounted],
    times: Times,
    why_not: str,
    command: CommandOrder,
    measure: Measure,
) -> Iterator[Event]:
    """Yield the records about the use of the device, with those for people.

    `why_not` is the reason why no step was counted; empty if there is none. Nothing is yielded
    about a command with few steps, and without a counted step only the reason.
    """
    if not counted:
        if why_not and times.steps >= LEAST:
            yield Unavailable(what="FLOPs of a step", reason=why_not)
        return
    use = None
    why_no_rate = _why_no_rate(counted, times)
    if times.steps >= LEAST and times.step_s > 0:
        use = _use_of(counted, times, command, measure, why_no_rate)
        yield use
    suffix = f", {times.arm}" if times.arm else ""
    sentences = [*_flops_sentences(use, counted, times, command, why_no_rate)]
    sentences += _copy_sentences(counted)
    if sentences:
        yield TextShown(text="\n".join(sentences), title=TITLE + suffix)
    table = _table(counted, COPIES + suffix)
    if table is not None:
        yield table


def why_slow(
    core_times: Sequence[CoreTime],
    awaited: CoresAwaited | None,
    counted: Sequence[StepCounted],
    ranks: int,
) -> str:
    """Return that the steps of a process waited long for cores; empty if they did not.

    `core_times` are those of the thread that steps. `awaited` is the sum over all threads and child
    processes of the command, which has so many `ranks`. A process that computes on another device
    than the CPU has no such sentence.
    """
    if not counted or counted[0].device != "cpu":
        return ""
    wall_ns = sum(used.wall_ns for used in core_times)
    delayed_ns = sum(used.delayed_ns for used in core_times)
    if delayed_ns > _MOST_AWAITED * wall_ns:
        return f"the steps waited {100 * delayed_ns / wall_ns:.0f} % of the time for a core"
    if awaited is None:
        return ""
    threads = ranks * max(counted[0].threads, 1)
    if awaited.waited_s > _MOST_AWAITED * awaited.elapsed_s * threads:
        return (
            f"in {seconds(awaited.elapsed_s)} of steps, the threads and child processes of the "
            f"command waited for cores, together for {seconds(awaited.waited_s)}"
        )
    return ""


def _why_no_rate(counted: Sequence[StepCounted], times: Times) -> str:
    """Return why the FLOPs of a step are not divided by its time; empty if they are."""
    if times.steps < LEAST or times.step_s <= 0:
        return f"this needs {LEAST} timed steps, and there are {times.steps}"
    if times.why_slow:
        return times.why_slow
    if _flops_differ(counted):
        return "the counted steps have different FLOPs"
    return ""


def _flops_differ(counted: Sequence[StepCounted]) -> bool:
    flops = [record.flops / record.steps for record in counted]
    return max(flops) - min(flops) > _DIFFERENT * max(flops)


def _tokens_of(counted: Sequence[StepCounted]) -> list[float]:
    """Return the tokens of each counted step; 0 if none were seen in it."""
    return [(record.tokens or 0) / record.steps for record in counted]


def _use_of(
    counted: Sequence[StepCounted],
    times: Times,
    command: CommandOrder,
    measure: Measure,
    why_no_rate: str,
) -> DeviceUsed:
    """Return what a command used, with the rate of a product if its steps can be compared."""
    first = counted[0]
    kinds = _kinds_of(counted)
    use = DeviceUsed(
        arm=times.arm,
        step_s=times.step_s,
        steps=times.steps,
        kind=max(kinds, key=lambda kind: kinds[kind], default=""),
        device=_device_words(first),
    )
    if not _flops_differ(counted):
        use.flops = fmean(record.flops / record.steps for record in counted)
    tokens = _tokens_of(counted)
    if command.tokens:
        use.tokens = float(command.tokens)
        use.tokens_from = "--tokens"
    elif any(tokens):
        use.tokens_from = _seen_in(counted)
        if min(tokens) == max(tokens):
            use.tokens = tokens[0]
    if command.peak_tflops:
        use.peak_flops_s = 1e12 * command.peak_tflops
    if why_no_rate:
        use.why = why_no_rate
    elif use.flops:
        rate = measure(first, use.kind)
        if isinstance(rate, str):
            use.why = rate
        else:
            use.matmul_flops_s = rate
    return use


def _seen_in(counted: Sequence[StepCounted]) -> str:
    """Return where the tokens were seen, by the first counted step that has some."""
    for record in counted:
        if record.tokens:
            return record.tokens_from
    return ""


def _kinds_of(counted: Sequence[StepCounted]) -> dict[str, int]:
    """Return the FLOPs of all counted steps by dtype."""
    kinds: dict[str, int] = {}
    for record in counted:
        for kind, flops in record.kinds.items():
            kinds[kind] = kinds.get(kind, 0) + flops
    return kinds


def _device_words(counted: StepCounted) -> str:
    if counted.device == "cuda":
        return counted.gpu or "this GPU"
    if counted.device == "cpu":
        return f"this CPU with {plural(counted.threads, 'thread')}"
    return counted.device


def measure_product(
    counted: StepCounted, kind: str, was_stopped: Callable[[], bool]
) -> float | str:
    """Return the FLOPs a second of a product in a process of its own, or why there is no number.

    The process runs on the device of the counted step, with as many threads and cores.
    """
    words = [
        sys.executable,
        "-P",
        "-m",
        "tuilab.lab.matmul_peak",
        kind,
        counted.device,
        str(counted.threads),
        str(counted.cores),
        counted.precision,
    ]
    environment = dict(os.environ)
    if counted.uuid:
        uuid = counted.uuid
        environment["CUDA_VISIBLE_DEVICES"] = uuid if "-" in uuid[:5] else f"GPU-{uuid}"
    try:
        child = subprocess.Popen(
            words,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
            preexec_fn=partial(processes.start_clean, os.getpid()),
        )
    except OSError as problem:
        return f"the process that measures it cannot be started: {problem.strerror}"
    deadline = time.monotonic() + _MOST_WAITED_S
    while True:
        try:
            output, _ = child.communicate(timeout=_POLL_S)
            break
        except subprocess.TimeoutExpired:
            reason = ""
            if was_stopped():
                reason = "the run was stopped"
            elif time.monotonic() > deadline:
                reason = f"it took longer than {_MOST_WAITED_S:.0f} s"
            if reason:
                child.kill()
                child.communicate()
                return reason
    return _read_answer(output)


def _read_answer(output: bytes) -> float | str:
    try:
        answer = json.loads(output)
    except ValueError:
        return "the process that measures it failed"
    flops_s = answer.get("flops_s")
    if isinstance(flops_s, float) and 0 < flops_s < 1e24:
        return flops_s
    return show(answer.get("why", "it was not measured"), 300)


# ---- words


def _flops_sentences(
    use: DeviceUsed | None,
    counted: Sequence[StepCounted],
    times: Times,
    command: CommandOrder,
    why_no_rate: str,
) -> Iterator[str]:
    """Yield the FLOPs and tokens of a step, their rates, or why there is no rate."""
    names = list(dict.fromkeys(name for record in counted for name in record.uncounted))
    without_rate = []
    if any(record.flops for record in counted):
        yield f"a step computes {_flops_words(counted)}"
        if use is not None and not why_no_rate:
            yield from _speed_sentences(use)
        else:
            without_rate += ["FLOPs a second", "share of a large matrix product"]
            if command.peak_tflops:
                without_rate.append("MFU")
    if names:
        yield f"not in the FLOPs, because torch has no formula: {join(names)}"
    if use is not None:
        if use.tokens and times.why_slow:
            without_rate.append("tokens a second")
        yield from _token_sentences(use, counted, times)
    if without_rate:
        yield f"{join(without_rate)}: n/a, {why_no_rate}"
    if use is not None and times.arm:
        yield f"these numbers are of {times.arm} alone; its steps include its waits for other ranks"


def _token_sentences(
    use: DeviceUsed, counted: Sequence[StepCounted], times: Times
) -> Iterator[str]:
    """Yield the tokens of a step, with their rate if all counted steps have as many."""
    source = _token_source(use)
    if use.tokens:
        sentence = f"{use.tokens:,.0f} tokens a step"
        if not times.why_slow:
            sentence += f", {_round(use.tokens / use.step_s):,} a second"
        yield f"{sentence} ({source})"
        return
    tokens = _tokens_of(counted)
    if not any(tokens):
        return
    each = []
    for count, record in zip(tokens, counted, strict=True):
        each.append(f"{count:,.0f} in step {record.step}")
    reason = "the counted steps have different numbers"
    yield f"tokens: {' and '.join(each)} ({source}); tokens a second: n/a, {reason}"


def _flops_words(counted: Sequence[StepCounted]) -> str:
    """Return the FLOPs of a step, their dtypes, and in which steps they were counted."""
    flops = [record.flops / record.steps for record in counted]
    kinds = _kinds_of(counted)
    shares = []
    for kind, count in sorted(kinds.items(), key=lambda entry: -entry[1]):
        shares.append(kind if len(kinds) == 1 else f"{percent(count / sum(kinds.values()))} {kind}")
    if _flops_differ(counted):
        each = []
        for value, record in zip(flops, counted, strict=True):
            each.append(f"{_amount(value, 'FLOP')} in step {record.step}")
        return f"{' and '.join(each)} ({join(shares)})"
    steps = "step " if len(counted) == 1 else "steps "
    steps += " and ".join(str(record.step) for record in counted)
    return f"{_amount(fmean(flops), 'FLOP')} in {join(shares)}, as counted in {steps}"


def _speed_sentences(use: DeviceUsed) -> Iterator[str]:
    speed = (use.flops or 0.0) / use.step_s
    rate = _amount(speed, "FLOP/s")
    if use.matmul_flops_s:
        product = _amount(use.matmul_flops_s, "FLOP/s")
        share = percent(speed / use.matmul_flops_s)
        yield (
            f"that is {rate}, {share} of a large matrix product "
            f"({product} in {use.kind}, {use.device})"
        )
    else:
        yield f"that is {rate}; share of a large matrix product: n/a, {use.why}"
    if use.peak_flops_s:
        peak = _amount(use.peak_flops_s, "FLOP/s")
        yield f"MFU: {percent(speed / use.peak_flops_s)} of {peak} (--peak-tflops)"


def _token_source(use: DeviceUsed) -> str:
    if use.tokens_from == "module":
        return "size of the integer input of the model"
    if use.tokens_from == "DataLoader":
        return "size of the integers in a batch of the DataLoader"
    return use.tokens_from


def _copy_sentences(counted: Sequence[StepCounted]) -> Iterator[str]:
    """Yield how often a step copies and waits; nothing if it does neither."""
    copies = max(record.copies / record.steps for record in counted)
    reads = max(record.device_reads / record.steps for record in counted)
    counts = []
    if copies:
        noun = "copy" if copies == 1 else "copies"
        counts.append(f"{_number(copies)} {noun} between host and device")
    if reads:
        noun = "call" if reads == 1 else "calls"
        counts.append(f"{_number(reads)} {noun} of .item()")
    if counts:
        yield f"the script makes in each step: {' and '.join(counts)}"
    if reads:
        yield ".item() waits until the device has done all its work; see `tuilab run sync-count`"
    if _has_pageable(counted):
        yield "a copy from pageable memory makes the CPU wait; see `tuilab run pin-memory`"
    packages = _packages_of(counted)
    if packages:
        yield f"installed packages make in each step: {packages}"


def _has_pageable(counted: Sequence[StepCounted]) -> bool:
    for record in counted:
        for place in record.places:
            if place.kind == "host to device" and place.memory == "pageable":
                return True
    return False


def _packages_of(counted: Sequence[StepCounted]) -> str:
    words: dict[str, str] = {}
    for record in counted:
        for package, counts in record.packages.items():
            if len(counts) == 2 and any(counts):
                copies, reads = counts
                made = f"{plural(copies, 'copy', 'copies')}, {plural(reads, 'call')} of .item()"
                words[package] = f"{package} ({made})"
    return join(list(words.values()))


def _table(counted: Sequence[StepCounted], title: str) -> TableShown | None:
    """Return the lines of the script that copy or wait, each with the counted step that has most.

    Reading a value on the host costs nothing, so such a line is left out.
    """
    largest: dict[tuple[str, int, str, str], tuple[float, float, str]] = {}
    for record in counted:
        for place in record.places:
            if place.kind == _READ and place.memory == "cpu":
                continue
            key = (place.file, place.line, place.kind, place.memory)
            times = (place.count / record.steps, place.bytes / record.steps, place.source)
            largest[key] = max(largest.get(key, times), times)
    if not largest:
        return None
    rows: list[list[str | int | float]] = []
    ordered = sorted(largest.items(), key=lambda entry: -entry[1][0])
    for (file, line, kind, memory), (count, held, source) in ordered:
        what = kind if kind == _READ else f"{kind}, {memory}"
        where = f"{PurePath(file).name}:{line}"
        rows.append([where, what, _number(count), size(held), source])
    return TableShown(title=title, rows=rows, head=["where", "what", "times", "bytes", "line"])


def _number(count: float) -> str:
    return f"{count:.0f}" if count == round(count) else f"{count:.1f}"


def _amount(value: float, unit: str) -> str:
    """Return an amount for people, in three digits: `9.43 GFLOP`."""
    for factor, prefix in _PREFIXES:
        if value >= factor:
            return f"{value / factor:.3g} {prefix}{unit}"
    return f"{value:.3g} {unit}"


def _round(value: float) -> int:
    """Return a rate in three digits."""
    return int(float(f"{value:.3g}"))
