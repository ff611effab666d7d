"""How the use of a device is put into words, and next to a matrix product that is really timed."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.conftest import run_of
from tests.engine import read_stream
from tuilab.cli.headless import AlertLines
from tuilab.commands.cpu.core_time import CoreTime
from tuilab.commands.facts.device_use import (
    LEAST,
    STAGE,
    Times,
    measure_product,
    records_of,
    why_slow,
)
from tuilab.commands.output.scan_numbers import NumberScanner
from tuilab.commands.watched import Watched
from tuilab.commands.watcher._tuilab_watch import layout
from tuilab.commands.watcher._tuilab_watch.ring import Ring
from tuilab.drawings.glyphs import Style
from tuilab.engine.messages import CommandOrder
from tuilab.record.events import (
    CoresAwaited,
    CountedPlace,
    DeviceUsed,
    Event,
    StepCounted,
    TableShown,
    TextShown,
    Unavailable,
)
from tuilab.record.folding.fold import fold
from tuilab.record.journal.writer import Writer

Tuilab = Callable[..., "subprocess.CompletedProcess[str]"]
TIMES = Times(step_s=0.5, steps=LEAST)


def step(**fields: object) -> StepCounted:
    """Return a step of 2 TFLOP in bfloat16 on a CPU, changed by `fields`."""
    known = {
        "step": 5,
        "flops": 2 * 10**12,
        "kinds": {"bfloat16": 2 * 10**12},
        "device": "cpu",
        "threads": 4,
        "tokens": 1000,
        "tokens_from": "module",
    }
    return StepCounted(**{**known, **fields})  # type: ignore[arg-type]


def made(
    *counted: StepCounted,
    times: Times = TIMES,
    why_not: str = "",
    rate: float | str = 1e13,
    **options: float,
) -> list[Event]:
    """Return the records about counted steps, with a product of 10 TFLOP/s."""
    command = CommandOrder(words=["true"], **options)  # type: ignore[arg-type]
    return list(records_of(counted, times, why_not, command, lambda step, kind: rate))


def text_of(records: list[Event]) -> str:
    (text,) = [record.text for record in records if isinstance(record, TextShown)]
    return text


def use_of(records: list[Event]) -> DeviceUsed:
    (use,) = [record for record in records if isinstance(record, DeviceUsed)]
    return use


def test_share_of_a_product_and_of_a_data_sheet_are_shown() -> None:
    records = made(step(), peak_tflops=400.0)

    assert text_of(records).splitlines() == [
        "a step computes 2 TFLOP in bfloat16, as counted in step 5",
        "that is 4 TFLOP/s, 40 % of a large matrix product (10 TFLOP/s in bfloat16, "
        "this CPU with 4 threads)",
        "MFU: 1 % of 400 TFLOP/s (--peak-tflops)",
        "1,000 tokens a step, 2,000 a second (size of the integer input of the model)",
    ]
    use = use_of(records)
    assert (use.flops, use.matmul_flops_s, use.peak_flops_s) == (2e12, 1e13, 4e14)


def test_the_user_may_say_how_many_tokens_a_step_has() -> None:
    assert "64 tokens a step, 128 a second (--tokens)" in text_of(made(step(), tokens=64))


def test_counted_steps_that_differ_are_both_shown_without_a_rate() -> None:
    other = step(step=47, flops=10**12, kinds={"float32": 10**12}, tokens=400)
    records = made(step(), other, peak_tflops=400.0)

    reason = "the counted steps have different FLOPs"
    assert text_of(records).splitlines() == [
        "a step computes 2 TFLOP in step 5 and 1 TFLOP in step 47 (67 % bfloat16, 33 % float32)",
        "tokens: 1,000 in step 5 and 400 in step 47 (size of the integer input of the model); "
        "tokens a second: n/a, the counted steps have different numbers",
        f"FLOPs a second, share of a large matrix product, MFU: n/a, {reason}",
    ]
    use = use_of(records)
    assert (use.flops, use.tokens, use.matmul_flops_s, use.why) == (None, None, None, reason)


def test_a_rate_is_shown_if_only_the_tokens_differ() -> None:
    records = made(step(), step(step=47, tokens=None))

    assert "tokens: 1,000 in step 5 and 0 in step 47 (size of the integer" in text_of(records)
    assert "40 % of a large matrix product" in text_of(records)
    assert (use_of(records).flops, use_of(records).tokens) == (2e12, None)


def test_steps_that_waited_for_a_core_have_no_rate_and_no_share() -> None:
    waited = "the steps waited 53 % of the time for a core"
    times = TIMES._replace(why_slow=waited)
    records = made(step(), times=times, peak_tflops=400.0, tokens=64)

    assert text_of(records).splitlines() == [
        "a step computes 2 TFLOP in bfloat16, as counted in step 5",
        "64 tokens a step (--tokens)",
        "FLOPs a second, share of a large matrix product, MFU, tokens a second: n/a, " + waited,
    ]
    use = use_of(records)
    assert (use.flops, use.matmul_flops_s, use.why) == (2e12, None, waited)


def waiting(delayed_ns: int) -> CoreTime:
    """Return the CPU times of a step of a microsecond."""
    return CoreTime(
        steps=1, wall_ns=1000, thread_ns=900, process_ns=900, delayed_ns=delayed_ns, waited_ns=0
    )


def test_steps_on_a_cpu_are_slow_if_they_waited_for_more_than_a_tenth() -> None:
    quiet = CoresAwaited(elapsed_s=10.0, waited_s=3.9, usable=2)
    busy = CoresAwaited(elapsed_s=10.0, waited_s=4.1, usable=2)  # of four threads

    assert why_slow([waiting(100)], quiet, [step()], ranks=1) == ""
    assert why_slow([waiting(960), waiting(100)], None, [step()], ranks=1) == (
        "the steps waited 53 % of the time for a core"
    )
    assert why_slow([waiting(0)], busy, [step()], ranks=1) == (
        "in 10 s of steps, the threads and child processes of the command waited for cores, "
        "together for 4.1 s"
    )
    assert why_slow([waiting(0)], busy, [step()], ranks=2) == ""
    assert why_slow([waiting(960)], busy, [step(device="cuda")], ranks=1) == ""
    assert why_slow([], None, [], ranks=1) == ""


def test_numbers_of_one_rank_include_its_waits_for_others() -> None:
    words = text_of(made(step(), times=TIMES._replace(arm="rank 0")))

    assert words.splitlines()[-1] == (
        "these numbers are of rank 0 alone; its steps include its waits for other ranks"
    )


def test_a_product_that_was_not_measured_is_not_available_with_its_reason() -> None:
    words = text_of(made(step(), rate="the run was stopped"))

    assert "share of a large matrix product: n/a, the run was stopped" in words


def test_few_steps_are_compared_with_nothing_and_the_reason_is_shown() -> None:
    records = made(step(), times=Times(0.5, LEAST - 1))

    assert text_of(records).splitlines() == [
        "a step computes 2 TFLOP in bfloat16, as counted in step 5",
        "FLOPs a second, share of a large matrix product: n/a, "
        "this needs 20 timed steps, and there are 19",
    ]


def test_a_reason_for_no_counted_step_is_recorded_after_enough_steps() -> None:
    assert made(why_not="torch.compile is in use") == [
        Unavailable(what="FLOPs of a step", reason="torch.compile is in use")
    ]
    assert made(why_not="torch.compile is in use", times=Times(0.5, 3)) == []


def test_lines_that_copy_or_wait_are_a_table_without_reads_on_the_host() -> None:
    def place(line: int, kind: str, memory: str, count: int) -> CountedPlace:
        return CountedPlace(
            file="/a/train.py", line=line, kind=kind, memory=memory, count=count, bytes=1024
        )

    places = [
        place(3, "host to device", "pageable", 1),
        place(4, ".item()", "cuda", 2),
        place(5, ".item()", "cpu", 9),
    ]
    records = made(step(places=places, copies=1, device_reads=2, packages={"trainer": [1, 0]}))

    (table,) = [record for record in records if isinstance(record, TableShown)]
    assert table.rows == [
        ["train.py:4", ".item()", "2", "1 KiB", ""],
        ["train.py:3", "host to device, pageable", "1", "1 KiB", ""],
    ]
    words = text_of(records)
    assert "in each step: 1 copy between host and device and 2 calls of .item()" in words
    assert "a copy from pageable memory makes the CPU wait" in words
    assert "installed packages make in each step: trainer (1 copy, 0 calls of .item())" in words


def test_the_stage_of_the_product_keeps_the_progress_and_is_printed_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ring = Ring(str(tmp_path))
    ring.text(layout.NAME, "SGD\noptimizer 1", 1)
    for number in range(1, 11):
        ring.mark(layout.STEPPED, number * 1000, number * 1000 + 500, name=1)
    stream = tmp_path / "worker-0.jsonl"
    journal = Writer(stream)
    recorder = Watched(CommandOrder(words=["python"]), tmp_path, NumberScanner([]), journal)
    recorder.finish()
    recorder.enter(STAGE)
    journal.close()

    summary = fold([("worker-0", item) for item in read_stream(stream)])
    assert [stage.name for stage in summary.stages] == [STAGE]
    assert summary.progress is not None and summary.progress.done == 10
    lines = AlertLines(Style())
    watch: Any = SimpleNamespace(summary=summary)
    lines.update(watch)
    lines.update(watch)
    assert capsys.readouterr().err == f"tuilab: {STAGE}\n"


@pytest.mark.real_torch
def test_a_product_is_timed_on_the_cpu_and_a_missing_gpu_has_a_reason() -> None:
    rate = measure_product(step(threads=1), "float32", lambda: False)
    reason = measure_product(step(device="cuda", uuid="GPU-1"), "float32", lambda: False)

    assert isinstance(rate, float) and rate > 0
    assert isinstance(reason, str) and "CUDA" in reason
    assert measure_product(step(), "int8", lambda: False) == (
        "no product in int8 is measured on a device cpu"
    )
    assert measure_product(step(), "float32", lambda: True) == "the run was stopped"


SCRIPT = """
import torch
net = torch.nn.Linear(64, 64)
o = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(60):
    o.zero_grad()
    net(torch.randn(32, 64)).pow(2).mean().backward()
    o.step()
"""


@pytest.mark.real_torch
@pytest.mark.slow
def test_a_whole_run_has_its_flops_and_its_share_of_a_product(
    tuilab: Tuilab, tmp_path: Path
) -> None:
    path = tmp_path / "script.py"
    path.write_text(SCRIPT)

    done = tuilab("exec", "--json", "--tokens", "32", "--", sys.executable, str(path))
    run = run_of(done)

    flops = 2 * (2 * 32 * 64 * 64)
    assert [(part["step"], part["flops"]) for part in run["counted_steps"]] == [
        (5, flops),
        (47, flops),
    ]
    assert [part["tokens"] for part in run["counted_steps"]] == [None, None]
    (use,) = run["uses"]
    assert (use["flops"], use["tokens"], use["kind"]) == (flops, 32.0, "float32")
    if use["matmul_flops_s"] is None:
        assert "waited" in use["why"], "only on a machine whose cores are busy"
        assert STAGE not in done.stderr
    else:
        assert use["matmul_flops_s"] > 0
        assert f"tuilab: {STAGE}" in done.stderr
    assert "use of the device" in [text["title"] for text in run["texts"]]
    assert json.dumps(run)


def test_options_of_the_count_need_the_whole_watcher(tuilab: Tuilab) -> None:
    for option in (("--tokens", "5"), ("--peak-tflops", "9")):
        done = tuilab("exec", "--watch", "steps", *option, "--", "true")

        assert done.returncode == 2
        assert f"{option[0]} has no effect with --watch steps" in done.stderr
