"""The lab: the only API that a scenario needs.

lab.stage("training")                         what happens next
lab.log(step, loss=loss)                      scalars of a step; GPU tensors do not stall the step
lab.progress(done, total)                     how far it is
@lab.once                                     above a function: runs it here, in the first repeat only
lab.race(loop=f, sum=g)                       interleaved timing of arms; see race.py
lab.arm("two threads", body, env={...})       a function of the scenario in a process of its own
lab.claim("sum", got, equals=12)              what the run should show: the bullet `- [sum] ...` of the lesson
lab.claim_ratio("fast", "loop/sum", at_least=2)     the same about two arms of a race still to come
lab.memory("forward")                         bytes and operators; see memory.py
lab.precision("ieee")                         float32 on a GPU that is float32
lab.axes("loss", x="epoch", log="xy")         what is along the axes of a chart
lab.text(...)  lab.table(...)  lab.bars(...)  lab.span(...)  lab.image(...)     what is to be seen besides
lab.artifact(...)  lab.device("auto")
"""

import hashlib
import os
import sys
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import torch

from tuilab.catalogue.params import is_gpu
from tuilab.engine.messages import ArmOrder, WorkerLine, WorkerOrder, pack_message
from tuilab.errors import BoxLacks
from tuilab.lab import device as devices
from tuilab.lab.arms import Arm, ArmFailed, command_words, environment, function_name
from tuilab.lab.choice.chosen import ANY, choose
from tuilab.lab.claimed import MOST_CORES, About, Claims, Record, advice, exact_claim, ratio_claim, refuse
from tuilab.lab.given import LEAST, MOST, checked, number, number_in, place, told, whole, words
from tuilab.lab.holdings import Holdings
from tuilab.lab.memory import Memory
from tuilab.lab.prefix import complete, has_ranks
from tuilab.lab.process_race import run_process_race
from tuilab.lab.race import Race, check_race, run_race
from tuilab.lab.scalars.pending import Pending
from tuilab.lab.scalars.sigterm import before_sigterm
from tuilab.lab.shown.figures import Axis, Lanes, axes_named, bars_shown, table_shown
from tuilab.lab.shown.images import image_shown
from tuilab.probes.cores import measure_cores
from tuilab.probes.env import torch_facts
from tuilab.probes.settings import read_setting
from tuilab.record import events
from tuilab.record.encoding import encode_exactly, encode_finite
from tuilab.record.gpu_of_run import gpu_of_run
from tuilab.record.journal import Writer

_PROGRESS_PERIOD_S = 0.1
_TEXT_LIMIT = 8_000  # characters
_NEED_LIMIT = 2_000
_NAME_LIMIT = 1_000  # of an arm that others tell of, too
_LONGEST_RACE_S = 1e6
_PATIENCE_S = 20.0  # with a GPU that computes nothing of what was logged
_LAST_PATIENCE_S = 1.0  # the same, while a supervisor waits that stops the run

Scalar = float | int | torch.Tensor


class Lab:
    """What `run(lab, ...)` gets: every call appends to the journal of the run.

    An argument that would not be read back as it was given is refused at once, with TypeError or ValueError.
    """

    def __init__(self, journal: Writer, run_dir: Path, line: WorkerLine, order: WorkerOrder) -> None:
        self.repeat = order.repeat
        self.repeats = order.repeats
        self.is_quick = order.quick
        self._arm = order.arm.arm if order.arm else ""
        self._is_rank = order.arm is not None and has_ranks(order.arm.prefix)
        self._device: torch.device | None = None  # that the scenario was told to use
        self._is_once = False  # what runs now runs in the first repeat only
        self._raced: set[str] = set()
        self._claims = Claims(run_dir / "scenario.py")
        self._journal = journal
        self._run_dir = run_dir
        self._line = line
        self._pending = Pending(run_dir, order.writer, self._write)
        self._held = self._pending.held
        self._holdings = Holdings(self.record, is_timing=bool(self._arm))  # an arm of its own times itself
        self._gpus = self._holdings.gpus  # empty on the CPU: a log looks at nothing else then
        self._progressed = 0.0
        self._placed = 0  # records that stand where no step does
        self._lanes = Lanes()
        journal.append(events.EnvironmentRecorded(part="torch", facts=torch_facts(torch)))

    # ---- what happens

    def stage(self, name: str) -> None:
        """Say what happens next."""
        self._flush()
        self.record(events.StageEntered(name=name))
        self._holdings.tell()

    def log(self, step: float, *, arm: str = "", **values: Scalar) -> None:
        """Record scalars of a step; a tensor on a GPU is recorded as it is in the current stream, and no step waits for it.

        What is no whole number is where they stand on the axis: `lab.log(88.7, total=total)` of a sweep.
        """
        x = None
        if type(step) is not int or not -(2**63) <= step <= 2**63 - 1:
            step, x = self._place(step)
        if type(arm) is not str:
            arm = words("arm", arm)
        if self._gpus:
            self._holdings.tell()
        is_finite = True
        for name, value in values.items():
            if type(value) is not float:
                if isinstance(value, torch.Tensor) and value.device.type == "cuda":
                    return self._log_later(step, arm, values, x)
                values[name] = value = number(name, value)
            if value - value != 0.0:
                is_finite = False
        if self._held:
            return self._log_behind(step, arm, values, x)
        record = events.Logged(s=step, v=values, a=arm or self._arm, x=x)  # type: ignore[arg-type]
        self._journal.append(record, encode_finite if is_finite else encode_exactly)
        return None

    def progress(self, done: int, total: int, unit: str = "steps") -> None:
        """Say how far it is; called every step, it is written ten times a second."""
        done, total, unit = whole("done", done), whole("total", total), words("unit", unit)
        now = time.monotonic()
        if now - self._progressed >= _PROGRESS_PERIOD_S or done >= total:
            self._progressed = now
            self._flush()
            self.record(events.Progressed(done=done, total=total, unit=unit))
            self._holdings.tell()

    def text(self, text: str, title: str = "") -> None:
        """Show a short text: a table, an error message, a remark."""
        text = words("text", text)
        if len(text) > _TEXT_LIMIT:
            text = text[:_TEXT_LIMIT] + f"\n… {len(text) - _TEXT_LIMIT} characters more"
        self.record(events.TextShown(text=text, title=title))

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
        name = words("name", name)
        if not name or name != Path(name).name or name.startswith(".") or "\0" in name or len(os.fsencode(name)) > 255:
            raise ValueError(f"name takes a plain file name, not {told(name)}")
        content = _content(data)
        digest = hashlib.sha256(content).hexdigest()
        record = checked(events.ArtifactSaved(name=name, bytes_total=len(content), sha256=digest))
        path = self._run_dir / "artifacts" / name
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        except FileExistsError as problem:
            raise ValueError(f"name takes the name of a new artifact; {told(name)} is there already") from problem
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        self._journal.append(record)
        return path

    # ---- what is measured

    def once(self, part: Callable[[], object]) -> None:
        """Run a part of the scenario here, in the first repeat only: what is exact is the same in every process.

        It stands above a function without arguments, as a decorator. What differs between processes (threads, algorithms,
        seeds that are not set) does not belong there, and a race cannot stand there.
        """
        if not callable(part):
            raise TypeError(f"part takes a function without arguments, not {told(part)}; write @lab.once above one")
        if self.repeat:
            return
        before, self._is_once = self._is_once, True
        try:
            part()
        finally:
            self._is_once = before

    def device(self, wanted: str = "auto") -> torch.device:
        """Return the device to use: `auto` is the emptiest GPU that works, `cuda` insists on one, `cuda:1` on that one.

        A run that wants a GPU where there is none ends as not testable here. All processes of a run get the same one, but of
        ranks each has that of its number.
        """
        if words("wanted", wanted) not in ("cpu", *ANY) and not is_gpu(wanted):
            raise ValueError(f"wanted takes auto, cpu, cuda or cuda:N, not {told(wanted)}")
        rank = int(os.environ["LOCAL_RANK"]) if self._is_rank else None
        before = gpu_of_run(self._run_dir) if wanted in ANY and rank is None else ""
        chosen = choose(wanted, before, rank=rank)
        self._device = device = chosen.device
        told_of = {"wanted": wanted, "chosen": str(device), "why": chosen.why, "notice": chosen.notice}
        told_of |= {} if rank is None else {"rank": str(rank)}
        self._journal.append(events.EnvironmentRecorded(part="device", facts=told_of))
        if device.type == "cuda":
            facts = {**devices.facts(), "chosen": devices.door(device).uuid}
            self._journal.append(events.EnvironmentRecorded(part="cuda", facts=facts))
            self._holdings.watch(device)
        return device

    def needs(self, condition: object, what: str) -> None:
        """End the run as not testable here unless `condition` holds; `what` names what is missing."""
        what = words("what", what, _NEED_LIMIT)
        try:
            holds = bool(condition)
        except Exception as problem:  # an array of several
            raise TypeError(f"condition takes what is true or false, not {told(condition)}") from problem
        if not holds:
            raise BoxLacks(what)

    def memory(self, name: str, *, arm: str = "", model: torch.nn.Module | None = None, timeline: bool = False) -> Memory:
        """Measure a `with` block: live and peak bytes, bytes saved for backward, operators; see meters.Memory."""
        return Memory(self, name, words("arm", arm) or self._arm, model, timeline, self._device)

    def precision(self, name: str) -> AbstractContextManager[None]:
        """Compute float32 on a GPU as it is ("ieee"), or in TF32 ("tf32"), in a `with` block; on a CPU nothing changes.

        TF32 keeps 10 of the 23 bits of each factor, for Tensor Cores. Of itself torch allows it in convolutions, and not in
        products of matrices.
        """
        if words("name", name) not in devices.PRECISIONS:
            raise ValueError(f"name takes {' or '.join(devices.PRECISIONS)}, not {told(name)}")
        return devices.precision(name)

    def race(
        self,
        *,
        same: float | Callable[[Any, Any], bool] | None = None,
        seconds: float = 2.0,
        threads: int = 1,
        device: torch.device | None = None,
        factories: bool = False,
        **arms: Callable[[], Any],
    ) -> Race:
        """Time arms against each other: functions in alternating blocks, or `lab.arm(...)`s one after another; see race.py.

        `same` is by how much their outputs may differ, or a function that compares two. With `factories` each arm is a function
        that makes the one to be timed: it is called for the arm and again for a control, so that each has tensors of its own.
        The `device` is waited for after every block; without it that is the one that `lab.device()` returned, or else the CPU.
        An arm of its own process returns the seconds that a step took.
        """
        self._refuse_once("race")
        seconds, threads = number_in("seconds", seconds, 1e-3, _LONGEST_RACE_S), whole("threads", threads, 1, MOST_CORES)
        device = self._device or torch.device("cpu") if device is None else device
        check_race(arms, same, device, threads, factories)
        if again := self._raced & set(arms):
            raise ValueError(f"the arms {', '.join(sorted(again))} have raced before; give them other names")
        processes = {name: arm for name, arm in arms.items() if isinstance(arm, Arm)}
        if processes and len(processes) < len(arms):
            raise TypeError("a race is between functions or between arms in processes of their own, not both")
        if processes and factories:
            raise TypeError("factories is for functions; an arm in a process of its own is made anew each time it is called")
        self._raced |= set(arms)
        if processes:
            return run_process_race(self, processes)
        self._holdings.watch(device)
        with self._holdings.kept_quiet():
            return run_race(self, arms, same, seconds / 4 if self.is_quick else seconds, threads, device, factories)

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
        if self._is_rank:
            raise ArmFailed(f"{name}: an arm under torchrun cannot start arms of its own; start them from run(lab)")
        order = ArmOrder(
            arm=words("name", name, _NAME_LIMIT),
            function=function_name(body),
            args=list(args),
            env=environment(env),
            prefix=complete(command_words(prefix)),
            timeout_s=number_in("timeout", timeout, 1e-3),
        )
        try:
            pack_message(order)
        except ValueError as problem:
            raise ValueError(f"args, env and prefix take plain data that fits a message: {problem}") from problem
        checked(events.ArmFinished(arm=order.arm, writer="", elapsed_s=0.0))
        return Arm(order, self._line, self._journal)

    def effective_cores(self, processes: int = 2) -> float:
        """Measure how many cores' worth of work that many busy processes get: fewer than they are when others work here."""
        processes = whole("processes", processes, 1, MOST_CORES)
        effective = measure_cores(processes)
        self.record(events.CoresMeasured(processes=processes, effective=effective))
        return effective

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
        advises: str = "",
        **old: Any,
    ) -> None:
        """Claim something about a measured value; the bullet `- [key] ...` under `## Look for` says what.

        With a value alone it must be True. Where the box `lacks` what the claim needs, it is not testable here, whatever the
        value. `advises` is the setting that follows where it is supported, as in "OMP_NUM_THREADS=2".
        """
        if "ratio" in old and got is equals is between is None and not (tolerance or unit):
            about = self._about(key, "claim_ratio", is_old=True)
            return self._claim_ratio(about, at_most=at_most, at_least=at_least, lacks=lacks, advises=advises, **old)
        refuse(old)
        bounds = {"equals": equals, "at_most": at_most, "at_least": at_least, "between": between}
        about = self._about(key, "claim")
        return self._claim(exact_claim(about, got, **bounds, tolerance=tolerance, unit=unit, lacks=lacks), advises)

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
        advises: str = "",
    ) -> None:
        """Claim how many times longer one arm of a race still to come takes than another, as in `ratio="loop/sum"`.

        A claim about work in parallel says how many `cores` it needs: on a busier box it is inconclusive.
        """
        bounds = {"at_most": at_most, "at_least": at_least}
        about = self._about(key, "claim_ratio")
        self._claim_ratio(about, ratio, **bounds, margin=margin, cores=cores, lacks=lacks, advises=advises)

    def not_testable(self, key: str, needs: str) -> None:
        """Say that a claim cannot be tested on this box, and what it would need."""
        about = self._about(key, "not_testable")
        self._claim(checked(events.ClaimNotTestable(**about._asdict(), needs=needs)))

    def record(self, event: events.Event) -> None:
        """Append an event that will be read back as it is, or raise TypeError or ValueError; for the lab's own parts."""
        self._journal.append(checked(event))

    @property
    def records_written(self) -> int:
        return self._journal.written

    def tell_holdings(self) -> None:
        """Tell what torch holds on the GPU of a race, between two of its blocks."""
        self._holdings.tell_between_blocks()

    def bring_over(self) -> None:
        """Write what is still on a GPU, however the scenario ended; what does not come is counted as lost."""
        self._journal.miss(*self._pending.bring_over(_PATIENCE_S))

    def close(self) -> None:
        """Bring over what is still on a GPU; ValueError for a claim about an arm that never raced."""
        self.bring_over()
        self._holdings.tell_last()
        self._claims.check_raced(self._raced)

    # ---- plumbing

    def _about(self, key: str, method: str, *, is_old: bool = False) -> About:
        """Return which claim a call is about; tell at its line what to write where it is of the old form."""
        about = self._claims.about(key, is_old=is_old)._replace(is_once=self._is_once)
        if about.is_old:
            warnings.warn(advice(about, method), FutureWarning, stacklevel=3)
        return about

    def _claim_ratio(
        self, about: About, ratio: str, *, margin: float = 0.03, cores: int = 0, advises: str = "", **given: Any
    ) -> None:
        self._refuse_once("claim_ratio")
        record = ratio_claim(about, ratio, self._raced, margin=margin, cores=cores, **given)
        self._claim(record, advises)
        if isinstance(record, events.ClaimDeclared) and record.cores:
            self.effective_cores(record.cores)

    def _claim(self, record: Record, advises: str = "") -> None:
        """Append the record of a claim, and before it the setting that the claim advises."""
        if words("advises", advises):
            setting = "=".join(read_setting(advises))
            self.record(events.SettingAdvised(key=record.key, text=record.text, setting=setting))
        self._journal.append(record)
        self._claims.add(record)

    def _refuse_once(self, method: str) -> None:
        if self._is_once:
            raise ValueError(f"{method} cannot stand in what runs once: times take every repeat; write it after that part")

    def _place(self, step: Any) -> tuple[int, float | None]:
        """Return the number of the record, and where it stands if that is not its number."""
        found = place("step", step)
        if isinstance(found, int):
            return found, None
        self._placed += 1
        return self._placed - 1, found

    def _log_later(self, step: int, arm: str, values: dict[str, Scalar], x: float | None) -> None:
        """Hold a record back until its values have arrived from the GPU; what cannot be recorded is refused at once."""
        for name, value in values.items():
            if not (isinstance(value, torch.Tensor) and value.device.type == "cuda"):
                values[name] = number(name, value)
        longest = dict.fromkeys(values, -sys.float_info.min)
        encode_exactly(events.Logged(n=MOST, t=MOST, s=LEAST, v=longest, a=arm or self._arm, at=MOST, x=-sys.float_info.min))
        before_sigterm(self._save)
        self._pending.add(step, arm or self._arm, values, x)

    def _log_behind(self, step: int, arm: str, values: dict[str, Scalar], x: float | None) -> None:
        """Log while records are held back: behind these, if one of the names is among theirs."""
        if self._pending.has_any(values):
            self._pending.add(step, arm or self._arm, values, x)
        else:
            self._write(events.Logged(s=step, v=values, a=arm or self._arm, x=x))  # type: ignore[arg-type]
            self._pending.flush(len(values))

    def _write(self, record: events.Logged) -> None:
        is_finite = all(value - value == 0.0 for value in record.v.values())
        self._journal.append(record, encode_finite if is_finite else encode_exactly)

    def _flush(self) -> None:
        if self._held:
            self._pending.flush()

    def _save(self) -> bool:
        """Bring over what one can before SIGTERM ends the process; False where this interrupts the writing of a record."""
        return not self._journal.is_busy and self._pending.save(_LAST_PATIENCE_S)


def _content(data: bytes | str) -> bytes:
    """Return what an artifact is to hold."""
    if not isinstance(data, str | bytes | bytearray):
        raise TypeError(f"data takes bytes or a text, not {told(data)}")
    try:
        return data.encode() if isinstance(data, str) else bytes(data)
    except UnicodeEncodeError as problem:
        raise ValueError(f"data takes a text that can be written as UTF-8: {problem}") from problem
