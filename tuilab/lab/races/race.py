"""Runs a race: arms timed against each other in alternating blocks.

So drift, and the chance that a place in a round is better than another, cancel. A block is as many
calls of one arm as fill 10 ms (50 ms on a GPU). It begins when the device is idle, and ends when
the device has done all of them. A round has one block of every arm, in an order drawn at random;
every other round mirrors the one before. Two more participants are controls: a fast arm once more
(A/A), and once more with a known delay of 5 %. Blocks before the times have settled are recorded as
warm-up. A block that the sensors report as disturbed is marked, and counts as it is: a second run
of it would be warm, and would hide effects of the arm itself. No verdict is computed here.
"""

import gc
import inspect
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from secrets import randbits
from statistics import median
from typing import Any

import torch

from tuilab.judging import calibration_file
from tuilab.lab.arguments import MOST, checked, describe_value, flag, number_in, words
from tuilab.lab.device.cuda import Cuda
from tuilab.lab.device.devices import all_in_use, door
from tuilab.lab.device.interface import Device
from tuilab.lab.races import switches
from tuilab.lab.races.first_calls import Same, first_calls
from tuilab.lab.races.rounds import Entrant, Rounds
from tuilab.lab.races.timing import Call, Pace, calibrate, known_delay, wait_for_pools
from tuilab.lab.recorder import RaceRecorder
from tuilab.record import events
from tuilab.record.order import BEFORE, order

_AHEAD_NS = 2_000_000  # of work that is queued together: so little that no queue is full
_SEVERAL = 10  # calls: they may differ, for example if gradients are accumulated
_ONE_BY_ONE_NS = 100_000_000  # of calls that are queued one by one
# A driver may end a kernel that takes longer, if the GPU has a display as well.
_LONGEST_BUSY_NS = 1_000_000_000
_ABOUT_AS_FAST = 1.4  # times the fastest arm: more than the variation between processes
_LEFT = 0.02  # share of a block for which a GPU that is not waited for may continue after it
_RETRIES = 2  # because a thread that waits may lose its core meanwhile


# ---- GPU time of a call


def gpu_ns(call: Call, step_s: float, device: Device) -> int | None:
    """Return the GPU time of a call at most.

    The calls are queued while the GPU is kept busy, so that it then never waits for the CPU. Calls
    that wait for the GPU themselves, or fill its queue, are queued one by one. The result is None
    on the CPU, for calls that take too long, and for calls that use another stream: the current
    stream does only a part of their work.
    """
    step_ns = step_s * 1e9
    if not isinstance(device, Cuda) or 2 * step_ns > _LONGEST_BUSY_NS:
        return None
    with device.streams_entered() as other_streams:
        worked_ns = _measure_ahead(call, step_ns, device)
    if other_streams:
        return None
    return round(worked_ns)


def _measure_ahead(call: Call, step_ns: float, device: Cuda) -> float:
    """Return the GPU time of a call: of several at once if they do not wait for the GPU."""
    together = math.ceil(_AHEAD_NS / step_ns)
    if together >= _SEVERAL:
        worked_ns, is_ahead = _queue_ahead(call, together, step_ns, device)
        if is_ahead:
            return worked_ns / together
    count = max(1, min(_SEVERAL, int(_ONE_BY_ONE_NS / step_ns)))
    total_ns = 0
    for _ in range(count):
        worked_ns, _ = _queue_ahead(call, 1, step_ns, device)
        total_ns += worked_ns
    return total_ns / count


def _queue_ahead(call: Call, calls: int, step_ns: float, device: Cuda) -> tuple[int, bool]:
    """Return the GPU time of some calls, and whether all were queued before the GPU began them."""
    device.wait()
    device.delay(2 * calls * step_ns, time.perf_counter_ns)
    device.begin()
    for _ in range(calls):
        call()
    is_ahead = not device.has_begun()
    device.end()
    device.wait()
    return device.stream_ns(), is_ahead


# ---- a race


class Race:
    """The times of a race, for a scenario to show; the verdict is computed from the records."""

    def __init__(self, step_s: dict[str, list[float]], lacks: str = "") -> None:
        self.step_s = step_s
        self._lacks = lacks  # why there are no times

    def ratio(self, over: str, under: str) -> float:
        """Return how many times longer `over` takes than `under`: the median over the rounds.

        Raises ValueError if one of them is no arm, or if the race was skipped.
        """
        over_times = self._times_of("over", over)
        under_times = self._times_of("under", under)
        pairs = zip(over_times, under_times, strict=True)
        return median(over_s / under_s for over_s, under_s in pairs)

    def _times_of(self, argument: str, arm: str) -> list[float]:
        """Return the times of an arm; raise ValueError if it is no arm, or the race was skipped."""
        if self._lacks:
            raise ValueError(
                f"{argument} has no times: "
                f"the race was skipped, because this machine lacks {self._lacks}"
            )
        if words(argument, arm) not in self.step_s:
            names = ", ".join(repr(name) for name in self.step_s)
            raise ValueError(f"{argument} takes one of {names}, not {describe_value(arm)}")
        return self.step_s[arm]


def refuse_arms(same: Any, **options: Any) -> None:
    """Raise TypeError if a parameter of `lab.race` was given an arm, which needs another name."""
    if callable(same) and not _takes_two(same):
        raise TypeError(
            "same takes a number or a function of two outputs, and cannot be the name of an arm; "
            "give the arm another name"
        )
    for name, value in options.items():
        if callable(value) and not isinstance(value, torch.device):  # a device can be called
            raise TypeError(
                f"{name} is a parameter of lab.race, and cannot be the name of an arm; "
                "give the arm another name"
            )


def _takes_two(function: Callable[..., Any]) -> bool:
    """Return whether a function can be called with two arguments, as far as Python knows."""
    try:
        signature = inspect.signature(function)
    except ValueError:  # a function in C may not show its parameters
        return True
    try:
        signature.bind(None, None)
    except TypeError:
        return False
    return True


def check_race(
    arms: Mapping[str, Any], same: Any, device: Any, threads: int, factories: Any
) -> None:
    """Raise TypeError or ValueError for invalid arguments of a race, before any arm is called."""
    flag("factories", factories)
    for name, arm in arms.items():
        if not name or "/" in name:
            raise ValueError(
                "an arm takes a name without /, which separates the two arms of a ratio, "
                f"not {describe_value(name)}"
            )
        if not callable(arm):
            raise TypeError(f"{name} takes a function or an arm, not {describe_value(arm)}")
    if len(arms) < 2:
        raise TypeError(f"lab.race takes at least two arms, not {len(arms)}")
    if not isinstance(device, torch.device):
        raise TypeError(f"device takes a torch.device, not {describe_value(device)}")
    if same is not None and not callable(same):
        number_in("same", same, 0)
    largest = events.RaceStarted(  # no record of this race can be longer
        arms=list(arms),
        threads=threads,
        device=events.OWN_PROCESS,  # the longest name of a device
        loops=dict.fromkeys(arms, MOST),
        base=max(arms, key=len),
    )
    checked(largest)


def run_race(
    lab: RaceRecorder,
    arms: Mapping[str, Callable[[], Any]],
    same: Same,
    seconds: float,
    threads: int,
    device: torch.device,
    factories: bool,
) -> Race:
    """Time the arms against each other for about `seconds` and return their times.

    With `factories`, each arm is a function that makes the function to time. The number of torch's
    threads is changed meanwhile. Raises as `_run` does.
    """
    seed = randbits(32)  # different in each process, even if the scenario sets a seed
    threads_before = torch.get_num_threads()
    raced = door(device)
    torch.set_num_threads(threads)
    try:
        with raced.selected(), _little_to_collect():
            return _run(lab, arms, same, seconds, threads, raced, factories, seed)
    finally:
        torch.set_num_threads(threads_before)


@contextmanager
def _little_to_collect() -> Iterator[None]:
    """Let the garbage collector search only what the arms make, not what was loaded before."""
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def _run(
    lab: RaceRecorder,
    arms: Mapping[str, Callable[[], Any]],
    same: Same,
    seconds: float,
    threads: int,
    device: Device,
    factories: bool,
    seed: int,
) -> Race:
    """Prepare the arms, time them and their controls, record all of it, and return the times.

    The order matters: torch's switches are checked after every part in which an arm may change
    them. Raises ValueError if an arm changes one or leaves work on another GPU, TypeError if a
    factory makes no function.
    """
    check_switches = switches.watch()
    if factories:
        calls = _make_all(arms, seed, check_switches)
    else:
        calls = dict(arms)
    is_same, difference = first_calls(lab, calls, list(arms), same, device, check_switches)
    lab.record(events.EnvironmentRecorded(part="switches", facts=switches.read()))
    lab.tell_holdings()
    entrant_of_arm, base = _prepare(calls, list(arms), threads, device, check_switches)
    entrants = [entrant_of_arm[name] for name in arms]
    gpu_ns_before = _gpu_ns_of_arms(entrants, device)
    process_sd = None
    if device.uuid and lab.repeats == 1:
        process_sd = calibration_file.load(device.uuid).process_sd
    started = events.RaceStarted(
        arms=list(arms),
        threads=threads,
        device=device.type,
        loops={entrant.arm: entrant.loops for entrant in entrants},
        base=base.arm,
        delay=known_delay(base.loops),
        seed=seed,
        has_instances=factories,
        uuid=device.uuid,
        device_index=device.index,
        luck=process_sd,
    )
    lab.record(started)
    base_factory = arms[base.arm] if factories else None
    controls = _controls(base, base_factory)
    check_switches(base.arm)
    timings = Rounds(lab, entrants + controls, seed, seconds, threads, device).run()
    check_switches("")
    # The GPU time is measured again: its clocks may be lower by now, or other processes may use it.
    gpu_ns_after = _gpu_ns_of_arms(entrants, device)
    most_gpu_ns = {}
    for arm, before_ns in gpu_ns_before.items():
        if arm in gpu_ns_after:
            most_gpu_ns[arm] = max(before_ns, gpu_ns_after[arm])
    finished = events.RaceFinished(
        arms=list(arms),
        is_same=is_same,
        difference=difference,
        record_ns=timings.record_ns,
        is_settled=timings.is_settled,
        gpu_ns=most_gpu_ns,
    )
    lab.record(finished)
    return Race(timings.step_s)


def _gpu_ns_of_arms(entrants: Sequence[Entrant], device: Device) -> dict[str, int]:
    """Return, by arm, the GPU time of a call at most, if it can be measured."""
    gpu_ns_by_arm = {}
    for entrant in entrants:
        worked_ns = gpu_ns(entrant.call, entrant.step_s, device)
        if worked_ns is not None:
            gpu_ns_by_arm[entrant.arm] = worked_ns
    return gpu_ns_by_arm


# ---- its participants


def _make_all(
    factories: Mapping[str, Callable[[], Any]], seed: int, check_switches: Callable[[str], object]
) -> dict[str, Call]:
    """Make the arms in an order drawn at random.

    Otherwise the same arm would allocate first in every process.
    """
    names = list(factories)
    calls = {}
    for number in order(seed, BEFORE, len(names)):
        name = names[number]
        calls[name] = _make(name, factories[name])
        check_switches(name)
    return calls


def _make(name: str, factory: Callable[[], Any]) -> Call:
    """Return the function that a factory makes; raise TypeError if it returns something else."""
    call = factory()
    if not callable(call):
        raise TypeError(
            f"with factories=True {name} has to return the function to time, "
            f"but it returned {describe_value(call)}"
        )
    return call  # type: ignore[no-any-return]


def _prepare(
    arms: Mapping[str, Call],
    names: list[str],
    threads: int,
    device: Device,
    check_switches: Callable[[str], object],
) -> tuple[dict[str, Entrant], Entrant]:
    """Find how many calls of each arm fill a block.

    Returns the arms by name, and the arm that the controls are made of.
    """
    paces = {}
    for name, arm in arms.items():
        wait_for_pools()
        paces[name] = calibrate(arm, device, threads)
        check_switches(name)
        _refuse_work_elsewhere(name, arm, paces[name], device)
    device.make_ready()  # at the speed that the arms have brought it to
    entrants = {}
    for name, pace in paces.items():
        entrants[name] = Entrant(name, arms[name], pace.loops, pace.calm_share, step_s=pace.step_s)
    paces_in_order = {name: paces[name] for name in names}
    base = base_of(paces_in_order)
    return entrants, entrants[base]


def base_of(paces: Mapping[str, Pace]) -> str:
    """Return the arm that the controls are made of: the first that is about as fast as the fastest.

    Of equal arms, the fastest one is the arm that was lucky in this process: another one in each
    process. The controls would not share its luck, and would be slower in all processes.
    """
    limit_s = _ABOUT_AS_FAST * min(pace.step_s for pace in paces.values())
    about_as_fast = [name for name, pace in paces.items() if pace.step_s <= limit_s]
    return about_as_fast[0]


def _refuse_work_elsewhere(name: str, arm: Call, pace: Pace, device: Device) -> None:
    """Raise ValueError if an arm leaves work on a GPU that is not waited for.

    Then its calls would be timed, and not its work.
    """
    for gpu in all_in_use():
        if gpu.index == device.index:
            continue
        if not gpu.is_idle() or _continues_after_block(gpu, arm, pace):
            waited_for = "the CPU" if device.index is None else f"cuda:{device.index}"
            raise ValueError(
                f"{name} leaves work on cuda:{gpu.index}, but the race waits only for {waited_for};"
                f' pass device=torch.device("cuda:{gpu.index}")'
            )


def _continues_after_block(gpu: Cuda, arm: Call, pace: Pace) -> bool:
    """Say whether a GPU still works after a block of an arm.

    Work in other streams than the current one shows only if all streams are waited for.
    """
    most_ns = _LEFT * pace.loops * pace.step_s * 1e9
    if _waited_ns(gpu) <= most_ns:
        return False
    for _ in range(_RETRIES):
        for _ in range(pace.loops):
            arm()
        if _waited_ns(gpu) <= most_ns:
            return False
    return True


def _waited_ns(gpu: Cuda) -> int:
    began_ns = time.perf_counter_ns()
    gpu.wait()
    return time.perf_counter_ns() - began_ns


def _controls(base: Entrant, factory: Callable[[], Any] | None) -> list[Entrant]:
    """Return the controls: the base arm twice more, each called once.

    With a factory, they are instances with memory of their own.
    """
    kinds: tuple[events.Control, ...] = ("same", "delayed")
    controls = []
    for control in kinds:
        call = _make(base.arm, factory) if factory else base.call
        controls.append(replace(base, call=call, control=control))
    for entrant in controls:
        entrant.call()  # so that the costs of a first call are in no round
    return controls
