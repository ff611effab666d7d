"""The load of this machine: cores, memory, GPUs, and the users of each GPU."""

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

_HISTORY = 60  # readings of the share of busy cores
_NUMBERED = 8  # up to so many cores have their percentages next to them
_CORE_WIDTH = 8  # cells of a core with its percentage
_GROUP_SIZE = 8  # cores without percentages that are written together
_LABEL_WIDTH = 9
_MAX_BAR = 40
_GPU_BAR = 12
_WIDE = 60  # columns of the line of a GPU that has a bar
# Words before the share of time with a waiting process; the longest that fit are used.
_WAITING = ("   time with a process waiting ", "   process waiting ", "  waiting ")
_LAST_MINUTE = "  last 60 s"
_MAX_TENANTS = 20  # processes on a GPU that are listed
_GPU_VALUES = (("power_w", "W"), ("temperature_c", "°C"), ("sm_mhz", "MHz"))


@dataclass(frozen=True)
class GaugeReading:
    """A reading of cores and memory. None is a share that is unknown."""

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
    index: int = 0  # of the GPU; a slice has the index of its GPU
    slice: str = ""
    values: Mapping[str, float] = field(default_factory=dict)
    tenants: Sequence[Mapping[str, Any]] = ()  # its users, as `probes.gpu.own_process` reports them
    trouble: str = ""  # the reason why it has no reading
    why_no_users: str = ""  # the reason why its users are not known


class Gauges(Lines):
    """One line for each thing, and one for the processes on a GPU."""

    DEFAULT_CSS = """
    Gauges { padding: 0 1; }
    """

    def __init__(self) -> None:
        super().__init__(id="gauges")
        self._reading: GaugeReading | None = None
        self._busy_percents: deque[float] = deque(maxlen=_HISTORY)  # sums over all cores
        self._gpus: dict[str, GpuGauge] = {}
        self._why_no_gpus = "no answer yet"

    def show(self, reading: GaugeReading) -> None:
        """Show a reading of cores and memory."""
        self._reading = reading
        self._busy_percents.append(sum(reading.cores))
        self.renew()

    def show_gpus(self, answer: Mapping[str, Any]) -> None:
        """Show the GPUs that the process which asks them has found, or why it found none."""
        self._gpus = gauges_of(answer)
        self._why_no_gpus = str(answer.get("refusal", "none found"))
        self.renew()

    def show_readings(self, readings: Mapping[str, Any]) -> None:
        """Show new readings of the GPUs, by UUID.

        A GPU without a reading gets the reason in the place of values, and keeps its users.
        """
        for uuid, gpu in self._gpus.items():
            reading = readings.get(uuid, {})
            gpu.values = reading.get("values", {})
            gpu.tenants = reading.get("tenants", gpu.tenants)
            gpu.why_no_users = reading.get("unseen", gpu.why_no_users)
            trouble = ""
            if not gpu.values:
                trouble = gpu.trouble or "the GPU no longer answers"
            gpu.trouble = reading.get("lost", trouble)
        self.renew()

    def show_silence(self, why: str) -> None:
        """Show why the GPUs no longer answer. Their names stay."""
        self._why_no_gpus = why
        for gpu in self._gpus.values():
            gpu.trouble = gpu.trouble or why
        self.renew()

    # ---- lines

    def lay_out(self, width: int) -> list[Content]:
        """Return the lines of the cores in all, the memory, the load, the GPUs, and each core."""
        reading = self._reading
        if reading is None:
            return [Content.styled("measuring …", "dim")]
        room = max(width - _LABEL_WIDTH, 8)
        lines = [
            _labelled("busy", self._busy_line(reading, room)),
            _labelled("memory", self._memory_line(reading, room)),
            _labelled("load", _load_line(reading, room)),
        ]
        for gpu in self._gpus.values():
            lines.append(_labelled(f"GPU {gpu.index}", self._gpu_line(gpu, room)))
            lines += [_labelled("", line) for line in _user_lines(gpu, room)]
        if not self._gpus:
            why = to_content(self._why_no_gpus, 200, "dim")
            lines.append(_labelled("GPUs", Content.assemble("n/a: ", why)))
        label = "cores"
        for line in self._core_lines(reading, room):
            lines.append(_labelled(label, line))
            label = ""
        return lines

    def _busy_line(self, reading: GaugeReading, room: int) -> Content:
        """Return how many cores are busy now, and their share over the last minute."""
        core_count = len(reading.cores)
        words = f"{sum(reading.cores) / 100:.1f} of {core_count} cores  "
        column_count = min(room - len(words) - len(_LAST_MINUTE), _HISTORY)
        if column_count <= 0:
            return Content(words)
        columns = []
        for percent in list(self._busy_percents)[-column_count:]:
            columns.append(self._column(percent / max(core_count, 1)))
        strip = "".join(columns), "$text-primary"
        return Content.assemble(words, strip, (_LAST_MINUTE, "dim"))

    def _memory_line(self, reading: GaugeReading, room: int) -> Content:
        """Return the used memory as a bar and in words, and the swap behind it."""
        swap = _swap(reading)
        used = reading.memory_used_bytes
        total = reading.memory_total_bytes
        words = f" {size(used)} of {size(total)}"
        share = used / total if total else 0.0
        bar_width = min(room - swap.cell_length - len(words), _MAX_BAR)
        bar = self._bar(share, bar_width)
        return Content.assemble(bar, words, swap)

    def _core_lines(self, reading: GaugeReading, room: int) -> list[Content]:
        """Return a column for each core: a few with their percentages, many in groups."""
        if len(reading.cores) <= _NUMBERED:
            cores = []
            for percent in reading.cores:
                column = self._column(percent), "$text-primary"
                cores.append(Content.assemble(column, f" {percent:3.0f} %  "))
            rows = _split(cores, max(room // _CORE_WIDTH, 1))
            return [Content("").join(row) for row in rows]
        columns = "".join(self._column(percent) for percent in reading.cores)
        groups = _split(columns, _GROUP_SIZE)
        groups_in_row = max((room + 1) // (_GROUP_SIZE + 1), 1)
        lines = []
        for row_groups in _split(groups, groups_in_row):
            lines.append(Content.styled(" ".join(row_groups), "$text-primary"))
        return lines

    def _gpu_line(self, gpu: GpuGauge, room: int) -> Content:
        """Return the readings of a GPU, as many as fit; if there are none, the reason."""
        parts = []
        if gpu.slice:
            parts.append(to_content(gpu.slice, 40))
        name = to_content(gpu.name, 60, "dim")
        if gpu.trouble or not gpu.values:
            trouble = to_content(gpu.trouble or "no answer yet", 200)
            return Content("  ").join([*parts, Content.assemble("n/a: ", trouble), name])
        values = gpu.values
        # The end of the line may be cut: throttling comes first.
        reasons = throttle_names(int(values.get("throttle_mask", 0)))
        throttled = [reason for reason in reasons if reason != "idle"]
        if throttled:
            parts.append(Content.styled(f"throttled: {', '.join(throttled)}", "$text-warning"))
        busy = values.get("busy_percent")
        if busy is not None:
            if room >= _WIDE:
                bar = self._bar(busy / 100, _GPU_BAR)
                parts.append(Content.assemble(bar, f" {busy:3.0f} %"))
            else:
                parts.append(Content(f"{busy:.0f} %"))
        used = values.get("memory_used_bytes")
        if used is not None:
            total = size(gpu.bytes_total) if gpu.bytes_total else "n/a"
            parts.append(Content(f"{size(used)} of {total}"))
        for key, unit in _GPU_VALUES:
            if key in values:
                parts.append(Content(f"{values[key]:.0f} {unit}"))
        return Content("  ").join([*parts, name]).truncate(room, ellipsis=True)

    @property
    def _symbols(self) -> Symbols:
        """The characters to draw with: those of the app, else those that the locale allows."""
        symbols: Symbols | None = getattr(self.app, "symbols", None)
        if symbols:
            return symbols
        return BRAILLE if is_utf8_terminal() else ASCII

    def _bar(self, share: float, width: int) -> Content:
        """Return a bar of a width. From a share of 0.8 on it warns, from 0.95 on it is red."""
        width = max(width, 0)
        filled_width = min(max(share, 0.0), 1.0) * width
        filled = make_bar(filled_width, self._symbols)
        rest = self._symbols.horizontal * (width - len(filled))
        if share > 0.95:
            style = "$text-error"
        elif share > 0.8:
            style = "$text-warning"
        else:
            style = "$text-primary"
        return Content.assemble((filled, style), (rest, "dim"))

    def _column(self, percent: float) -> str:
        """Return a character whose height shows a percentage."""
        columns = self._symbols.columns
        number = int(percent / 100 * len(columns))
        return columns[min(number, len(columns) - 1)]


def _split(items: Sequence[Any], count: int) -> list[Any]:
    """Return a sequence in slices of `count` items."""
    return [items[start : start + count] for start in range(0, len(items), count)]


def _load_line(reading: GaugeReading, room: int) -> Content:
    """Return the load, and the share of time in which a process waited for a core."""
    load = "  ".join(f"{value:.2f}" for value in reading.load) or "n/a"
    waiting = "n/a"
    if reading.waiting_percent is not None:
        waiting = f"{reading.waiting_percent:.0f} %"
    label = _WAITING[-1]
    for long_label in _WAITING:
        if len(load) + len(long_label) + len(waiting) <= room:
            label = long_label
            break
    return Content.assemble(load, (label, "dim"), waiting)


def _user_lines(gpu: GpuGauge, room: int) -> list[Content]:
    """Return the users of a GPU with pid and memory, or why they are not known."""
    lead = "used by ", "dim"
    if gpu.why_no_users:
        reason = to_content(gpu.why_no_users, 200)
        return wrap_lines(Content.assemble(lead, "n/a: ", reason), room)
    users = []
    for tenant in gpu.tenants[:_MAX_TENANTS]:
        name = tenant.get("user") or "n/a"
        bytes_used = tenant.get("bytes_used")
        memory = "n/a" if bytes_used is None else size(bytes_used)
        users.append(f"{name} (pid {tenant.get('pid')}, {memory})")
    hidden = len(gpu.tenants) - len(users)
    if hidden:
        users.append(f"+{hidden}")
    if not users:
        return []
    names = to_content(", ".join(users), 2000, "$text-warning")
    return wrap_lines(Content.assemble(lead, names), room)


def _swap(reading: GaugeReading) -> Content:
    """Return how much of the memory is on a disk. A run that was swapped out is slow."""
    used = reading.swap_used_bytes
    total = reading.swap_total_bytes
    if not total:
        return Content.styled("   no swap", "dim")
    style = "$text-warning" if used > total / 10 else "dim"
    return Content.styled(f"   swap {size(used)} of {size(total)}", style)


def _labelled(label: str, line: Content) -> Content:
    return Content.assemble((label.ljust(_LABEL_WIDTH), "dim"), line)


def gauges_of(answer: Mapping[str, Any]) -> dict[str, GpuGauge]:
    """Return a gauge for each GPU in an answer, by UUID, sorted by index.

    The answer is that of `probes.gpu.own_process`. A GPU that does not answer has its index in the
    place of a UUID.
    """
    gauges = {}
    for gpu in answer.get("gpus", []):
        gauges[gpu["uuid"]] = GpuGauge(
            name=gpu["name"],
            bytes_total=gpu.get("bytes_total"),
            index=gpu.get("index", 0),
            slice=gpu.get("slice", ""),
        )
    for index, why in answer.get("unusable", {}).items():
        gauges[index] = GpuGauge(name="", index=int(index), trouble=why)
    by_index = sorted(gauges.items(), key=lambda item: item[1].index)
    return dict(by_index)
