"""The lab: the only API that a scenario needs.

lab.stage("training")                         what happens next
lab.log(step, loss=loss)                      scalars of a step; GPU tensors do not stall the step
lab.progress(done, total)                     how far it is
@lab.once                                     above a function: runs it here, in the first repeat only
lab.race(loop=f, sum=g)                       interleaved timing of arms; see race.py
lab.arm("two threads", body, env={...})       a function of the scenario in a process of its own
lab.ranks(2, body)                            a function in that many processes of one process group
with lab.group():                             this process as a process group of its own
with lab.neighbours(2):                       busy processes beside this one
lab.claim("sum", got, equals=12)              what the run should show: the bullet `- [sum] ...` of the lesson
lab.claim_ratio("fast", "loop/sum", at_least=2)     the same about two arms of a race still to come
lab.advise("OMP_NUM_THREADS", {1: "one", 2: "two"}, default=2, about="...")     which of several values is to be set
lab.memory("forward")                         bytes and operators; see meters/memory.py
for step in lab.steps(1000, "training"):      a stage that tells how far it is
for n in lab.sweep([1, 10, 100], "sizes"):    the same, over values
lab.limit(works, low, high)                   the largest value that works
lab.raises(f, x)  lab.warns(f, x)             what a call complains of, as texts
lab.count(f, x, backward=True)                operators, flops, bytes and nodes of a call; see meters/counted.py
lab.precision("ieee")                         float32 on a GPU that is float32
lab.lacks_units(torch.bfloat16)               what the device lacks to multiply matrices of a dtype in units of its own
lab.axes("loss", x="epoch", log="xy")         what is along the axes of a chart
lab.text(...)  lab.table(...)  lab.bars(...)  lab.span(...)  lab.image(...)     what is to be seen besides
lab.artifact(...)  lab.device()
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, TypeVar

import torch

from tuilab.engine.messages import ArmOrder, WorkerLine, WorkerOrder
from tuilab.errors import BoxLacks
from tuilab.lab import device as devices
from tuilab.lab.aids.complaints import raised_by, warned_by
from tuilab.lab.aids.limit import find_limit
from tuilab.lab.aids.neighbours import busy_neighbours
from tuilab.lab.aids.sweeps import swept
from tuilab.lab.arms import Arm, ArmFailed, arm_order
from tuilab.lab.choice.handed_out import hand_out
from tuilab.lab.claims.claimed import Bounds, Extras
from tuilab.lab.claims.claims import Claims
from tuilab.lab.given import MOST_CORES, called, checked, flag, told, truth, whole, words
from tuilab.lab.holdings import Holdings
from tuilab.lab.meters.counted import Counted, count
from tuilab.lab.meters.memory import Memory
from tuilab.lab.once import Once
from tuilab.lab.prefix import has_ranks
from tuilab.lab.races.race import Race
from tuilab.lab.races.races import Races
from tuilab.lab.scalars.scalar_log import Scalar, ScalarLog
from tuilab.lab.shown.artifacts import keep
from tuilab.lab.shown.figures import Axis, Lanes, axes_named, bars_shown, table_shown
from tuilab.lab.shown.images import image_shown
from tuilab.lab.shown.progress import Progress
from tuilab.lab.shown.texts import text_shown
from tuilab.probes.cores import measure_cores
from tuilab.probes.env import torch_facts
from tuilab.record import events
from tuilab.record.journal.writer import Writer

_NEED_LIMIT = 2_000

T = TypeVar("T")


class Lab:
    """What `run(lab, ...)` gets: every call appends to the journal of the run.

    An argument that would not be read back as it was given is refused at once, with TypeError or ValueError.
    """

    def __init__(self, journal: Writer, run_dir: Path, line: WorkerLine, order: WorkerOrder, wanted: str = "auto") -> None:
        self.repeat = order.repeat
        self.repeats = order.repeats
        self.is_quick = order.quick
        self._journal = journal
        self._run_dir = run_dir
        self._line = line
        self._arm = order.arm.arm if order.arm else ""
        self._is_rank = order.arm is not None and has_ranks(order.arm.prefix)
        self._spread = order.spread
        self._wanted = wanted  # device of the form
        self._device: torch.device | None = None  # that the scenario was told to use
        self._once = Once()
        self._progress = Progress()
        self._lanes = Lanes()
        self._holdings = Holdings(self.record, is_timing=bool(self._arm))  # an arm of its own times itself
        self._scalars = ScalarLog(journal, run_dir, order.writer, self._arm, self._holdings)
        self._races = Races(self, self._holdings)
        source = run_dir / "scenario.py"
        self._claims = Claims(
            source, journal.append, self._races.raced, self._once, self.effective_cores, order.params
        )  # fmt: skip
        journal.append(events.EnvironmentRecorded(part="torch", facts=torch_facts(torch)))

    # ---- what happens

    def stage(self, name: str) -> None:
        """Say what happens next."""
        self._enter(events.StageEntered(name=name))

    def log(self, step: float, *, arm: str = "", **values: Scalar) -> None:
        """Record scalars of a step; a tensor on a GPU is recorded as it is in the current stream, and no step waits for it.

        What is no whole number is where they stand on the axis: `lab.log(88.7, total=total)` of a sweep.
        """
        self._scalars.log(step, arm, values)

    def progress(self, done: int, total: int, unit: str = "steps") -> None:
        """Say how far it is; called every step, it is written ten times a second."""
        if record := self._progress.due(done, total, unit):
            self._enter(record)

    def steps(self, count: int, name: str) -> Iterator[int]:
        """Enter a stage and return its steps, 0 to `count` - 1, one after another; how far they are is told by itself."""
        count = whole("count", count)
        self.stage(name)
        return swept(range(count), "steps", self.progress)

    def sweep(self, values: Iterable[T], name: str) -> Iterator[T]:
        """Enter a stage, as in "sizes", and return the values one after another; how far it is is told by itself."""
        found = swept(values, "values", self.progress)
        self.stage(name)
        return found

    def text(self, text: str, title: str = "") -> None:
        """Show a short text: a table, an error message, a remark."""
        self.record(text_shown(text, title))

    def axes(self, metric: str, *, x: str = "", y: str = "", log: Axis | None = None) -> None:
        """Say what is along the axes of the chart of a metric, with the unit: `x="rows"`, `y="sum of exp(logit)"`.

        `log` names the axes that are logarithmic from the start: "x", "y", "xy", or none with "". Without it y is as its
        values suggest, and x is linear.
        """
        self.record(axes_named(metric, x, y, log))

    def bars(self, title: str, values: Mapping[str, Scalar], *, unit: str = "") -> None:
        """Show named values as bars that begin at 0; with the unit "B" they are told as KiB, MiB and GiB."""
        self.record(bars_shown(title, values, unit))

    def table(self, title: str, rows: Sequence[Sequence[Any]], *, head: Sequence[str] = ()) -> None:
        """Show a small table of texts and numbers; True and False are told as yes and no."""
        self.record(table_shown(title, rows, head))

    def span(self, lane: str, began: float, ended: float, name: str = "", *, arm: str = "", unit: str = "s") -> None:
        """Show on a lane from when to when something went on; `name` says what. The spans of an arm are one picture.

        Seconds may be of any clock, and are told since the first of them; of another `unit`, as "steps", they are as given.
        """
        self.record(self._lanes.span_shown(lane, began, ended, name, words("arm", arm) or self._arm, unit))

    def image(self, title: str, cells: Any, *, arm: str = "", step: int = 0) -> None:
        """Show a small array as a picture; of a large one every n-th cell."""
        self.record(image_shown(title, cells, words("arm", arm) or self._arm, step))

    def artifact(self, name: str, data: bytes | str) -> Path:
        """Keep a file with the run and return where it is."""
        path, record = keep(self._run_dir / "artifacts", name, data)
        self._journal.append(record)
        return path

    # ---- what is measured

    def once(self, part: Callable[[], object]) -> None:
        """Run a part of the scenario here, in the first repeat only: what is exact is the same in every process.

        It stands above a function without arguments, as a decorator. What differs between processes (threads, algorithms,
        seeds that are not set) does not belong there, and a race cannot stand there.
        """
        self._once.run(part, self.repeat)

    def device(self, wanted: str | None = None) -> torch.device:
        """Return the device to use: `auto` is the emptiest GPU that works, `cuda` insists on one, `cuda:1` on that one.

        Without an argument it is the one that the user asked for: a scenario that calls it so has the option `--device`.
        A run that wants a GPU where there is none ends as not testable here. All processes of a run get the same one, but of
        ranks each has that of its number.
        """
        wanted = self._wanted if wanted is None else wanted
        self._device = hand_out(wanted, self._run_dir, self._journal, is_rank=self._is_rank)
        self._holdings.watch(self._device)
        return self._device

    def needs(self, condition: object, what: str) -> None:
        """End the run as not testable here unless `condition` holds; `what` names what is missing."""
        what = words("what", what, _NEED_LIMIT)
        if not truth("condition", condition):
            raise BoxLacks(what)

    def memory(self, name: str, *, arm: str = "", model: torch.nn.Module | None = None, timeline: bool = False) -> Memory:
        """Measure a `with` block: live and peak bytes, bytes saved for backward, operators; see meters/memory.py."""
        return Memory(self, name, words("arm", arm) or self._arm, model, timeline, self._device)

    def count(self, f: Callable[..., Any], *args: Any, backward: bool = False) -> Counted:
        """Call `f(*args)` once and return what that cost, the same on every machine; see meters/counted.py.

        With `backward` the backward of the sum of what it returned is counted, too, and apart: `.backward.operators`. What
        the leaves have in `.grad` stays as it is.
        """
        return count(called("f", f), args, backward=flag("backward", backward))

    def raises(self, f: Callable[..., Any], *args: Any) -> str:
        """Call `f(*args)` and return what it raises, as in "TypeError: first line", or an empty text."""
        return raised_by(called("f", f), args)

    def warns(self, f: Callable[..., Any], *args: Any) -> list[str]:
        """Call `f(*args)` and return what it warns of, each as in "UserWarning: first line"."""
        return warned_by(called("f", f), args)

    def limit(self, works: Callable[[Any], Any], low: float, high: float) -> float:
        """Return the largest value for which `works(value)` holds, found by halving between `low` and `high`.

        It holds for `low` and not for `high`, and changes once in between. Of whole numbers the value is a whole number; else
        it is right to 1e-12 of the range.
        """
        return find_limit(called("works", works), low, high)

    def precision(self, name: str) -> AbstractContextManager[None]:
        """Compute float32 on a GPU as it is ("ieee"), or in TF32 ("tf32"), in a `with` block; on a CPU nothing changes.

        TF32 keeps 10 of the 23 bits of each factor, for Tensor Cores. Of itself torch allows it in convolutions, and not in
        products of matrices.
        """
        if words("name", name) not in devices.PRECISIONS:
            raise ValueError(f"name takes {' or '.join(devices.PRECISIONS)}, not {told(name)}")
        return devices.precision(name)

    def lacks_units(self, dtype: torch.dtype) -> str:
        """Return what the device lacks to multiply matrices of a dtype in units of its own, or "" where it has them.

        Such units are Tensor Cores, AMD's Matrix Cores, AVX-512 and AMX; float32 is TF32 in them. The device is the one that
        `lab.device()` returned, or else the CPU. The words are for `lacks=`.
        """
        if not isinstance(dtype, torch.dtype):
            raise TypeError(f"dtype takes a dtype of torch, not {told(dtype)}")
        if dtype not in devices.DTYPES:
            raise ValueError(f"dtype takes float16, bfloat16, float32 (as TF32) or one of eight bits, not {told(dtype)}")
        return devices.lacking_units(self._device or torch.device("cpu"), dtype)

    def race(
        self,
        *,
        same: float | Callable[[Any, Any], bool] | None = None,
        seconds: float = 2.0,
        threads: int = 1,
        device: torch.device | None = None,
        factories: bool = False,
        lacks: str = "",
        **arms: Callable[[], Any],
    ) -> Race:
        """Time arms against each other: functions in alternating blocks, or `lab.arm(...)`s one after another; see race.py.

        `same` is by how much their outputs may differ, or a function that compares two. With `factories` each arm is a function
        that makes the one to be timed: it is called for the arm and again for a control, so that each has tensors of its own.
        The `device` is waited for after every block; without it that is the one that `lab.device()` returned, or else the CPU.
        An arm of its own process returns the seconds that a step took. Where the box `lacks` what a race needs, it is skipped,
        and the claims about its arms are not testable here.
        """
        self._once.refuse("race")
        device = self._device or torch.device("cpu") if device is None else device
        lacks = words("lacks", lacks, _NEED_LIMIT)
        race = self._races.run(arms, same, seconds, threads, device, factories, is_quick=self.is_quick, lacks=lacks)
        if lacks:
            self._claims.give_up(set(arms), lacks)
        return race

    def arm(
        self,
        name: str,
        body: Callable[..., Any],
        *args: Any,
        env: dict[str, str] | None = None,
        prefix: Sequence[str] = (),
        timeout: float = 60.0,
    ) -> "Arm":
        """Return an arm: called, it runs `body(lab, *args)` in a fresh process and hands back what that returns.

        `env` is added to its environment, `prefix` stands before its command line (numactl; under torchrun every rank calls
        the body, and rank 0 returns the value). The body is a function of the scenario file; what it takes and returns must
        be plain data. A failure raises ArmFailed; so does a library in LD_PRELOAD that was not loaded.
        """
        return self._arm_of(arm_order(name, body, args, env=env, prefix=prefix, timeout=timeout))

    def ranks(self, count: int, body: Callable[..., Any], *args: Any, timeout: float = 60.0) -> list[Any]:
        """Run `body(lab, *args)` in `count` processes, in one process group (gloo), and return what each of them returned.

        The group is there when the body is called, and ended after it. A rank that fails, or a `timeout`, raises ArmFailed.
        Where the run has several nodes (`--nnodes`), the processes are divided over them, the first ones on its own.
        """
        from tuilab.lab.aids.group import ranks_order  # torch.distributed takes a while to load, and few need it

        found: list[Any] = self._arm_of(ranks_order(count, body, args, self._spread, timeout=timeout))()
        return found

    def group(self) -> AbstractContextManager[None]:
        """Have this process alone in a process group (gloo) in a `with` block: a world of one.

        DDP and FSDP do there what they do among many, so buckets, calls and bytes are counted without a second process.
        """
        from tuilab.lab.aids.group import group_of_one  # as above

        return group_of_one()

    def effective_cores(self, processes: int = 2) -> float:
        """Measure how many cores' worth of work that many busy processes get: fewer than they are when others work here."""
        processes = whole("processes", processes, 1, MOST_CORES)
        effective = measure_cores(processes)
        self.record(events.CoresMeasured(processes=processes, effective=effective))
        return effective

    def neighbours(self, count: int) -> AbstractContextManager[None]:
        """Have that many busy processes beside this one in a `with` block; they end with it, and however the run ends."""
        return busy_neighbours(whole("count", count, 0, MOST_CORES))

    # ---- what is claimed

    def claim(
        self,
        key: str,
        got: Any = None,
        *,
        equals: Any = None,
        at_most: float | None = None,
        at_least: float | None = None,
        between: tuple[float, float] | None = None,
        tolerance: float = 0.0,
        unit: str = "",
        lacks: str = "",
        at: Mapping[str, Any] | None = None,
        advises: str = "",
        answers: float | None = None,
        **old: Any,
    ) -> None:
        """Claim something about a measured value; the bullet `- [key] ...` under `## Look for` says what.

        With a value alone it must be True. Where the box `lacks` what the claim needs, it is not testable here, whatever the
        value. `answers` is the number that the question under `## Predict` asks for; True says that it is the value itself.
        `at` names the values of parameters that the claim is about, as {"rows": 500}: in a run with other values it is
        shown as n/a, and counts for nothing. `advises` is an old form, from which nothing follows: `lab.advise`.
        """
        bounds = Bounds(equals, at_most, at_least, between)
        extras = Extras(advises, answers)
        self._claims.claim(key, got, bounds, tolerance=tolerance, unit=unit, lacks=lacks, at=at, extras=extras, others=old)

    def claim_ratio(
        self,
        key: str,
        ratio: str,
        *,
        at_most: float | None = None,
        at_least: float | None = None,
        margin: float = 0.03,
        cores: int = 0,
        lacks: str = "",
        at: Mapping[str, Any] | None = None,
        advises: str = "",
        answers: bool = False,
    ) -> None:
        """Claim how many times longer one arm of a race still to come takes than another, as in `ratio="loop/sum"`.

        A claim about work in parallel says how many `cores` it needs: on a busier box it is inconclusive. One that `answers`
        the question under `## Predict` does so with its estimate. `at` is the same as in `lab.claim`.
        """
        bounds = {"at_most": at_most, "at_least": at_least}
        extras = Extras(advises, flag("answers", answers) or None)
        self._claims.claim_ratio(key, ratio, **bounds, margin=margin, cores=cores, lacks=lacks, at=at, extras=extras)

    def advise(
        self,
        name: str,
        values: Mapping[Any, str | float],
        *,
        default: Any,
        about: str,
        against: str = "",
        ranks: int = 0,
        cores: int = 0,
        unit: str = "",
    ) -> None:
        """Hold values of a variable against each other, as OMP_NUM_THREADS; `tuilab advise` sets the one that won.

        `values` has, those first that take least of the box, each value with the arm of a race still to come that has it, or
        with what was measured of it, where less is better, in a `unit`. `default` is the one that holds where nothing is set,
        and is never advised. `about` says with what work, `against` what this run saw that speaks against setting it. With
        `ranks` it is for each of so many, else for one program. A race that needs `cores` says how many.
        """
        self._claims.advise(
            name, values, default=default, about=about, against=against, ranks=ranks, cores=cores, unit=unit
        )  # fmt: skip

    # ---- for its own parts

    def _arm_of(self, order: ArmOrder) -> Arm:
        if self._is_rank:
            raise ArmFailed(f"{order.arm}: an arm under torchrun cannot start arms of its own; start them from run(lab)")
        return Arm(order, self._line, self._journal)

    def record(self, event: events.Event) -> None:
        """Append an event that will be read back as it is, or raise TypeError or ValueError."""
        self._journal.append(checked(event))

    @property
    def records_written(self) -> int:
        return self._journal.written

    def tell_holdings(self) -> None:
        """Tell what torch holds on the GPU of a race, between two of its blocks."""
        self._holdings.tell_between_blocks()

    def tell_holdings_after_failure(self) -> None:
        """Tell what torch held on the GPUs when the scenario failed."""
        self._holdings.tell_after_failure()

    def bring_over(self) -> None:
        """Write what is still on a GPU, however the scenario ended; what does not come is counted as lost."""
        self._scalars.bring_over()

    def close(self) -> None:
        """Bring over what is still on a GPU; ValueError for a claim about an arm that never raced."""
        self.bring_over()
        self._holdings.tell_last()
        self._claims.check_raced()

    def _enter(self, event: events.StageEntered | events.Progressed) -> None:
        """Record where the scenario is; also what has come from a GPU by then, and what is held there."""
        self._scalars.flush()
        self.record(event)
        self._holdings.tell()
