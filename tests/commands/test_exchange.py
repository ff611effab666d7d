"""What torch samples of the exchange of gradients among two ranks, and which rank's backward ends last."""

import json
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from tests.commands.watched_script import Unwatched, Watch, WatchedScript
from tuilab.commands.facts.exchange import GradientExchange, MeanStep
from tuilab.commands.facts.rank_order import describe_ranks, is_one_last

TIMES = MeanStep(steps=12, mean_ns=100e6, backward_share=80)
# Two ranks: a script forks, and the ranks meet in a file. Rank 0 waits for the end of rank 1.
RANKS = """
import time
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
os.environ["GLOO_SOCKET_IFNAME"] = "lo"
child = os.fork()
rank = 0 if child else 1
dist.init_process_group("gloo", init_method=f"file://{os.getcwd()}/store", rank=rank, world_size=2)
net = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Linear(8, 1))
first_weight = net[0].weight  # the backward computes its gradient last
ddp = DDP(net, OPTIONS)
o = sgd(ddp)
def step(): o.zero_grad(); value = ddp(torch.ones(2, 4)).sum(); value.backward(); o.step(); return value.item()
def leave():
    sys.stdout.flush()
    if child: os.waitpid(child, 0)
    else: os._exit(0)
"""


def ranks(script: str, options: str = "") -> str:
    """Return a script of two ranks."""
    return RANKS.replace(", OPTIONS", options) + textwrap.dedent(script)


def exchanges_of(seen: WatchedScript) -> dict[int, GradientExchange]:
    """Return what the ranks measured, by rank."""
    return {int(process.rank): process.exchange for process in seen.processes if process.rank}


def sentences_of(seen: WatchedScript) -> list[str]:
    return [*describe_ranks(exchanges_of(seen), TIMES)]


@pytest.mark.real_torch
def test_rank_with_a_slow_backward_is_named_as_last(watch: Watch) -> None:
    """Rank 1 computes its last gradient after rank 0 has, and 20 ms later."""
    seen = watch(
        ranks(
            """
        store = dist.FileStore(f"{os.getcwd()}/turns", 2)
        count = 0
        def wait(gradient):
            if rank == 0:
                store.set(f"done {count}", "")
            else:
                store.get(f"done {count}")
                time.sleep(0.02)
        first_weight.register_hook(wait)
        for count in range(33): step()
        leave()
        """
        )
    )

    sentences = sentences_of(seen)
    assert sentences[0].startswith("rank 1's backward ends last in ")
    assert "most of this delay arises in the backward" in sentences[1]
    assert sentences[2].startswith("the other ranks wait for rank 1: check ")


@pytest.mark.real_torch
def test_rank_with_a_slow_forward_is_named_with_that_cause(watch: Watch) -> None:
    seen = watch(
        ranks(
            """
        for count in range(12):
            dist.barrier()
            if rank == 1: time.sleep(0.05)
            step()
        leave()
        """
        )
    )

    assert "most of this delay arises before the backward" in sentences_of(seen)[1]


@pytest.mark.real_torch
def test_ranks_that_are_slow_in_turn_name_nobody(watch: Watch) -> None:
    seen = watch(
        ranks(
            """
        def wait(gradient):
            if rank == count % 2: time.sleep(0.05)
        first_weight.register_hook(wait)
        for count in range(12): step()
        leave()
        """
        )
    )

    assert sentences_of(seen)[0].startswith("no single rank's backward ends last: ")


@pytest.mark.real_torch
def test_slow_exchange_is_shown_as_not_hidden(watch: Watch) -> None:
    """A hook holds the gradients back for 50 ms after they have been exchanged."""
    seen = watch(
        ranks(
            """
        import threading
        def hold(state, bucket):
            gradients = bucket.buffer()
            done = torch.futures.Future()
            def exchange():
                dist.all_reduce(gradients)
                time.sleep(0.05)
                done.set_result(gradients)
            threading.Thread(target=exchange).start()
            return done
        ddp.register_comm_hook(None, hold)
        for count in range(12): step()
        leave()
        """
        )
    )

    exchange = exchanges_of(seen)[0]
    assert exchange.share_of_step(TIMES) > 10
    assert exchange.modules[1].hook == "hold" and exchange.modules[1].backend == "gloo"
    assert sentences_of(seen)[-2].startswith("to shorten the exchange, try gradient_as_bucket_view")


@pytest.mark.real_torch
def test_samples_are_the_first_ten_iterations_and_every_tenth(watch: Watch) -> None:
    seen = watch(ranks("for count in range(42): step()\nleave()\n"))

    for exchange in exchanges_of(seen).values():
        assert list(exchange.samples_of(1)) == [3, 4, 5, 6, 7, 8, 9, 10, 20, 30, 40]


@pytest.mark.real_torch
def test_rate_that_the_script_sets_is_kept(watch: Watch) -> None:
    seen = watch(
        ranks(
            """
        ddp._set_ddp_runtime_logging_sample_rate(7)
        for count in range(42): step()
        leave()
        """
        )
    )

    iterations = list(exchanges_of(seen)[0].samples_of(1))
    assert [number for number in iterations if number > 10] == [14, 28, 35]


@pytest.mark.real_torch
def test_backwards_in_no_sync_are_no_iterations(watch: Watch) -> None:
    seen = watch(
        ranks(
            """
        for count in range(12):
            with ddp.no_sync():
                for _ in range(3): ddp(torch.ones(2, 4)).sum().backward()
            step()
        leave()
        """
        )
    )

    samples = exchanges_of(seen)[0].samples_of(1)
    assert samples and max(samples) <= 11


@pytest.mark.real_torch
@pytest.mark.parametrize("options", ["static_graph=True", "find_unused_parameters=True"])
def test_other_kinds_of_graphs_are_sampled_as_well(watch: Watch, options: str) -> None:
    script = "for count in range(12): step()\nleave()\n"
    seen = watch(ranks(script, f", {options}"))

    assert list(exchanges_of(seen)[1].samples_of(1)) == [*range(3, 11)]


@pytest.mark.real_torch
def test_each_of_two_modules_has_its_samples(watch: Watch) -> None:
    seen = watch(
        ranks(
            """
        other = DDP(torch.nn.Linear(4, 1))
        for count in range(12):
            step()
            other(torch.ones(2, 4)).sum().backward()
        leave()
        """
        )
    )

    exchange = exchanges_of(seen)[0]
    assert [facts.name for facts in exchange.shared_modules()] == ["Sequential", "Linear"]
    assert exchange.samples_of(1).keys() == exchange.samples_of(2).keys() == {*range(3, 11)}


@pytest.mark.real_torch
def test_joined_rank_with_fewer_batches_ends_well(watch: Watch) -> None:
    seen = watch(
        ranks(
            """
        with ddp.join():
            for count in range(12 + 4 * rank): step()
        leave()
        """
        )
    )

    by_rank = exchanges_of(seen)
    assert {*range(3, 11)} <= by_rank[0].samples_of(1).keys()
    assert sentences_of(seen)


@pytest.mark.real_torch
def test_killed_rank_keeps_its_samples(watch: Watch) -> None:
    seen = watch(
        ranks(
            """
        import signal
        try:
            for count in range(33):
                if rank == 1 and count == 15: os.kill(os.getpid(), signal.SIGKILL)
                step()
        except RuntimeError: print("the other rank is gone")
        leave()
        """
        )
    )

    assert "the other rank is gone" in seen.done.stdout
    for exchange in exchanges_of(seen).values():
        assert list(exchange.samples_of(1)) == [*range(3, 11)]


@pytest.mark.real_torch
def test_watched_ranks_learn_the_same_bit_for_bit(watch: Watch, unwatched: Unwatched) -> None:
    script = ranks("print(rank, [step().hex() for count in range(12)])\nleave()\n")
    watched = watch(script).done.stdout
    Path("store").unlink(missing_ok=True)

    assert sorted(watched.splitlines()) == sorted(unwatched(script).stdout.splitlines())


@pytest.mark.real_torch
def test_script_without_ddp_reports_nothing(watch: Watch) -> None:
    seen = watch(
        """
        import _tuilab_watch
        o = sgd()
        for _ in range(3): loss().backward(); o.step()
        print(_tuilab_watch._watcher.exchange)
        """
    )

    (process,) = seen.processes
    assert seen.done.stdout == "None\n"
    assert process.exchange.modules == {} and [*process.exchange.sentences(TIMES)] == []


@pytest.mark.real_torch
def test_steps_alone_leave_ddp_as_it_is(watch: Watch) -> None:
    seen = watch(ranks("for count in range(12): step()\nleave()\n"), "steps")

    assert all(process.exchange.modules == {} for process in seen.processes)


# ---- what is made of the samples, with times in ms


def made(
    *samples: tuple[float, float, float], is_on_gpu: bool = False, hook: str = ""
) -> GradientExchange:
    """Return what a rank reported: for each step the begin and end of its backward, and of the exchange."""
    exchange = GradientExchange()
    facts = {"of": 1, "name": "Net", "backend": "gloo", "world": 2, "bytes": 2**20, "hook": hook}
    facts |= {"buckets": [2**19, 2**19], "is_float32": True, "is_on_gpu": is_on_gpu}
    exchange.take(json.dumps(facts))
    for number, (began, ended, exchanged) in enumerate(samples, 3):
        times = {"began": began, "ended": ended, "compute": ended - began}
        times |= {"both": 1, "exchange": exchanged - ended + 1}
        in_ns = {name: int(time * 1e6) for name, time in times.items()}
        exchange.take(json.dumps({"module": 1, "iteration": number, **in_ns}))
    return exchange


def told(*ranks: GradientExchange) -> list[str]:
    return [*describe_ranks(dict(enumerate(ranks)), TIMES)]


def test_last_rank_is_described_with_its_delay_and_the_next_step() -> None:
    fast = made(*[(10, 20, 65)] * 10)
    slow = made(*[(12, 60, 65)] * 10)

    assert told(fast, slow) == [
        "rank 1's backward ends last in 10 of 10 sampled steps, a median of 40 ms (40 % of a step) "
        "after the first",
        "most of this delay arises in the backward, which begins a median of 2 ms after the first one",
        "the other ranks wait for rank 1: check whether it has more work (`tuilab run load-balance`), "
        "waits for data, or has a slower core",
        "after the last backward, the exchange of 1 MiB in 2 buckets over gloo takes a median of 5 ms "
        "(5 % of a step)",
    ]


def test_rank_that_is_last_by_little_gets_no_advice() -> None:
    assert told(made(*[(10, 20, 25)] * 10), made(*[(10, 21, 25)] * 10)) == [
        "rank 1's backward ends last in 10 of 10 sampled steps, but only a median of 1 ms "
        "(1 % of a step) after the first",
        "after the last backward, the exchange of 1 MiB in 2 buckets over gloo takes a median of 4 ms "
        "(4 % of a step)",
    ]


def test_on_a_gpu_the_rank_is_last_that_waits_least() -> None:
    fast = made(*[(10, 20, 60)] * 10, is_on_gpu=True)
    slow = made(*[(510, 520, 530)] * 10, is_on_gpu=True)  # the clocks do not matter

    sentences = told(fast, slow)
    assert sentences[0].startswith(
        "rank 1's backward ends last in 10 of 10 sampled steps, a median of 30 ms"
    )
    assert "slower GPU" in sentences[1]
    assert sentences[-3:] == [
        "to shorten the exchange, try bf16_compress_hook: half the bytes, but less exact gradients",
        "or gradient_as_bucket_view=True: no copies between gradients and buckets",
        "or no_sync() with gradient accumulation: fewer exchanges (`tuilab run no-sync`)",
    ]


def test_ranks_in_turn_are_counted() -> None:
    first = [(10, 20, 65), (10, 60, 65)]
    sentences = told(made(*first * 5), made(*first[::-1] * 5))

    assert sentences[0] == (
        "no single rank's backward ends last: rank 1 in 5, rank 0 in 5 of 10 sampled steps"
    )
    assert (
        sentences[1] == "the last backward ends a median of 40 ms (40 % of a step) after the first"
    )
    assert sentences[2].startswith("each rank waits in some steps: ")


def test_exchange_that_ends_before_the_last_backward_names_nobody() -> None:
    """The clock of rank 1 is an hour ahead."""
    ahead = made(*[(3_600_010, 3_600_020, 3_600_065)] * 10)

    assert told(made(*[(10, 20, 65)] * 10), ahead) == [
        "which rank's backward ends last: n/a, ranks did not wait for each other, or their clocks differ"
    ]


@pytest.mark.parametrize(
    ("ranks", "reason"),
    [
        ([made(*[(10, 20, 65)] * 10)], "one of 2 ranks ran on this machine"),
        ([made(*[(10, 20, 65)] * 7)] * 2, "only 7 steps of all ranks were sampled"),
        ([made(*[(10, 20, 65)] * 10)] * 4, "the ranks exchange gradients in several groups"),
    ],
)
def test_order_of_ranks_that_is_not_known_has_its_reason(
    ranks: list[GradientExchange], reason: str
) -> None:
    assert told(*ranks) == [f"which rank's backward ends last: n/a, {reason}"]


@pytest.mark.parametrize(
    ("count", "steps", "ranks", "is_last"),
    [(8, 8, 2, True), (7, 8, 2, False), (9, 10, 2, False), (17, 20, 2, True), (79, 100, 8, False), (0, 0, 2, False)],
)  # fmt: skip
def test_rank_is_last_only_if_chance_hardly_does_that(
    count: int, steps: int, ranks: int, is_last: bool
) -> None:
    assert is_one_last(count, steps, ranks) == is_last


def test_sentences_of_a_rank_add_up_its_iterations() -> None:
    exchange = made(*[(10, 20, 65)] * 8)  # iterations 3 to 10, in 5 steps: two in each
    mean_step = MeanStep(steps=5, mean_ns=200e6, backward_share=80)

    assert [*exchange.sentences(mean_step)] == [
        "gradients: computed for 10 ms, exchanged for 46 ms, both at once for 1 ms "
        "(mean of 8 sampled steps)",
        "exchange that no computation hides: 45 % of a step, including waits for other ranks",
    ]
    assert exchange.bars() == {"only computing": 9, "both at once": 1, "only exchanging": 45}


def test_share_of_slow_samples_stays_within_the_backward() -> None:
    exchange = made(*[(10, 20, 65)] * 8)  # 45 of 55 ms
    mean_step = MeanStep(steps=10, mean_ns=20e6, backward_share=80)

    assert exchange.share_of_step(mean_step) == pytest.approx(80 * 45 / 55)


def test_first_samples_are_left_out_if_there_are_enough_later_ones() -> None:
    exchange = made(*[(10, 20, 65)] * 16)

    assert list(exchange.samples_of(1)) == [*range(11, 19)]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "7",
        "[" * 5000,
        "{}",
        '{"of": 0}',
        '{"of": 1, "buckets": [-1]}',
        '{"of": 1, "world": 1e300}',
        '{"module": 1, "iteration": 3}',
        '{"module": 1, "iteration": -3, "compute": 1, "exchange": 1, "both": 1, "began": 1, "ended": 1}',
        '{"module": 9, "iteration": 3, "compute": 1, "exchange": 1, "both": 1, "began": 1, "ended": 1}',
        '{"module": 1, "iteration": 3, "compute": 0, "exchange": 1, "both": 1, "began": 1, "ended": 1}',
    ],
)
def test_report_of_another_form_is_ignored(text: str) -> None:
    exchange = made()
    exchange.take(text)

    assert exchange.samples_of(1) == {} and [*exchange.sentences(TIMES)] == []


def test_text_of_a_script_steers_no_terminal() -> None:
    exchange = made(*[(10, 20, 65)] * 10, hook="\x1b[31m")

    assert "\x1b" not in " ".join([*exchange.sentences(TIMES), *told(exchange, exchange)])


# ---- in a run

RANK = """
import json, os, sys, time
from _tuilab_watch import layout
from _tuilab_watch.ring import Ring
rank = int(sys.argv[1])
ring = Ring(os.environ["TUILAB_WATCH"])
facts = {"torch": "2.99", "python": "3.99", "threads": 1, "mode": "all", "rank": str(rank), "world": "2"}
ring.text(layout.HELLO, json.dumps(facts))
ring.text(layout.NAME, "SGD\\noptimizer 1", 1)
if "ddp" in sys.argv:
    ring.text(layout.EXCHANGED, json.dumps({"of": 1, "backend": "gloo", "world": 2, "buckets": [5], "bytes": 5}))
began = time.monotonic_ns()
steps = 2 if "2" in sys.argv else 40
for step in range(steps):
    began += 100_000_000
    ring.mark(layout.WENT_BACK, began, began + 65_000_000, 0.5, 0, 0, 1)
    ring.mark(layout.STEPPED, began + 70_000_000, began + 71_000_000, 0.0, 0, 1)
    if "ddp" in sys.argv:
        late = 40_000_000 * rank
        ended = 10**18 + step * 10**8 + 20_000_000 + late
        sample = {"module": 1, "iteration": step + 1, "compute": 20_000_000 + late, "both": 1_000_000}
        sample |= {"exchange": 46_000_000 - late, "began": 10**18 + step * 10**8, "ended": ended}
        ring.text(layout.EXCHANGED, json.dumps(sample))
"""
Tuilab = Callable[..., "CompletedProcess[str]"]


def run_two_ranks(tuilab: Tuilab, folder: Path, *words: str) -> dict[str, object]:
    """Run two ranks that mark made-up steps, and return the run as JSON."""
    script = folder / "rank.py"
    script.write_text(RANK)
    ranks = f"{sys.executable} {script} 0 {' '.join(words)}; {sys.executable} {script} 1 {' '.join(words)}"
    done = tuilab("exec", "--json", "--", "sh", "-c", ranks)
    (run,) = json.loads(done.stdout)["runs"]
    assert isinstance(run, dict)
    return run


def test_result_of_two_ranks_has_the_last_rank_and_the_parts_of_a_backward(
    tuilab: Tuilab, tmp_path: Path
) -> None:
    run = run_two_ranks(tuilab, tmp_path, "ddp")

    texts = {text["title"]: text["text"] for text in run["texts"]}  # type: ignore[attr-defined]
    assert texts["all ranks"].startswith(
        "rank 1's backward ends last in 30 of 30 sampled steps, a median of 40 ms"
    )
    assert "exchange that no computation hides: 45 % of a step" in texts["rank 0"]
    assert (
        "largest avoidable part: exchange of gradients that no computation hides, 45 %"
        in texts["rank 0"]
    )
    assert "exchange that no computation hides: 5 % of a step" in texts["rank 1"]
    bars = {bars["title"]: bars["values"] for bars in run["bars"]}  # type: ignore[attr-defined]
    assert bars["backward in sampled steps of rank 0"] == [19, 1, 45]
    assert bars["backward in sampled steps of rank 1"] == [59, 1, 5]


def test_ranks_without_ddp_have_a_reason_for_the_missing_exchange(
    tuilab: Tuilab, tmp_path: Path
) -> None:
    run = run_two_ranks(tuilab, tmp_path)

    assert "only DistributedDataParallel measures it, and the script made none" in json.dumps(run)


def test_ranks_with_few_steps_have_a_reason_for_the_missing_exchange(
    tuilab: Tuilab, tmp_path: Path
) -> None:
    run = run_two_ranks(tuilab, tmp_path, "ddp", "2")

    reason = "torch sampled no step of DistributedDataParallel after the first two"
    assert reason in json.dumps(run)
