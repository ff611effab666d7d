"""What the lab times on a GPU, against a model of torch.cuda that knows how long everything took."""

import math
import time
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
import torch

from tests.race_recorder import RaceRecorder, gather_from_recorder
from tuilab.judging.clock import host_bound_share
from tuilab.judging.controls import describe_circumstances, describe_distrust
from tuilab.judging.evidence import Evidence
from tuilab.lab.device.cuda import Cuda
from tuilab.lab.device.devices import Cpu
from tuilab.lab.races.race import Race, gpu_ns, run_race
from tuilab.lab.races.timing import Timed, calibrate, known_delay, time_block
from tuilab.record import events
from tuilab.record.summary_parts import Block

if TYPE_CHECKING:
    from tests.fakes.cuda import FakeCuda

pytest_plugins = ["tests.fakes.cuda"]

US = 1_000


def race(
    arms: dict[str, Callable[[], Any]],
    device: str = "cuda:0",
    seconds: float = 1.0,
    lab: RaceRecorder | None = None,
) -> tuple[Race, RaceRecorder]:
    lab = lab or RaceRecorder()
    return run_race(lab, arms, None, seconds, 1, torch.device(device), False), lab


def block_of(call: Callable[[], Any], index: int = 0) -> tuple[Timed, int]:
    """Return a block of a function at its own pace, and its calls."""
    gpu = Cuda(index)
    loops = calibrate(call, gpu).loops
    return time_block(call, loops, gpu), loops


def step_us(call: Callable[[], Any], index: int = 0) -> float:
    timed, loops = block_of(call, index)
    return timed.wall_ns / loops / US


# ---- the time of a step


@pytest.mark.parametrize("tick", [0, 500, 1024])
@pytest.mark.parametrize("us", [4.0, 4.4, 5.0, 9.0, 500.0, 120_000.0])
def test_a_step_takes_what_the_gpu_takes_for_it(cuda: "FakeCuda", us: float, tick: int) -> None:
    """Where that is more than telling it, whatever the clock of its events."""
    cuda.tick = tick

    assert step_us(lambda: cuda.work(us * US, host=1 * US)) == pytest.approx(us, rel=0.02)


@pytest.mark.parametrize("kernels", [1, 100, 4000])
def test_a_step_takes_what_telling_the_gpu_takes_where_that_is_more(
    cuda: "FakeCuda", kernels: int
) -> None:
    def call() -> None:
        for _ in range(kernels):
            cuda.work(2 * US)

    assert step_us(call) == pytest.approx(4 * kernels, rel=0.02)


def test_what_happens_seldom_is_part_of_a_step(cuda: "FakeCuda") -> None:
    """Every tenth step allocates, or writes a checkpoint."""
    given: list[int] = []

    def call() -> None:
        given.append(100 * US if len(given) % 10 else 5100 * US)
        cuda.work(given[-1])

    timed, loops = block_of(call)

    assert max(given[-loops:]) == 5100 * US
    assert timed.wall_ns == pytest.approx(sum(given[-loops:]), rel=0.02)


def test_work_on_another_stream_is_waited_for(cuda: "FakeCuda") -> None:
    side = cuda.side_stream()

    assert step_us(lambda: cuda.work(500 * US, side)) == pytest.approx(500, rel=0.02)


def test_work_on_another_gpu_than_the_current_one_is_waited_for(cuda: "FakeCuda") -> None:
    assert step_us(lambda: cuda.work(500 * US, cuda.gpus[1].current), 1) == pytest.approx(
        500, rel=0.02
    )


def test_an_arm_that_gives_a_gpu_nothing_to_do_takes_its_own_time(cuda: "FakeCuda") -> None:
    cuda.tick = 1024

    assert step_us(lambda: cuda.sleep(0.0007)) == pytest.approx(700, rel=0.02)


def test_a_full_queue_holds_the_calls_back_and_changes_no_time(cuda: "FakeCuda") -> None:
    timed, loops = block_of(lambda: cuda.work(20 * US))

    assert loops > 2 * 1024
    assert timed.wall_ns / loops == pytest.approx(20 * US, rel=0.02)
    assert timed.submitted_ns is not None and timed.submitted_ns > timed.wall_ns / 2


def test_a_block_tells_what_its_stream_had_to_do_and_when_its_calls_had_returned(
    cuda: "FakeCuda",
) -> None:
    gpu, side = Cuda(0), cuda.side_stream()

    mine = time_block(lambda: cuda.work(500 * US), 100, gpu)
    beside = time_block(lambda: cuda.work(500 * US, side), 100, gpu)

    assert mine.stream_ns == pytest.approx(50_000 * US, rel=0.001)
    assert mine.submitted_ns == pytest.approx(100 * 4 * US, rel=0.02)
    assert beside.stream_ns == pytest.approx(100 * 4 * US, rel=0.05)
    assert beside.wall_ns == pytest.approx(50_000 * US, rel=0.001)


def test_on_the_cpu_there_is_no_stream_to_tell_of() -> None:
    timed = time_block(lambda: None, 3, Cpu())

    assert (timed.stream_ns, timed.submitted_ns) == (None, None)


@pytest.mark.parametrize("device", [Cuda, None])
def test_a_second_call_that_takes_long_tells_nothing_of_the_others(
    cuda: "FakeCuda", device: type[Cuda] | None
) -> None:
    """It may still compile, or record a graph."""
    calls = [0]

    def call() -> None:
        calls[0] += 1
        cuda.now += (400_000 if calls[0] == 1 else 217) * US

    pace = calibrate(call, device(0) if device else Cpu())

    assert pace.loops == pytest.approx(50_000 / 217 if device else 10_000 / 217, rel=0.05)
    assert pace.step_s == pytest.approx(217e-6, rel=0.05)


# ---- the known delay


@pytest.mark.parametrize("loops", [1, 7, 20, 1234])
@pytest.mark.parametrize("on", ["its stream", "a side stream", "the second GPU"])
def test_a_known_delay_is_seen(cuda: "FakeCuda", loops: int, on: str) -> None:
    stream = {
        "its stream": None,
        "a side stream": cuda.side_stream(),
        "the second GPU": cuda.gpus[1].current,
    }[on]
    gpu = Cuda(1 if on == "the second GPU" else 0)

    def call() -> None:
        cuda.work(500 * US, stream)

    gpu.make_ready()
    plain, delayed = (
        time_block(call, loops, gpu),
        time_block(call, loops, gpu, time.perf_counter_ns),
    )

    assert delayed.wall_ns / plain.wall_ns == pytest.approx(
        1 + known_delay(loops), abs=0.005 if loops > 1 else 0.05
    )


def test_a_known_delay_that_takes_no_time_is_not_seen(cuda: "FakeCuda") -> None:
    """Calls beyond the hundred of a block take none in the first case, the delay itself takes none in the second."""
    calls: list[None] = []

    def call() -> None:
        calls.append(None)
        cuda.work(500 * US if len(calls) <= 100 else 0, host=0)

    gpu = Cuda(0)
    gpu.make_ready()
    plain = time_block(call, 100, gpu)
    calls.clear()
    assert time_block(
        call, 100, gpu, time.perf_counter_ns
    ).wall_ns / plain.wall_ns == pytest.approx(1, abs=0.001)

    cuda.is_free = True
    plain = time_block(lambda: cuda.work(5000 * US), 10, gpu)
    delayed = time_block(lambda: cuda.work(5000 * US), 10, gpu, time.perf_counter_ns)
    assert delayed.wall_ns / plain.wall_ns == pytest.approx(1, abs=0.001)


@pytest.mark.parametrize(
    ("is_free", "words"),
    [
        (False, ""),
        (True, "the known delay of 5 % was not seen, so that one may be worse than it looks"),
    ],
)
def test_no_difference_is_not_said_by_a_lab_that_did_not_see_the_delay(
    cuda: "FakeCuda", is_free: bool, words: str
) -> None:
    cuda.is_free = is_free
    claim = events.ClaimDeclared(text="c", over="one", under="two", op="at_most", bound=1.1)
    _, lab = race({name: lambda: cuda.work(5000 * US) for name in ("one", "two")})

    assert (
        describe_distrust(
            claim, replace(gather_from_recorder(claim, lab), process_sd=0.0, disturbed_share=0.0)
        )
        == words
    )


def test_a_long_step_fills_a_block_alone(cuda: "FakeCuda") -> None:
    assert calibrate(lambda: cuda.work(120_000 * US), Cuda(0)).loops == 1


# ---- a race


def test_a_race_on_a_gpu_has_the_times_of_the_gpu_and_both_controls(cuda: "FakeCuda") -> None:
    raced, lab = race({"fast": lambda: cuda.work(100 * US), "slow": lambda: cuda.work(300 * US)})

    assert raced.ratio("slow", "fast") == pytest.approx(3, rel=0.02)
    (started,), blocks = lab.of(events.RaceStarted), lab.of(events.BlockTimed)
    assert (started.device, started.device_index, started.uuid) == ("cuda", 0, cuda.gpus[0].uuid)
    assert {block.device_ns for block in blocks} == {None}
    means = {
        control: [b.wall_ns for b in blocks if b.arm == "fast" and b.control == control]
        for control in ("", "same", "delayed")
    }
    assert means["same"][0] / means[""][0] == pytest.approx(1, abs=0.01)
    assert means["delayed"][0] / means[""][0] == pytest.approx(1.05, abs=0.01)


def test_arms_of_a_race_on_the_second_gpu_have_it_as_the_current_one(cuda: "FakeCuda") -> None:
    raced, lab = race(
        {"fast": lambda: cuda.work(100 * US), "slow": lambda: cuda.work(300 * US)}, "cuda:1"
    )

    assert raced.step_s["slow"][0] == pytest.approx(300e-6, rel=0.02)
    assert lab.of(events.RaceStarted)[0].uuid == cuda.gpus[1].uuid
    assert cuda.gpus[0].current.free_at == 0
    assert cuda.selected == 0


def test_a_first_call_takes_until_the_gpu_has_done_it_and_nothing_before_it(
    cuda: "FakeCuda",
) -> None:
    cuda.gpus[0].allocate(512)
    cuda.work(9_000 * US)  # of the scenario

    _, lab = race({"one": lambda: cuda.work(700 * US), "two": lambda: cuda.work(300 * US)})

    first = {event.arm: event.wall_ns for event in lab.of(events.FirstCalled)}
    assert first["one"] == pytest.approx(700 * US, rel=0.02)
    assert first["two"] == pytest.approx(300 * US, rel=0.04)


@pytest.mark.parametrize("device", ["cpu", "cuda:0"])
def test_arms_that_leave_work_on_a_gpu_that_is_not_waited_for_are_refused(
    cuda: "FakeCuda", device: str
) -> None:
    cuda.gpus[1].allocate(512)

    with pytest.raises(
        ValueError, match=r'one leaves work on cuda:1, .* pass device=torch.device\("cuda:1"\)'
    ):
        race(
            {"one": lambda: cuda.work(500 * US, cuda.gpus[1].current), "two": lambda: None}, device
        )


@pytest.mark.parametrize("device", ["cpu", "cuda:0"])
def test_arms_that_leave_work_on_a_side_stream_of_a_gpu_that_is_not_waited_for_are_refused(
    cuda: "FakeCuda", device: str
) -> None:
    cuda.gpus[1].allocate(512)
    side = cuda.side_stream(1)

    with pytest.raises(ValueError, match="one leaves work on cuda:1, but the race waits only for"):
        race({"one": lambda: cuda.work(500 * US, side), "two": lambda: None}, device)


def test_a_core_that_is_lost_while_a_gpu_is_waited_for_is_no_work_of_an_arm(
    cuda: "FakeCuda", monkeypatch: pytest.MonkeyPatch
) -> None:
    cuda.gpus[1].allocate(512)
    wait = torch.cuda.synchronize
    lost: list[None] = []

    def lose(index: int) -> None:
        if index == 1 and len(lost) < 2:  # before the first call, and after the first block
            lost.append(None)
            cuda.sleep(0.1)
        wait(index)

    monkeypatch.setattr(torch.cuda, "synchronize", lose)
    raced, _ = race({"one": lambda: cuda.sleep(0.001), "two": lambda: cuda.sleep(0.002)}, "cpu")

    assert len(lost) == 2
    assert raced.ratio("two", "one") == pytest.approx(2, rel=0.02)


def test_work_of_the_scenario_before_a_race_on_the_cpu_is_not_that_of_its_arms(
    cuda: "FakeCuda",
) -> None:
    cuda.gpus[0].allocate(512)
    cuda.work(10**12)

    raced, lab = race({"one": lambda: cuda.sleep(0.001), "two": lambda: cuda.sleep(0.002)}, "cpu")

    assert raced.ratio("two", "one") == pytest.approx(2, rel=0.02)
    assert lab.of(events.RaceStarted)[0].device_index is None


def test_a_race_on_the_cpu_makes_no_context(unused_cuda: "FakeCuda") -> None:
    race({"one": lambda: unused_cuda.sleep(0.001), "two": lambda: unused_cuda.sleep(0.002)}, "cpu")

    assert unused_cuda.initialised_by == ""


def settling(lab: RaceRecorder) -> tuple[bool | None, int]:
    """Return whether the times had settled, and how many rounds were warm-up."""
    rounds = {block.round for block in lab.of(events.BlockTimed) if block.is_warmup}
    return lab.of(events.RaceFinished)[0].is_settled, len(rounds)


def test_a_gpu_that_keeps_its_speed_has_settled_after_four_rounds(cuda: "FakeCuda") -> None:
    _, lab = race(
        {"one": lambda: cuda.work(100 * US), "two": lambda: cuda.work(100 * US)}, seconds=2.0
    )

    assert settling(lab) == (True, 4)


def test_a_gpu_that_ramps_is_given_more(cuda: "FakeCuda") -> None:
    """It is twice as slow for two rounds of four blocks; then a third of the time is over."""
    lab = RaceRecorder()

    def work() -> None:
        cuda.work(100 * US * (2 if len(lab.of(events.BlockTimed)) < 8 else 1))

    race({"one": work, "two": work}, seconds=2.0, lab=lab)

    assert settling(lab) == (True, 6)


# ---- host-bound


def share_of(call: Callable[[], Any]) -> float | None:
    """Return the share of its time that the GPU works, of an arm that is host-bound."""
    gpu = Cuda(0)
    pace = calibrate(call, gpu)
    gpu.make_ready()
    worked_ns = gpu_ns(call, pace.step_s, gpu)
    timed = time_block(call, pace.loops, gpu)
    block = Block(0, 0.0, wall_ns=timed.wall_ns, submitted_ns=timed.submitted_ns, loops=pace.loops)
    return host_bound_share([block], [] if worked_ns is None else [worked_ns])


@pytest.mark.parametrize(
    ("kernels", "gpu_us", "host_us", "share"),
    [
        (1, 2.0, 4, 0.5),
        (100, 2.0, 4, 0.5),
        (600, 20.0, 100, 0.2),  # one call fills a block
        (1, 2.9, 4, 0.725),
        (1, 3.5, 4, None),  # its clocks may fall
        (1, 20.0, 4, None),  # a full queue holds the calls back
        (1, 500.0, 4, None),
        (300, 5.0, 4, None),
        (4000, 10.0, 4, None),
        (1, 120_000.0, 4, None),
        (1, 1.0, 60_000, None),  # hardly anything for the GPU to do
        (60, 1.0, 10_000, None),  # takes too long to be told ahead
    ],
)
def test_an_arm_is_host_bound_where_telling_takes_longer_than_doing(
    cuda: "FakeCuda", kernels: int, gpu_us: float, host_us: int, share: float | None
) -> None:
    def call() -> None:
        for _ in range(kernels):
            cuda.work(gpu_us * US, host=host_us * US)

    assert share_of(call) == (share and pytest.approx(share, rel=0.02))


def test_of_more_than_a_queue_holds_the_gpu_works_less_than_is_said(cuda: "FakeCuda") -> None:
    def call() -> None:
        for _ in range(4000):
            cuda.work(2 * US)

    share = share_of(call)

    assert share is not None and 0.5 < share < 0.8


@pytest.mark.parametrize(
    ("kernels", "gpu_us", "share"), [(1000, 1.0, 0.25), (1, 100.0, None), (20, 10.0, None)]
)
def test_an_arm_that_waits_for_the_gpu_in_each_call_is_host_bound_where_it_tells_much_before(
    cuda: "FakeCuda", kernels: int, gpu_us: float, share: float | None
) -> None:
    def call() -> None:
        for _ in range(kernels):
            cuda.work(gpu_us * US)
        torch.cuda.current_stream().synchronize()  # as .item() does

    assert share_of(call) == (share and pytest.approx(share, rel=0.02))


def test_an_arm_that_gives_the_gpu_nothing_to_do_is_not_host_bound(cuda: "FakeCuda") -> None:
    assert share_of(lambda: cuda.sleep(0.0007)) is None
    assert share_of(lambda: torch.cuda.current_stream().synchronize()) is None


@pytest.mark.parametrize("gpu_us", [2.0, 4.1, 5.0, 50.0])
def test_of_an_arm_on_a_stream_that_nobody_waits_for_nothing_is_said(
    cuda: "FakeCuda", gpu_us: float
) -> None:
    side = cuda.side_stream()

    def waiting() -> None:
        cuda.work(gpu_us * US, side)
        side.synchronize()

    assert share_of(lambda: cuda.work(gpu_us * US, side)) is None
    assert share_of(waiting) is None


def test_of_an_arm_that_enters_another_stream_nothing_is_said_though_its_streams_wait_for_each_other(
    cuda: "FakeCuda",
) -> None:
    """What the current one does is not all of its work: what the other one prefetches goes on beside it."""
    side, gpu = cuda.side_stream(), cuda.gpus[0]

    def call() -> None:
        with torch.cuda.stream(side):  # type: ignore[arg-type]
            cuda.work(3 * US)
        cuda.work(1 * US)
        gpu.current.wait_stream(side)

    assert share_of(call) is None
    assert gpu.current is not side


@pytest.mark.parametrize("place", range(4))
def test_calls_that_differ_are_told_together(cuda: "FakeCuda", place: int) -> None:
    """As where gradients of four calls are accumulated before one step."""
    calls = [place]

    def call() -> None:
        calls[0] += 1
        cuda.work((2_300 if calls[0] % 4 == 0 else 400) * US, host=2_500 * US)

    assert share_of(call) == pytest.approx(0.35, abs=0.05)


def test_clocks_that_fall_in_the_race_make_no_arm_host_bound(cuda: "FakeCuda") -> None:
    """One that waits for the GPU in each call has returned by the end of its time, whatever it waited for."""
    claim = events.ClaimDeclared(text="c", over="a", under="b", op="at_least", bound=2.0)
    lab = RaceRecorder()

    def call() -> None:
        is_hot = bool(lab.of(events.RaceStarted))
        cuda.work(140 * US if is_hot else 100 * US)
        torch.cuda.current_stream().synchronize()

    race({"a": call, "b": call}, seconds=0.1, lab=lab)

    assert gather_from_recorder(claim, lab).host_bound == {}


def test_most_blocks_of_an_arm_tell_whether_its_calls_took_all_the_time() -> None:
    telling, other = (Block(0, 0.0, wall_ns=100, submitted_ns=ns) for ns in (96, 94))
    unknown = Block(0, 0.0, wall_ns=100)

    assert host_bound_share([telling, telling, other], [20, 30, 90]) == 0.3
    assert host_bound_share([telling, other], [30]) is None
    assert host_bound_share([telling, unknown], [30]) is None
    assert host_bound_share([telling], []) is None
    assert host_bound_share([], []) is None


def test_a_verdict_says_which_arms_are_host_bound(cuda: "FakeCuda") -> None:
    claim = events.ClaimDeclared(text="c", over="large", under="small", op="at_least", bound=2.0)
    _, lab = race(
        {"small": lambda: cuda.work(2 * US), "large": lambda: cuda.work(400 * US)}, seconds=0.1
    )

    assert gather_from_recorder(claim, lab).host_bound == {"small": pytest.approx(0.5, rel=0.02)}


@pytest.mark.parametrize(
    ("arms", "words"),
    [
        ({}, []),
        ({"a": 0.1234}, ["a is host-bound: the GPU works 12 % of the time at most"]),
        (
            {"a": 0.1, "b": 0.9},
            ["a and b are host-bound: the GPU works 10 % and 90 % of the time at most"],
        ),
    ],
)
def test_it_is_said_of_one_arm_or_of_both(arms: dict[str, float], words: list[str]) -> None:
    assert describe_circumstances(Evidence([[math.log(2)]], host_bound=arms)) == words
