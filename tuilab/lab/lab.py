"""The lab: the only API that a scenario needs.

docs/writing-scenarios.md describes every call with its parameters.

lab.stage("training")                     show what happens next
lab.log(step, loss=loss)                  record the scalars of a step, without waiting for a GPU
lab.progress(done, total)                 show the progress
@lab.once                                 above a function: run it here, in the first repeat only
lab.race(loop=f, sum=g)                   time arms in turns; see race.py
lab.arm("two threads", body, env={...})   run a function of the scenario in a process of its own
lab.ranks(2, body)                        run a function in several processes of one process group
with lab.group():                         put this process alone into a process group
with lab.neighbours(2):                   keep other processes busy
lab.claim("sum", got, equals=12)          claim the bullet `- [sum] ...` of the lesson
lab.claim_ratio("fast", "loop/sum", at_least=2)     claim the ratio of two arms of a later race
lab.advise("OMP_NUM_THREADS", {1: "one", 2: "two"}, default=2, about="...")     compare values
lab.memory("forward")                     count bytes and operators of a block; see meters/memory.py
for step in lab.steps(1000, "training"):  enter a stage, count steps, and show the progress
for n in lab.sweep([1, 10, 100], "sizes"):  the same for a list of values
lab.limit(works, low, high)               find the largest value that works
lab.raises(f, x)  lab.warns(f, x)         return the error or the warnings of a call, as texts
lab.count(f, x, backward=True)            count the exact costs of a call; see meters/counted.py
lab.precision("ieee")                     compute float32 on a GPU without TF32
lab.lacks_units(torch.bfloat16)           name the units for matrix products that the device lacks
lab.axes("loss", x="epoch", log="xy")     name the axes of a chart
lab.text(...)  lab.table(...)  lab.bars(...)  lab.span(...)  lab.image(...)     show other results
lab.artifact(...)  lab.device()
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, TypeVar

import torch

from tuilab.engine.messages import ArmOrder, WorkerLine, WorkerOrder
from tuilab.errors import BoxLacks
from tuilab.lab.arguments import (
    MOST_CORES,
    called,
    checked,
    describe_value,
    flag,
    truth,
    whole,
    words,
)
from tuilab.lab.arms import Arm, ArmFailed, arm_order
from tuilab.lab.claims.claimed import Bounds
from tuilab.lab.claims.claims import Claims
from tuilab.lab.command_prefix import has_ranks
from tuilab.lab.device import matrix_units, precision
from tuilab.lab.device.choose_device import hand_out
from tuilab.lab.first_repeat import Once
from tuilab.lab.gpu_memory import Holdings
from tuilab.lab.lesson_helpers import busy_neighbours, find_limit, raised_by, swept, warned_by
from tuilab.lab.meters.counted import Counted, count
from tuilab.lab.meters.memory import Memory
from tuilab.lab.races.race import Race, refuse_arms
from tuilab.lab.races.races import Races
from tuilab.lab.scalars.scalar_log import Scalar, ScalarLog
from tuilab.lab.shown_records import (
    Axis,
    LaneRecorder,
    ProgressRecorder,
    axes_named,
    bars_shown,
    image_shown,
    keep,
    table_shown,
    text_shown,
)
from tuilab.probes.cores import measure_cores
from tuilab.probes.env import torch_facts
from tuilab.record import events
from tuilab.record.journal.writer import Writer

_NEED_LIMIT = 2_000

T = TypeVar("T")


class Lab:
    """The first parameter of `run(lab, ...)`; its calls append records to the journal of the run.

    An argument that could not be read back unchanged raises TypeError or ValueError.
    """

    def __init__(
        self,
        journal: Writer,
        run_dir: Path,
        line: WorkerLine,
        order: WorkerOrder,
        wanted: str = "auto",
    ) -> None:
        self.repeat = order.repeat
        self.repeats = order.repeats
        self.is_quick = order.quick
        self._journal = journal
        self._run_dir = run_dir
        self._line = line
        self._arm = order.arm.arm if order.arm else ""
        self._is_rank = order.arm is not None and has_ranks(order.arm.prefix)
        self._spread = order.spread
        self._wanted = wanted  # the device of the form
        self._device: torch.device | None = None  # the device that the scenario got
        self._once = Once()
        self._progress = ProgressRecorder()
        self._lanes = LaneRecorder()
        # An arm in a process of its own is timed as a whole.
        self._holdings = Holdings(self.record, is_timing=bool(self._arm))
        self._scalars = ScalarLog(journal, run_dir, order.writer, self._arm, self._holdings)
        self._races = Races(self, self._holdings)
        source = run_dir / "scenario.py"
        self._claims = Claims(
            source,
            journal.append,
            self._races.raced,
            self._once,
            self.effective_cores,
            order.params,
        )
        journal.append(events.EnvironmentRecorded(part="torch", facts=torch_facts(torch)))

    # ---- what happens

    def stage(self, name: str) -> None:
        """Show what happens next."""
        self._enter(events.StageEntered(name=name))

    def log(self, /, step: float, *, arm: str = "", **values: Scalar) -> None:
        """Record the scalars of a step, without waiting for tensors on a GPU.

        A tensor on a GPU is recorded with its value at this point of the current stream. A `step`
        that is not a whole number is a position on the x axis, as in `lab.log(88.7, total=total)`.
        """
        self._scalars.log(step, arm, values)

    def progress(self, done: int, total: int, unit: str = "steps") -> None:
        """Show the progress. Call it in every step: it writes at most ten records a second."""
        record = self._progress.due(done, total, unit)
        if record:
            self._enter(record)

    def steps(self, count: int, name: str) -> Iterator[int]:
        """Enter a stage, yield its steps from 0 to `count` - 1, and show the progress."""
        count = whole("count", count)
        self.stage(name)
        return swept(range(count), "steps", self.progress)

    def sweep(self, values: Iterable[T], name: str) -> Iterator[T]:
        """Enter a stage, return the values one after another, and show the progress."""
        points = swept(values, "values", self.progress)
        self.stage(name)
        return points

    def text(self, text: str, title: str = "") -> None:
        """Show a text of up to 8000 characters; a longer text is cut."""
        self.record(text_shown(text, title))

    def axes(self, metric: str, *, x: str = "", y: str = "", log: Axis | None = None) -> None:
        """Name the axes of the chart of a metric, with units, such as `y="sum of exp(logit)"`.

        `log` names the axes that start logarithmic: "x", "y", "xy", or none with "". Without it,
        the values decide for y, and x is linear.
        """
        self.record(axes_named(metric, x, y, log))

    def bars(self, title: str, values: Mapping[str, Scalar], *, unit: str = "") -> None:
        """Show at most 40 named values as bars that begin at 0.

        The unit "B" is shown as KiB, MiB and GiB.
        """
        self.record(bars_shown(title, values, unit))

    def table(self, title: str, rows: Sequence[Sequence[Any]], *, head: Sequence[str] = ()) -> None:
        """Show a table of texts and numbers, with at most 40 rows and 8 columns.

        True and False are shown as yes and no.
        """
        self.record(table_shown(title, rows, head))

    def span(
        self,
        lane: str,
        began: float,
        ended: float,
        name: str = "",
        *,
        arm: str = "",
        unit: str = "s",
    ) -> None:
        """Show an activity on a lane, from `began` to `ended`; the spans of an arm are one picture.

        Seconds may be of any clock, and are shown from the earliest of them. With another `unit`,
        for example "steps", the numbers are shown as given.
        """
        arm = words("arm", arm) or self._arm
        self.record(self._lanes.span_shown(lane, began, ended, name, arm, unit))

    def image(self, title: str, cells: Any, *, arm: str = "", step: int = 0) -> None:
        """Show an array as a picture; if a side has more than 128 cells, show every n-th cell."""
        self.record(image_shown(title, cells, words("arm", arm) or self._arm, step))

    def artifact(self, name: str, data: bytes | str) -> Path:
        """Keep a file with the run, and return its path."""
        path, record = keep(self._run_dir / "artifacts", name, data)
        self._journal.append(record)
        return path

    # ---- what is measured

    def once(self, part: Callable[[], object]) -> None:
        """Run a part of the scenario in the first repeat only, because exact results never differ.

        Write `@lab.once` above a function without parameters. Keep out of it everything that
        differs between processes (threads, algorithms, seeds that are not set), and races.
        """
        self._once.run(part, self.repeat)

    def device(self, wanted: str | None = None) -> torch.device:
        """Return the device to use: with `auto` the emptiest GPU that works, else the CPU.

        `cuda` and `cuda:1` need a GPU. Without an argument, return the device that the user asked
        for: the scenario gets the option `--device`. If the wanted GPU is missing, the run ends as
        not testable here. All processes of a run get the same device, except that each rank gets
        the GPU with its number.
        """
        if wanted is None:
            wanted = self._wanted
        self._device = hand_out(wanted, self._run_dir, self._journal, is_rank=self._is_rank)
        self._holdings.watch(self._device)
        return self._device

    def needs(self, condition: object, what: str) -> None:
        """End the run as not testable here unless `condition` holds.

        `what` names what is missing.
        """
        what = words("what", what, _NEED_LIMIT)
        if not truth("condition", condition):
            raise BoxLacks(what)

    def memory(
        self,
        name: str,
        *,
        arm: str = "",
        model: torch.nn.Module | None = None,
        timeline: bool = False,
    ) -> Memory:
        """Count live and peak bytes, bytes saved for backward, and operators of a `with` block.

        See meters/memory.py.
        """
        return Memory(self, name, words("arm", arm) or self._arm, model, timeline, self._device)

    def count(self, f: Callable[..., Any], *args: Any, backward: bool = False) -> Counted:
        """Call `f(*args)` once and return its costs, which are the same on every machine.

        See meters/counted.py.

        With `backward=True`, also count the backward of the sum of its result, as `.backward`. The
        `.grad` of the leaves stays unchanged.
        """
        return count(called("f", f), args, backward=flag("backward", backward))

    def raises(self, f: Callable[..., Any], *args: Any) -> str:
        """Call `f(*args)` and return its error, such as "TypeError: first line", or an empty text.

        An error of tuilab itself is raised.
        """
        return raised_by(called("f", f), args)

    def warns(self, f: Callable[..., Any], *args: Any) -> list[str]:
        """Call `f(*args)` and return its warnings, each such as "UserWarning: first line"."""
        return warned_by(called("f", f), args)

    def limit(self, works: Callable[[Any], Any], low: float, high: float) -> float:
        """Return the largest value between `low` and `high` for which `works(value)` is true.

        It must be true for `low`, false for `high`, and change once between them. If both are whole
        numbers, so is the result; otherwise it is right to 1e-12 of the range.
        """
        return find_limit(called("works", works), low, high)

    def precision(self, name: str) -> AbstractContextManager[None]:
        """Compute float32 on a GPU exactly ("ieee") or in TF32 ("tf32") in a `with` block.

        On a CPU nothing changes.

        TF32 keeps 10 of the 23 bits of each factor, for Tensor Cores. By default torch uses it in
        convolutions, but not in matrix products.
        """
        if words("name", name) not in precision.PRECISIONS:
            raise ValueError(
                f"name takes {' or '.join(precision.PRECISIONS)}, not {describe_value(name)}"
            )
        return precision.precision(name)

    def lacks_units(self, dtype: torch.dtype) -> str:
        """Return which units for matrix products of a dtype the device lacks, or "" for none.

        Such units are Tensor Cores, AMD's Matrix Cores, AVX-512 and AMX; float32 means TF32. The
        device is that of `lab.device()`, else the CPU. The text is for `lacks=`.
        """
        if not isinstance(dtype, torch.dtype):
            raise TypeError(f"dtype takes a dtype of torch, not {describe_value(dtype)}")
        if dtype not in matrix_units.DTYPES:
            raise ValueError(
                "dtype takes float16, bfloat16, float32 (as TF32) or one of eight bits, not"
                f" {describe_value(dtype)}"
            )
        return matrix_units.lacking_units(self._device or torch.device("cpu"), dtype)

    def race(
        self,
        /,
        *,
        same: float | Callable[[Any, Any], bool] | None = None,
        seconds: float = 2.0,
        threads: int = 1,
        device: torch.device | None = None,
        factories: bool = False,
        lacks: str = "",
        **arms: Callable[[], Any],
    ) -> Race:
        """Time arms against each other.

        Functions in alternating blocks, or `lab.arm(...)`s one after another; see race.py.

        `same` is the difference that their outputs may have, or a function that compares two
        outputs. With `factories`, each arm is a function that makes the function to time. It is
        called for the arm and again for each control, so that each has tensors of its own. A block
        ends when `device` has finished (default: that of `lab.device()`, else the CPU). A
        `lab.arm(...)` returns the seconds of a step. With `lacks`, the race is skipped, and the
        claims about its arms are not testable here.
        """
        self._once.refuse("race")
        refuse_arms(
            same,
            seconds=seconds,
            threads=threads,
            device=device,
            factories=factories,
            lacks=lacks,
        )
        if device is None:
            device = self._device or torch.device("cpu")
        lacks = words("lacks", lacks, _NEED_LIMIT)
        race = self._races.run(
            arms, same, seconds, threads, device, factories, is_quick=self.is_quick, lacks=lacks
        )
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
        """Return an arm: each call runs `body(lab, *args)` in a new process and returns its value.

        `env` is added to the environment of the process. `prefix` comes before its command line,
        for example numactl; under torchrun every rank calls the body, and rank 0 returns the value.
        The body is a function of the scenario file; its arguments and its value must be plain data.
        The process may take `timeout` seconds. A failure raises ArmFailed, and so does a library in
        LD_PRELOAD that was not loaded.
        """
        order = arm_order(name, body, args, env=env, prefix=prefix, timeout=timeout)
        return self._arm_of(order)

    def ranks(
        self, count: int, body: Callable[..., Any], *args: Any, timeout: float = 60.0
    ) -> list[Any]:
        """Run `body(lab, *args)` in `count` processes of a gloo group, and return their values.

        The group exists before the body is called, and ends after it. A rank that fails, or a
        `timeout` (in seconds), raises ArmFailed. If the run has several nodes (`--nnodes`), the
        processes are divided over them, beginning with its own node.
        """
        # imported here: torch.distributed takes a while to load, and few scenarios need it
        from tuilab.lab.group import ranks_order

        order = ranks_order(count, body, args, self._spread, timeout=timeout)
        run_ranks = self._arm_of(order)
        values: list[Any] = run_ranks()
        return values

    def group(self) -> AbstractContextManager[None]:
        """Put this process alone into a process group (gloo) in a `with` block.

        DDP and FSDP then work as among many, so buckets, calls and bytes can be counted without a
        second process.
        """
        # imported here: torch.distributed takes a while to load, and few scenarios need it
        from tuilab.lab.group import group_of_one

        return group_of_one()

    def effective_cores(self, processes: int = 2) -> float:
        """Measure how many cores so many busy processes get beside other processes."""
        processes = whole("processes", processes, 1, MOST_CORES)
        effective = measure_cores(processes)
        self.record(events.CoresMeasured(processes=processes, effective=effective))
        return effective

    def neighbours(self, count: int) -> AbstractContextManager[None]:
        """Keep `count` other processes busy in a `with` block.

        They end with the block, and with the run in any case.
        """
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
        answers: float | None = None,
    ) -> None:
        """Claim the bullet `- [key] ...` under `## Look for` about a measured value.

        Without a bound, the value must be True. With `lacks`, the claim is not testable here,
        whatever the value. `answers` is the number that the question under `## Predict` asks for;
        True uses the value itself. `at` names the values of parameters that the claim is about, for
        example {"rows": 500}: in a run with other values it is shown as n/a, and does not count.
        """
        bounds = Bounds(equals, at_most, at_least, between)
        self._claims.claim(
            key, got, bounds, tolerance=tolerance, unit=unit, lacks=lacks, at=at, answers=answers
        )

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
        answers: bool = False,
    ) -> None:
        """Claim the ratio of the times of two arms of a later race, as in `ratio="loop/sum"`.

        `margin` is a difference that does not matter (0.03 is 3 %). A claim about parallel work
        names the `cores` that it needs; if the machine is too busy, it is inconclusive. With
        `answers`, its estimate answers the question under `## Predict`. `lacks` and `at` are the
        same as in `lab.claim`.
        """
        bounds = {"at_most": at_most, "at_least": at_least}
        answer = flag("answers", answers) or None
        self._claims.claim_ratio(
            key, ratio, **bounds, margin=margin, cores=cores, lacks=lacks, at=at, answers=answer
        )

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
        """Compare values of a variable such as OMP_NUM_THREADS.

        `tuilab advise` recommends the value that won.

        `values` maps each value to its arm in a later race, or to a measured cost in a `unit`,
        where less is better. Begin with the values that use the least of the machine. `default` is
        the value that applies if the variable is not set; it is never recommended. `about` names
        the work, `against` something that speaks against the setting. With `ranks`, the advice is
        for each of so many ranks, else for one program. `cores` is the number of cores that the
        race needs.
        """
        self._claims.advise(
            name,
            values,
            default=default,
            about=about,
            against=against,
            ranks=ranks,
            cores=cores,
            unit=unit,
        )

    # ---- for its own parts

    def _arm_of(self, order: ArmOrder) -> Arm:
        if self._is_rank:
            raise ArmFailed(
                f"{order.arm}: an arm under torchrun cannot start arms of its own; start them from"
                " run(lab)"
            )
        return Arm(order, self._line, self._journal)

    def record(self, event: events.Event) -> None:
        """Append an event that will be read back unchanged.

        Raise TypeError or ValueError otherwise.
        """
        self._journal.append(checked(event))

    @property
    def records_written(self) -> int:
        return self._journal.written

    def tell_holdings(self) -> None:
        """Record the GPU memory of torch between two blocks of a race."""
        self._holdings.tell_between_blocks()

    def tell_holdings_after_failure(self) -> None:
        """Record the GPU memory of torch after a failure of the scenario."""
        self._holdings.tell_after_failure()

    def bring_over(self) -> None:
        """Write the values that are still on a GPU; those that do not arrive count as lost."""
        self._scalars.bring_over()

    def close(self) -> None:
        """Write the values that are still on a GPU; raise ValueError for a claim without a race."""
        self.bring_over()
        self._holdings.tell_last()
        self._claims.check_raced()

    def _enter(self, event: events.StageEntered | events.Progressed) -> None:
        """Record the stage, the values that have arrived from a GPU, and its memory."""
        self._scalars.flush()
        self.record(event)
        self._holdings.tell()
