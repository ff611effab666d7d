"""Every raw measurement of a run, nothing merged and nothing thinned: columns of numbers, of each line some at a time."""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
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

_HELD = 65_536  # numbers that are gathered at a time: what a run of any length takes of memory


class SamplePiece(NamedTuple):
    """Some numbers of one line, in their order; of a long line several pieces follow each other."""

    kind: str  # logged, sampled, timed
    name: str
    arm: str
    writer: str
    places: list[
        float
    ]  # the step of a logged value or where else it stands, the round of a block, the number of a sample
    steps: list[
        int
    ]  # the same in whole numbers: of values that stand at none, how many came before
    times: list[int]
    values: list[Any]  # numbers; None: looked for, and not to be told; the note says why
    notes: list[
        str
    ]  # of a timed block: warm-up, disturbed, rerun, which control; of a throttle mask what it means; or none


def pieces(run_dir: Path, word: Callable[[str], str] = str) -> Iterator[SamplePiece]:
    """Yield every number that a run logged, sampled or timed; names and arms as `word` has them."""
    for piece in _pieces_of_run(run_dir):
        yield piece._replace(name=word(piece.name), arm=word(piece.arm))


def _pieces_of_run(run_dir: Path) -> Iterator[SamplePiece]:
    held: dict[tuple[str, str, str, str], SamplePiece] = {}
    count, counters = 0, Counter[str]()
    races: dict[str, events.RaceStarted] = {}  # the last one of each stream
    for portion in _portions(run_dir):
        for stream, items in portion.streams:
            for piece in _pieces(stream, items, counters, races):
                key = piece.kind, piece.name, piece.arm, piece.writer
                own = held.get(key) or held.setdefault(key, SamplePiece(*key, [], [], [], [], []))
                pairs: Iterable[tuple[Any, Any]] = zip(own[4:], piece[4:], strict=True)
                for column, more in pairs:
                    column.extend(more)
                count += len(piece.values)
        if count >= _HELD:
            yield from held.values()
            held, count = {}, 0
    yield from held.values()


def _portions(run_dir: Path) -> Iterator[Portion]:
    try:
        follower = Follower(run_dir)
        while portion := follower.read():
            yield portion
        follower.close()
    except OSError as problem:
        raise UsageError(
            f"cannot read the run {show(run_dir.name)}: {problem.strerror}"
        ) from problem


def _pieces(
    stream: str, items: Sequence[Item], counters: Counter[str], races: dict[str, events.RaceStarted]
) -> Iterator[SamplePiece]:
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
        elif isinstance(item, events.Sampled):
            yield from _sampled(stream, item, counters["sampler"])
            counters["sampler"] += 1
        elif isinstance(item, events.GpuHeld):
            peak = (
                ["allocated_peak_bytes"] if item.allocated_peak_bytes else []
            )  # which older runs have not told
            for name in ("allocated_bytes", "reserved_bytes", *peak):
                yield _one(
                    "sampled",
                    name,
                    item.uuid,
                    stream,
                    counters[stream],
                    item.t,
                    float(getattr(item, name)),
                )
            counters[stream] += 1


def _logged(stream: str, logged: Sequence[events.Logged]) -> Iterator[SamplePiece]:
    for arm, records in by_arm(logged).items():
        for name, (chosen, values) in columns(records).items():
            steps = [record.s for record in chosen]
            places = [record.s if record.x is None else record.x for record in chosen]
            yield SamplePiece(
                "logged",
                name,
                arm,
                stream,
                places,
                steps,
                [record.at or record.t for record in chosen],
                values,
                [],
            )


def _timed(
    stream: str, item: events.BlockTimed, race: events.RaceStarted | None
) -> Iterator[SamplePiece]:
    """Yield a block: the time of a call, or what commands are held against each other by instead.

    The CPU time of the thread that called follows where a verdict may go by it.
    """
    marks = ("warm-up", item.is_warmup), ("disturbed", item.is_disturbed), ("rerun", item.is_rerun)
    notes = [
        *(word for word, holds in marks if holds),
        *([f"control {item.control}"] if item.control else []),
    ]
    seconds = (item.device_ns or item.wall_ns) / item.loops / 1e9
    name, scale = (race.measure, scale_of(race.unit)) if race and race.measure else ("step_s", 1.0)
    yield _one(
        "timed", name, item.arm, stream, item.round, item.t, scale * seconds, " ".join(notes)
    )
    if race and race.device in ("cpu", "process") and item.thread_ns is not None:
        thread_s = item.thread_ns / item.loops / 1e9
        yield _one(
            "timed", "thread_s", item.arm, stream, item.round, item.t, thread_s, " ".join(notes)
        )


def _sampled(stream: str, item: events.Sampled, number: int) -> Iterator[SamplePiece]:
    for name, value in usage_of(item).items():
        is_told = math.isfinite(value)
        why = "" if is_told else f"n/a: {why_untold(item)}"
        yield _one(
            "sampled", name, "", stream, number, item.t, float(value) if is_told else None, why
        )
    for uuid, metrics in item.gpus.items():
        for name, value in metrics.items():
            why = (
                ", ".join(throttle_names(int(value)))
                if name == "throttle_mask" and 0 <= value < MASKS
                else ""
            )
            yield _one(
                "sampled", name, uuid, stream, number, item.gpus_asked.get(uuid, item.t), value, why
            )


def _one(
    kind: str,
    name: str,
    arm: str,
    writer: str,
    number: int,
    t: int,
    value: float | None,
    note: str = "",
) -> SamplePiece:
    return SamplePiece(kind, name, arm, writer, [number], [number], [t], [value], [note])
