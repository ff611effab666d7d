"""A long run of a command is recorded in blocks of steps: what they hold, and who reads them."""

import math
from pathlib import Path

import pytest

from tests.engine import read_stream
from tests.made_runs import make_run, started
from tuilab.commands import leftover_marks, watched
from tuilab.commands.output.scan_numbers import NumberScanner
from tuilab.commands.step_blocks import OpenBlock
from tuilab.commands.watched import Watched
from tuilab.commands.watcher._tuilab_watch import layout
from tuilab.commands.watcher._tuilab_watch.ring import Ring
from tuilab.engine.messages import CommandOrder
from tuilab.record.events import BlockLogged, Logged, StateChanged, ValuesOfBlock
from tuilab.record.folding.fold import fold
from tuilab.record.journal.writer import Writer
from tuilab.record.live_run import read_run
from tuilab.record.series import LIMIT
from tuilab.reports.reported_run import read_subject
from tuilab.reports.samples import read_samples

MS = 1_000_000
STEP_MS = 10
ALONE = 100  # steps that have a record each, in these tests


def train(folder: Path, steps: int) -> list[BlockLogged | Logged]:
    """Record a training of so many steps, and return the records of its curves."""
    ring = Ring(str(folder))
    ring.text(layout.NAME, "SGD\noptimizer 1", 1)
    for step in range(steps):
        ended = (step + 1) * STEP_MS * MS
        root = math.nan if step == 777 else float(step)
        ring.mark(layout.WENT_BACK, ended - 5 * MS, ended - 2 * MS, root, 0, 0, layout.HAS_VALUE)
        ring.mark(layout.STEPPED, ended - MS, ended, name=1)
        if step % 100 == 0:
            ring.mark(layout.LOGGED, ended, step, 0.5, 0, name=2)
    ring.text(layout.NAME, "acc\ntuilab.log", 2)
    stream = folder / "worker-0.jsonl"
    journal = Writer(stream)
    recorder = Watched(CommandOrder(words=["python"]), folder, NumberScanner([]), journal)
    recorder.finish()
    journal.close()
    return [item for item in read_stream(stream) if isinstance(item, Logged | BlockLogged)]


@pytest.fixture
def records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[BlockLogged | Logged]:
    monkeypatch.setattr(watched, "STEPS_ALONE", ALONE)
    return train(tmp_path, 1000)


def test_steps_of_a_long_run_share_records_of_two_seconds(
    records: list[BlockLogged | Logged],
) -> None:
    blocks = [record for record in records if isinstance(record, BlockLogged)]
    alone = [record for record in records if isinstance(record, Logged) and "step_ms" in record.v]

    assert len(alone) == ALONE - 1  # the first step has no length
    assert sum(block.steps for block in blocks) == 1000 - ALONE
    assert [block.s for block in blocks][:2] == [ALONE, ALONE + 201]
    assert blocks[0].v["step_ms"] == ValuesOfBlock(10.0, 10.0, 10.0, 10.0, 2010.0, 201)


def test_a_block_has_ends_sum_and_count_and_counts_what_is_not_finite(
    records: list[BlockLogged | Logged],
) -> None:
    (block,) = [
        record
        for record in records
        if isinstance(record, BlockLogged) and record.s <= 777 < record.s + record.steps
    ]
    finite = [step for step in range(block.s, block.s + block.steps) if step != 777]

    root = block.v["backward root"]
    assert (root.first, root.last) == (finite[0], finite[-1])
    assert (root.least, root.greatest, root.total) == (min(finite), max(finite), sum(finite))
    assert (root.count, root.bad) == (len(finite), 1)


def test_curves_have_every_step_of_the_blocks(records: list[BlockLogged | Logged]) -> None:
    series = fold(("worker-0", record) for record in records).series
    root = series["backward root", "", "worker-0"]
    step_ms = series["step_ms", "", "worker-0"]

    assert (root.count, root.low, root.high, root.bad_count) == (1000, 0.0, 999.0, 1)
    assert (step_ms.count, step_ms.last) == (999, 10.0)


def test_values_that_the_script_logs_are_never_in_blocks(
    records: list[BlockLogged | Logged],
) -> None:
    logged = [record for record in records if "acc (tuilab.log)" in record.v]

    assert len(logged) == 10 and all(isinstance(record, Logged) for record in logged)


def test_blocks_of_any_length_keep_a_series_bounded(tmp_path: Path) -> None:
    values = ValuesOfBlock(1.0, 2.0, 0.5, 3.0, 1.5, 2)
    blocks = [
        ("worker-0", BlockLogged(s=1000 * number, steps=1000, v={"x": values}))
        for number in range(3 * LIMIT)
    ]
    line = fold(blocks).series["x", "", "worker-0"]

    assert len(line.lows) <= LIMIT
    assert (line.low, line.high, line.count) == (0.5, 3.0, 6 * LIMIT)


def test_a_block_of_nothing_finite_has_no_values() -> None:
    block = OpenBlock("rank 1")
    block.add(7, {"x": math.inf}, 5)

    closed = block.close()
    assert closed == BlockLogged(
        s=7, steps=1, v={"x": ValuesOfBlock(0, 0, 0, 0, 0, 0, 1)}, a="rank 1", at=5
    )
    assert block.close() is None


def test_exports_have_the_mean_of_a_block_and_what_it_stands_for(tmp_path: Path) -> None:
    values = ValuesOfBlock(1.0, 2.0, 1.0, 3.0, 6.0, 3, 1)
    run_dir = make_run(
        tmp_path,
        started(),
        BlockLogged(s=10, steps=4, v={"loss": values}, at=5),
        StateChanged(state="succeeded"),
    )
    (piece,) = read_samples(run_dir)

    assert (piece.kind, piece.places, piece.values) == ("block", [10], [2.0])
    assert piece.notes == ["mean of 3 steps, from 1 to 3; 1 of 4 values are NaN or infinite"]
    assert read_subject(run_dir).summary.series == read_run(run_dir).series


def test_who_goes_on_after_a_killed_worker_knows_the_steps_of_its_blocks(
    tmp_path: Path, records: list[BlockLogged | Logged]
) -> None:
    recorded = leftover_marks.read_recorded(tmp_path / "worker-0.jsonl")

    assert recorded[""].steps == 1000
    assert recorded[""].until_ns == 1000 * STEP_MS * MS
