"""What the machine does at this moment: cores, memory, load, GPUs; the screen asks once a second and shows it here."""

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from textual.content import Content

from tuilab.drawings.bars import bar_of
from tuilab.drawings.symbols import ASCII, BRAILLE, Symbols
from tuilab.probes.gpu.nvml import throttle_names
from tuilab.text import is_utf8_terminal
from tuilab.tui.looks.marks import plain
from tuilab.tui.widgets.box.counted import Counted
from tuilab.words import size

_HISTORY = 60  # readings of the share of cores that was busy
_NUMBERED = 8  # so many cores have their percents beside them
_GROUP = 8
_LABEL = 9
_WITH_BAR = 60  # columns of a line about a GPU that has a bar, too
_WAITING = ("   time with a process waiting ", "   process waiting ", "  waiting ")  # the longest that there is room for
_TENANTS = 3  # that are told of by name


@dataclass(frozen=True)
class Moment:
    """What was read; a share that is unknown is None."""

    cores: Sequence[float]  # percent of each
    memory_used_bytes: int
    memory_total_bytes: int
    load: Sequence[float] = ()
    waiting_percent: float | None = None
    swap_used_bytes: int = 0
    swap_total_bytes: int = 0


@dataclass
class GpuGauge:
    """A GPU and what it said last."""

    name: str
    bytes_total: int | None = None
    index: int = 0  # a slice has that of its GPU
    slice: str = ""
    values: Mapping[str, float] = field(default_factory=dict)
    tenants: Sequence[Mapping[str, Any]] = ()  # who computes there, as `probes.gpu.own_process` tells it
    trouble: str = ""
    unseen: str = ""  # why it is not known who computes there


class Gauges(Counted):
    """One line for each thing."""

    def __init__(self) -> None:
        super().__init__()
        self._moment: Moment | None = None
        self._busy: deque[float] = deque(maxlen=_HISTORY)
        self._gpus: list[GpuGauge] = []

    def show(self, moment: Moment) -> None:
        """Show what was read now."""
        self._moment = moment
        self._busy.append(sum(moment.cores))
        self.repaint()

    def show_gpus(self, gpus: Sequence[GpuGauge]) -> None:
        """Show what the GPUs said now."""
        self._gpus = list(gpus)
        self.repaint()

    def lay_out(self, width: int) -> list[Content]:
        now = self._moment
        if now is None:
            return [Content.styled("measuring …", "dim")]
        room = max(width - _LABEL, 8)
        lines = [_labelled("busy", self._busy_line(now, room))]
        swap = _swap(now)
        memory = self._bar_line(now.memory_used_bytes, now.memory_total_bytes, room - swap.cell_length)
        lines.append(_labelled("memory", Content.assemble(memory, swap)))
        load = "  ".join(f"{value:.2f}" for value in now.load) or "n/a"
        waiting = "n/a" if now.waiting_percent is None else f"{now.waiting_percent:.0f} %"
        words = next(words for words in _WAITING if len(load) + len(words) + len(waiting) <= room or words == _WAITING[-1])
        lines.append(_labelled("load", Content.assemble(load, (words, "dim"), waiting)))
        lines += [_labelled(f"GPU {gpu.index}", self._gpu_line(gpu, room)) for gpu in self._gpus]
        return lines + [_labelled("" if at else "cores", line) for at, line in enumerate(self._core_lines(now, room))]

    def _busy_line(self, now: Moment, room: int) -> Content:
        words = f" {sum(now.cores) / 100:.1f} of {len(now.cores)} cores"
        shown = list(self._busy)[-max(min(room - len(words), _HISTORY), 0) :]
        line = "".join(self._column(value / max(len(now.cores), 1)) for value in shown)
        return Content.assemble((line, "$text-primary"), words)

    def _core_lines(self, now: Moment, room: int) -> list[Content]:
        if len(now.cores) <= _NUMBERED:
            parts = [Content.assemble((self._column(share), "$text-primary"), f" {share:3.0f} %  ") for share in now.cores]
            per_line = max(room // 8, 1)
            return [Content("").join(parts[at : at + per_line]) for at in range(0, len(parts), per_line)]
        columns = "".join(map(self._column, now.cores))
        groups = [columns[at : at + _GROUP] for at in range(0, len(columns), _GROUP)]
        per_line = max((room + 1) // (_GROUP + 1), 1)
        rows = [" ".join(groups[at : at + per_line]) for at in range(0, len(groups), per_line)]
        return [Content.styled(row, "$text-primary") for row in rows]

    def _bar_line(self, used: float, total: float, room: int) -> Content:
        words = f" {size(used)} of {size(total)}"
        return Content.assemble(self._bar(used / total if total else 0.0, min(room - len(words), 40)), words)

    def _gpu_line(self, gpu: GpuGauge, room: int) -> Content:
        name, piece = plain(gpu.name, 60, "dim"), [plain(gpu.slice, 40)] if gpu.slice else []
        if gpu.trouble or not gpu.values:
            silent = Content.assemble("n/a: ", plain(gpu.trouble or "no answer yet", 200))
            return Content("  ").join([*piece, silent, name])
        known = gpu.values
        slowed = [word for word in throttle_names(int(known.get("throttle_mask", 0))) if word != "idle"]
        parts = [Content.styled(f"throttled: {', '.join(slowed)}", "$text-warning")] if slowed else []  # before what may be cut
        if (busy := known.get("busy_percent")) is not None:
            bar = self._bar(busy / 100, 12) if room >= _WITH_BAR else Content("")
            parts.append(Content.assemble(bar, f" {busy:3.0f} %" if bar else f"{busy:.0f} %"))
        if (used := known.get("memory_used_bytes")) is not None:
            parts.append(Content(f"{size(used)} of {size(gpu.bytes_total) if gpu.bytes_total else 'n/a'}"))
        if gpu.tenants:
            parts.append(_tenants(gpu.tenants))
        for key, spelled in (("power_w", "{:.0f} W"), ("temperature_c", "{:.0f} °C"), ("sm_mhz", "{:.0f} MHz")):
            if key in known:
                parts.append(Content(spelled.format(known[key])))
        return Content("  ").join([*piece, *parts, name]).truncate(room, ellipsis=True)

    @property
    def _symbols(self) -> Symbols:
        chosen: Symbols | None = getattr(self.app, "symbols", None)
        return chosen or (BRAILLE if is_utf8_terminal() else ASCII)

    def _bar(self, share: float, width: int) -> Content:
        width = max(width, 0)
        filled = bar_of(min(max(share, 0.0), 1.0) * width, self._symbols)
        style = "$text-error" if share > 0.95 else "$text-warning" if share > 0.8 else "$text-primary"
        return Content.assemble((filled, style), (self._symbols.horizontal * (width - len(filled)), "dim"))

    def _column(self, percent: float) -> str:
        columns = self._symbols.columns
        return columns[min(int(percent / 100 * len(columns)), len(columns) - 1)]


def _tenants(found: Sequence[Mapping[str, Any]]) -> Content:
    """Return who computes on a GPU: user, pid, memory."""
    words = [
        f"{one.get('user') or 'n/a'} {one.get('pid')} {size(used) if (used := one.get('bytes_used')) is not None else 'n/a'}"
        for one in found[:_TENANTS]
    ]
    more = len(found) - len(words)
    return plain(", ".join([*words, *([f"+{more}"] if more else [])]), 120, "$text-warning")


def _swap(now: Moment) -> Content:
    """Return how much of the memory is on a disk; a run that is there is not worth timing."""
    if not now.swap_total_bytes:
        return Content.styled("   no swap", "dim")
    style = "$text-warning" if now.swap_used_bytes > now.swap_total_bytes / 10 else "dim"
    return Content.styled(f"   swap {size(now.swap_used_bytes)} of {size(now.swap_total_bytes)}", style)


def _labelled(label: str, line: Content) -> Content:
    return Content.assemble((label.ljust(_LABEL), "dim"), line)


def gauges_of(known: Mapping[str, Any]) -> dict[str, GpuGauge]:
    """Return a gauge for each GPU that `probes.apart` has found, by UUID, and for each that answers nothing, by its index."""
    found = {gpu["uuid"]: _gauge(gpu) for gpu in known.get("gpus", [])}
    silent = {
        index: GpuGauge("", None, int(index), trouble=why, unseen=why) for index, why in known.get("unusable", {}).items()
    }
    return dict(sorted((found | silent).items(), key=lambda one: one[1].index))


def _gauge(gpu: Mapping[str, Any]) -> GpuGauge:
    return GpuGauge(gpu["name"], gpu.get("bytes_total"), gpu.get("index", 0), gpu.get("slice", ""))
