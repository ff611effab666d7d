"""The load of this machine at this moment: cores, memory, GPUs, and who uses each GPU; the Box screen reads it."""

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from textual.content import Content

from tuilab.drawings.bars import make_bar
from tuilab.drawings.symbols import ASCII, BRAILLE, Symbols
from tuilab.probes.gpu.nvml import throttle_names
from tuilab.text.display import is_utf8_terminal
from tuilab.text.words import size
from tuilab.tui.looks.lesson_layout import wrap_lines
from tuilab.tui.looks.marks import to_content
from tuilab.tui.widgets.lines import Lines

_HISTORY = 60  # readings of the share of cores that was busy
_NUMBERED = 8  # so many cores have their percents beside them
_GROUP = 8
_LABEL = 9
_WITH_BAR = 60  # columns of a line about a GPU that has a bar
_WAITING = (
    "   time with a process waiting ",
    "   process waiting ",
    "  waiting ",
)  # the longest that there is room for
_LAST_MINUTE = "  last 60 s"
_TENANTS = 20  # processes on a GPU that are listed


@dataclass(frozen=True)
class GaugeReading:
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
    """A GPU and its last reading."""

    name: str
    bytes_total: int | None = None
    index: int = 0  # a slice has that of its GPU
    slice: str = ""
    values: Mapping[str, float] = field(default_factory=dict)
    tenants: Sequence[Mapping[str, Any]] = ()  # who uses it, as `probes.gpu.own_process` reports it
    trouble: str = ""
    unseen: str = ""  # why it is not known who uses it


class Gauges(Lines):
    """One line for each thing, and one for the processes on a GPU."""

    DEFAULT_CSS = """
    Gauges { padding: 0 1; }
    """

    def __init__(self) -> None:
        super().__init__(id="gauges")
        self._moment: GaugeReading | None = None
        self._busy: deque[float] = deque(maxlen=_HISTORY)
        self._gpus: dict[str, GpuGauge] = {}
        self._why_no_gpus = "no answer yet"

    def show(self, moment: GaugeReading) -> None:
        """Show what was read now."""
        self._moment = moment
        self._busy.append(sum(moment.cores))
        self.renew()

    def show_gpus(self, answer: Mapping[str, Any]) -> None:
        """Show the GPUs that the process found which asks them, or why it found none."""
        self._gpus = gauges_of(answer)
        self._why_no_gpus = str(answer.get("refusal", "none found"))
        self.renew()

    def show_readings(self, readings: Mapping[str, Any]) -> None:
        """Show new readings of the GPUs, by UUID."""
        for uuid, gpu in self._gpus.items():
            reading = readings.get(uuid, {})
            gpu.values = reading.get("values", {})
            gpu.tenants = reading.get("tenants", gpu.tenants)
            gpu.unseen = reading.get("unseen", gpu.unseen)
            if gpu.values:
                gpu.trouble = reading.get("lost", "")
            else:
                gpu.trouble = reading.get("lost", gpu.trouble or "the GPU no longer answers")
        self.renew()

    def show_silence(self, why: str) -> None:
        """Show why the GPUs do not answer any more; their names stay."""
        self._why_no_gpus = why
        for gpu in self._gpus.values():
            gpu.trouble = gpu.trouble or why
        self.renew()

    def lay_out(self, width: int) -> list[Content]:
        now = self._moment
        if now is None:
            return [Content.styled("measuring …", "dim")]
        room = max(width - _LABEL, 8)
        lines = [_labelled("busy", self._busy_line(now, room))]
        swap = _swap(now)
        memory = self._bar_line(
            now.memory_used_bytes, now.memory_total_bytes, room - swap.cell_length
        )
        lines.append(_labelled("memory", Content.assemble(memory, swap)))
        lines.append(_labelled("load", _load_line(now, room)))
        for gpu in self._gpus.values():
            lines.append(_labelled(f"GPU {gpu.index}", self._gpu_line(gpu, room)))
            lines += [_labelled("", line) for line in _user_lines(gpu, room)]
        if not self._gpus:
            lines.append(
                _labelled(
                    "GPUs", Content.assemble("n/a: ", to_content(self._why_no_gpus, 200, "dim"))
                )
            )
        label = "cores"
        for line in self._core_lines(now, room):
            lines.append(_labelled(label, line))
            label = ""
        return lines

    def _busy_line(self, now: GaugeReading, room: int) -> Content:
        """Return how many cores are busy now, and the share of them over the last minute."""
        words = f"{sum(now.cores) / 100:.1f} of {len(now.cores)} cores  "
        count = min(room - len(words) - len(_LAST_MINUTE), _HISTORY)
        shares = [value / max(len(now.cores), 1) for value in self._busy]
        strip = "".join(map(self._column, shares[-count:])) if count > 0 else ""
        return Content.assemble(
            words, (strip, "$text-primary"), (_LAST_MINUTE if strip else "", "dim")
        )

    def _core_lines(self, now: GaugeReading, room: int) -> list[Content]:
        if len(now.cores) <= _NUMBERED:
            parts = [
                Content.assemble((self._column(share), "$text-primary"), f" {share:3.0f} %  ")
                for share in now.cores
            ]
            per_line = max(room // 8, 1)
            return [
                Content("").join(parts[at : at + per_line]) for at in range(0, len(parts), per_line)
            ]
        columns = "".join(map(self._column, now.cores))
        groups = [columns[at : at + _GROUP] for at in range(0, len(columns), _GROUP)]
        per_line = max((room + 1) // (_GROUP + 1), 1)
        rows = [" ".join(groups[at : at + per_line]) for at in range(0, len(groups), per_line)]
        return [Content.styled(row, "$text-primary") for row in rows]

    def _bar_line(self, used: float, total: float, room: int) -> Content:
        words = f" {size(used)} of {size(total)}"
        return Content.assemble(
            self._bar(used / total if total else 0.0, min(room - len(words), 40)), words
        )

    def _gpu_line(self, gpu: GpuGauge, room: int) -> Content:
        parts = []
        if gpu.slice:
            parts.append(to_content(gpu.slice, 40))
        name = to_content(gpu.name, 60, "dim")
        if gpu.trouble or not gpu.values:
            parts.append(Content.assemble("n/a: ", to_content(gpu.trouble or "no answer yet", 200)))
            return Content("  ").join([*parts, name])
        values = gpu.values
        throttled = [
            word for word in throttle_names(int(values.get("throttle_mask", 0))) if word != "idle"
        ]
        if throttled:  # before what may be cut
            parts.append(Content.styled(f"throttled: {', '.join(throttled)}", "$text-warning"))
        busy = values.get("busy_percent")
        if busy is not None:
            bar = self._bar(busy / 100, 12) if room >= _WITH_BAR else Content("")
            parts.append(Content.assemble(bar, f" {busy:3.0f} %" if bar else f"{busy:.0f} %"))
        used = values.get("memory_used_bytes")
        if used is not None:
            parts.append(
                Content(f"{size(used)} of {size(gpu.bytes_total) if gpu.bytes_total else 'n/a'}")
            )
        for key, spelled in (
            ("power_w", "{:.0f} W"),
            ("temperature_c", "{:.0f} °C"),
            ("sm_mhz", "{:.0f} MHz"),
        ):
            if key in values:
                parts.append(Content(spelled.format(values[key])))
        return Content("  ").join([*parts, name]).truncate(room, ellipsis=True)

    @property
    def _symbols(self) -> Symbols:
        chosen: Symbols | None = getattr(self.app, "symbols", None)
        return chosen or (BRAILLE if is_utf8_terminal() else ASCII)

    def _bar(self, share: float, width: int) -> Content:
        width = max(width, 0)
        filled = make_bar(min(max(share, 0.0), 1.0) * width, self._symbols)
        style = (
            "$text-error" if share > 0.95 else "$text-warning" if share > 0.8 else "$text-primary"
        )
        return Content.assemble(
            (filled, style), (self._symbols.horizontal * (width - len(filled)), "dim")
        )

    def _column(self, percent: float) -> str:
        columns = self._symbols.columns
        return columns[min(int(percent / 100 * len(columns)), len(columns) - 1)]


def _load_line(now: GaugeReading, room: int) -> Content:
    """Return the load, and the share of time in which a process waited for a core."""
    load = "  ".join(f"{value:.2f}" for value in now.load) or "n/a"
    waiting = "n/a" if now.waiting_percent is None else f"{now.waiting_percent:.0f} %"
    words = _WAITING[-1]
    for longer in _WAITING:
        if len(load) + len(longer) + len(waiting) <= room:
            words = longer
            break
    return Content.assemble(load, (words, "dim"), waiting)


def _user_lines(gpu: GpuGauge, room: int) -> list[Content]:
    """Return who uses a GPU: user, pid, memory; or why that is not known."""
    if gpu.unseen:
        return wrap_lines(
            Content.assemble(("used by ", "dim"), "n/a: ", to_content(gpu.unseen, 200)), room
        )
    users = []
    for tenant in gpu.tenants[:_TENANTS]:
        used = tenant.get("bytes_used")
        memory = "n/a" if used is None else size(used)
        users.append(f"{tenant.get('user') or 'n/a'} (pid {tenant.get('pid')}, {memory})")
    more = len(gpu.tenants) - len(users)
    if more:
        users.append(f"+{more}")
    if not users:
        return []
    return wrap_lines(
        Content.assemble(("used by ", "dim"), to_content(", ".join(users), 2000, "$text-warning")),
        room,
    )


def _swap(now: GaugeReading) -> Content:
    """Return how much of the memory is on a disk; a run that is there is not worth timing."""
    if not now.swap_total_bytes:
        return Content.styled("   no swap", "dim")
    style = "$text-warning" if now.swap_used_bytes > now.swap_total_bytes / 10 else "dim"
    return Content.styled(
        f"   swap {size(now.swap_used_bytes)} of {size(now.swap_total_bytes)}", style
    )


def _labelled(label: str, line: Content) -> Content:
    return Content.assemble((label.ljust(_LABEL), "dim"), line)


def gauges_of(known: Mapping[str, Any]) -> dict[str, GpuGauge]:
    """Return a gauge for each GPU that `probes.apart` has found, by UUID, and for each that answers nothing, by its index."""
    gauges = {gpu["uuid"]: _gauge(gpu) for gpu in known.get("gpus", [])}
    for index, why in known.get("unusable", {}).items():
        gauges[index] = GpuGauge("", None, int(index), trouble=why)
    return dict(sorted(gauges.items(), key=lambda item: item[1].index))


def _gauge(gpu: Mapping[str, Any]) -> GpuGauge:
    return GpuGauge(gpu["name"], gpu.get("bytes_total"), gpu.get("index", 0), gpu.get("slice", ""))
