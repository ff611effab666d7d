"""Every raw measurement of a run, nothing merged and nothing thinned.

The numbers of a line (a metric of an arm, a sensor) come in columns, and those of a long line in
several pieces, so that a run of any length takes little memory. An arm is one of the variants that
a scenario compares, and a writer is the process that recorded a value, as the stream of the journal
names it.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

from tuilab.errors import UsageError
from tuilab.probes.gpu.nvml import throttle_names
from tuilab.record import events
from tuilab.record.blocks import scale_of
from tuilab.record.gpus.own_gpus import MASKS
from tuilab.record.journal.follower import Follower, Portion
from tuilab.record.journal.lines import Item
from tuilab.record.series import by_arm, columns
from tuilab.record.usage import usage_of, why_untold
from tuilab.text.display import show

_PIECE_LIMIT = 65_536  # numbers that are gathered before they are passed on


class SamplePiece(NamedTuple):
    """Some numbers of one line, in their order; of a long line several pieces follow each other."""

    kind: str  # logged, block (of steps of a long command), sampled, timed
    name: str
    arm: str
    writer: str
    # Where a value is along x: its step or place, the round of a block, the number of a sample.
    places: list[float]
    steps: list[int]  # the same in whole numbers; for named places, how many values came before
    times: list[int]
    values: list[Any]  # numbers; None: the value could not be read, and the note has the reason
    # For each value, or empty. Of a block: warm-up, disturbed, rerun, and which control. Of a
    # throttle mask: its meaning.
    notes: list[str]
    # Of the kind `block`: for each value, of how many values it is the mean. Else empty.
    counts: list[int]


def read_samples(run_dir: Path, word: Callable[[str], str] = str) -> Iterator[SamplePiece]:
    """Yield every number that a run logged, sampled or timed; `word` changes names and arms."""
    for piece in _gather_pieces(run_dir):
        yield piece._replace(name=word(piece.name), arm=word(piece.arm))


def _gather_pieces(run_dir: Path) -> Iterator[SamplePiece]:
    """Yield the numbers of a run, those of a line together as far as the limit allows.

    UsageError if the journal cannot be read, perhaps after some pieces.
    """
    gathered: dict[tuple[str, str, str, str], SamplePiece] = {}
    count = 0
    counters: Counter[str] = Counter()
    races: dict[str, events.RaceStarted] = {}  # the latest race of each stream
    for portion in _read_portions(run_dir):
        for stream, items in portion.streams:
            for piece in _pieces_of_stream(stream, items, counters, races):
                key = piece.kind, piece.name, piece.arm, piece.writer
                if key not in gathered:
                    gathered[key] = SamplePiece(*key, [], [], [], [], [], [])
                _extend(gathered[key], piece)
                count += len(piece.values)
        if count >= _PIECE_LIMIT:
            yield from gathered.values()
            gathered = {}
            count = 0
    yield from gathered.values()


def _extend(piece: SamplePiece, addition: SamplePiece) -> None:
    piece.places.extend(addition.places)
    piece.steps.extend(addition.steps)
    piece.times.extend(addition.times)
    piece.values.extend(addition.values)
    piece.notes.extend(addition.notes)
    piece.counts.extend(addition.counts)


def _read_portions(run_dir: Path) -> Iterator[Portion]:
    """Yield the journal of a run in portions; UsageError if it cannot be read."""
    try:
        with closing(Follower(run_dir)) as follower:
            while portion := follower.read():
                yield portion
    except OSError as problem:
        name = show(run_dir.name)
        raise UsageError(f"cannot read the run {name}: {problem.strerror}") from problem


def _pieces_of_stream(
    stream: str, items: Sequence[Item], counters: Counter[str], races: dict[str, events.RaceStarted]
) -> Iterator[SamplePiece]:
    """Yield the numbers of some records of a stream, which have to come in their order.

    `counters` has how many samples were yielded before, and `races` the latest race of each stream.
    Both are changed.
    """
    logged = [item for item in items if isinstance(item, events.Logged)]
    if logged:
        yield from _logged(stream, logged)
    if len(logged) == len(items):
        return
    for item in items:
        if isinstance(item, events.RaceStarted):
            races[stream] = item
        elif isinstance(item, events.BlockTimed):
            yield from _timed(stream, item, races.get(stream))
        elif isinstance(item, events.BlockLogged):
            yield from _logged_in_block(stream, item)
        elif isinstance(item, events.Sampled):
            yield from _sampled(stream, item, counters["sampler"])
            counters["sampler"] += 1
        elif isinstance(item, events.GpuHeld):
            yield from _allocated(stream, item, counters[stream])
            counters[stream] += 1


def _logged(stream: str, logged: Sequence[events.Logged]) -> Iterator[SamplePiece]:
    """Yield the logged values of a stream, a piece for each name and arm."""
    for arm, records in by_arm(logged).items():
        for name, (chosen, values) in columns(records).items():
            # not by `record.place` and `record.logged_at`: there may be a million records
            yield SamplePiece(
                kind="logged",
                name=name,
                arm=arm,
                writer=stream,
                places=[record.s if record.x is None else record.x for record in chosen],
                steps=[record.s for record in chosen],
                times=[record.at or record.t for record in chosen],
                values=values,
                notes=[],
                counts=[],
            )


def _logged_in_block(stream: str, block: events.BlockLogged) -> Iterator[SamplePiece]:
    """Yield the mean of each name in a block of steps, with what it stands for as its note."""
    for name, values in block.v.items():
        mean = None
        note = f"{values.bad} of {values.count + values.bad} values are NaN or infinite"
        if values.count:
            mean = values.total / values.count
            spread = f"mean of {values.count} steps, from {values.least:g} to {values.greatest:g}"
            note = f"{spread}; {note}" if values.bad else spread
        piece = _piece("block", name, block.a, stream, block.s, block.logged_at, mean, note)
        yield piece._replace(counts=[values.count])


def _timed(
    stream: str, block: events.BlockTimed, race: events.RaceStarted | None
) -> Iterator[SamplePiece]:
    """Yield the number of a block: the time of a call, or what commands are compared by instead.

    The CPU time of the calling thread follows if a verdict may be judged on it. This is so on the
    CPU, and with the device "process", which means that whole commands are compared.
    """
    name = "step_s"
    scale = 1.0
    if race and race.measure:
        name = race.measure
        scale = scale_of(race.unit)
    seconds = (block.device_ns or block.wall_ns) / block.loops / 1e9
    note = _describe_block(block)
    yield _piece("timed", name, block.arm, stream, block.round, block.t, scale * seconds, note)
    if race and race.device in ("cpu", events.OWN_PROCESS) and block.thread_ns is not None:
        thread_s = block.thread_ns / block.loops / 1e9
        yield _piece("timed", "thread_s", block.arm, stream, block.round, block.t, thread_s, note)


def _describe_block(block: events.BlockTimed) -> str:
    """Return the words of a block that make it count differently; empty for a usual block."""
    words = []
    if block.is_warmup:
        words.append("warm-up")
    if block.is_disturbed:
        words.append("disturbed")
    if block.is_rerun:
        words.append("rerun")
    if block.control:
        words.append(f"control {block.control}")
    return " ".join(words)


def _sampled(stream: str, sample: events.Sampled, number: int) -> Iterator[SamplePiece]:
    """Yield what the processes used at one moment, and what the GPUs did.

    A value of the processes that could not be read is None, and its note has the reason. The arm of
    a GPU's value is the UUID of the GPU.
    """
    for name, reading in usage_of(sample).items():
        value = None
        note = f"n/a: {why_untold(sample)}"
        if math.isfinite(reading):
            value = float(reading)
            note = ""
        yield _piece("sampled", name, "", stream, number, sample.t, value, note)
    for uuid, metrics in sample.gpus.items():
        read_at = sample.gpus_asked.get(uuid, sample.t)
        for name, reading in metrics.items():
            note = ""
            if name == "throttle_mask" and 0 <= reading < MASKS:
                note = ", ".join(throttle_names(int(reading)))
            yield _piece("sampled", name, uuid, stream, number, read_at, reading, note)


def _allocated(stream: str, memory: events.GpuHeld, number: int) -> Iterator[SamplePiece]:
    """Yield what torch's allocator held on a GPU; older runs did not record its peak."""
    sizes = {"allocated_bytes": memory.allocated_bytes, "reserved_bytes": memory.reserved_bytes}
    if memory.allocated_peak_bytes:
        sizes["allocated_peak_bytes"] = memory.allocated_peak_bytes
    for name, size in sizes.items():
        yield _piece("sampled", name, memory.uuid, stream, number, memory.t, float(size))


def _piece(
    kind: str,
    name: str,
    arm: str,
    writer: str,
    number: int,
    time_ns: int,
    value: float | None,
    note: str = "",
) -> SamplePiece:
    """Return a piece of one number."""
    return SamplePiece(kind, name, arm, writer, [number], [number], [time_ns], [value], [note], [])
