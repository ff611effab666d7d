"""The Box screen: what this machine is, why what it lacks is not there, and what it does at this moment."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import psutil
from textual import work
from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.content import Content
from textual.message import Message
from textual.worker import get_current_worker

from tuilab.doctor import facts as box
from tuilab.doctor.facts import Fact
from tuilab.probes.gpu.own_process import Apart
from tuilab.probes.processes import Busy, why_hidden
from tuilab.tui.keys import bindings
from tuilab.tui.looks.marks import plain
from tuilab.tui.screens.page import Page
from tuilab.tui.state.box import processes
from tuilab.tui.widgets.box.gauges import Gauges, GpuGauge, Moment, gauges_of
from tuilab.tui.widgets.box.processtable import ProcessTable
from tuilab.tui.widgets.sheet import Section, Sheet
from tuilab.words import gpu_label

_PERIOD_S = 1.0
_PROCESSES_S = 2.0
_UNHEARD = [Fact("GPUs", "GPUs", "", "NVML has not answered yet")]
_LEFT = ("Machine", "Processor", "Memory", "NUMA")  # of two columns


class Facts(VerticalScroll):
    """The facts; they can fill the screen, as what stands above them can."""

    ALLOW_MAXIMIZE = True
    DEFAULT_CSS = """
    Facts { height: 1fr; padding: 1 1 0 1; scrollbar-size-vertical: 1; }
    Facts:focus { border-left: outer $primary; padding: 1 1 0 0; }
    """


class BoxPage(Page):
    """Facts that are gathered once, and gauges that live while the screen is seen."""

    PLACE = "box"
    BINDINGS = bindings("box")
    DEFAULT_CSS = """
    BoxPage Gauges { max-height: 60%; }
    BoxPage ProcessTable { max-height: 30%; border-top: hkey $border-blurred; }
    BoxPage.-high ProcessTable { max-height: 35%; }
    BoxPage.-maximized-view Heading { dock: top; }
    BoxPage.-wide #facts { layout: horizontal; }
    BoxPage.-wide Sheet { width: 1fr; padding: 0 2 0 0; }
    BoxPage #right { padding: 1 0 0 0; }
    BoxPage.-wide #right { padding: 0; }
    """
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (120, "-wide")]
    VERTICAL_BREAKPOINTS = [(0, "-low"), (36, "-high")]
    ALLOW_IN_MAXIMIZED_VIEW = "Heading, KeyBar"

    class Gathered(Message):
        """The facts were gathered."""

        def __init__(self, facts: list[Fact]) -> None:
            super().__init__()
            self.facts = facts

    class GpusSaid(Message):
        """The process that asks the GPUs said something, or why it says nothing."""

        def __init__(self, said: Mapping[str, Any] | str) -> None:
            super().__init__()
            self.said = said

    def __init__(self) -> None:
        super().__init__()
        self._facts: list[Fact] = []
        self._gpu_facts = _UNHEARD
        self._gpus: dict[str, GpuGauge] = {}
        self._apart: Apart | None = None
        self._busy = Busy()
        self.is_reading = True

    def compose_body(self) -> ComposeResult:
        yield Gauges()
        self.processes = ProcessTable()
        yield self.processes
        with Facts(id="facts"):
            yield Sheet(id="left")
            yield Sheet(id="right")

    def on_mount(self) -> None:
        self.query_one("#facts").focus()
        psutil.cpu_percent(percpu=True)  # the first reading is only where the next one begins
        self.set_interval(_PERIOD_S, self._measure)
        self.set_interval(_PROCESSES_S, self._look_at_processes)
        self.heading.show(Content.assemble(("tuilab", "bold"), "  box  ", plain(os.uname().nodename, 100)))
        self._gather()
        self._look_at_processes()

    def on_screen_resume(self) -> None:
        self._listen_to_gpus()

    def on_screen_suspend(self) -> None:
        self._end_listening()

    def on_unmount(self) -> None:
        self._end_listening()

    def command(self) -> str:
        return "tuilab doctor"

    # ---- facts

    @work(thread=True, exclusive=True, group="gather")
    def _gather(self) -> None:
        self.post_message(self.Gathered(box.facts()))

    def on_box_page_gathered(self, message: Gathered) -> None:
        self._facts = message.facts
        self.is_reading = False
        self._show_facts()

    def _show_facts(self) -> None:
        sections = box.in_order([*self._facts, *self._gpu_facts])
        for side, is_left in (("#left", True), ("#right", False)):
            mine = {name: rows for name, rows in sections.items() if (name in _LEFT) == is_left}
            width = max((len(fact.name) for rows in mine.values() for fact in rows), default=0)
            self.query_one(side, Sheet).show([_section(name, rows, width) for name, rows in mine.items()])

    def action_measure_again(self) -> None:
        self._end_listening()
        self._gpu_facts = _UNHEARD
        self._gather()
        self._listen_to_gpus()

    def action_zoom(self) -> None:
        """Fill the screen with what has the focus, or give it back."""
        if self.maximized is not None:
            self.minimize()
        elif self.focused is not None:
            self.maximize(self.focused, container=False)

    def action_step_out(self) -> None:
        """Out of the zoom, else out of the screen."""
        if self.maximized is not None:
            self.minimize()
        else:
            self.lab.action_step_back()

    # ---- processes

    def _look_at_processes(self) -> None:
        if self.is_current:
            self._list_processes()

    @work(thread=True, exclusive=True, group="live")
    def _list_processes(self) -> None:
        """See who computes here: on the GPUs; where there is none, on the cores."""
        gpus = list(self._gpus.values())
        if gpus:
            table = processes.of_gpus((device(gpu), gpu.tenants, gpu.unseen) for gpu in gpus)
        else:
            table = processes.of_cores(self._busy.read(), why_hidden())
        self.app.call_from_thread(self.processes.show, table)

    # ---- gauges

    def _measure(self) -> None:
        if not self.is_current:
            return
        memory = psutil.virtual_memory()
        cores = psutil.cpu_percent(percpu=True)
        load, (swap, swapped) = os.getloadavg(), _swap()
        used = memory.total - memory.available
        moment = Moment(cores, used, memory.total, load, _waiting_percent(), swapped, swap)
        self.query_one(Gauges).show(moment)

    def _listen_to_gpus(self) -> None:
        if self._apart is None:
            try:
                self._apart = Apart()
            except OSError as problem:
                self._take_silence(f"cannot start the process that asks NVML: {problem.strerror}")
            else:
                self._listen(self._apart)

    def _end_listening(self) -> None:
        if self._apart is not None:
            self._apart.close()
            self._apart = None

    @work(thread=True, group="live")
    def _listen(self, apart: Apart) -> None:
        """Pass on what the GPUs say, until somebody closes this or there is nothing more to hear."""
        worker = get_current_worker()
        while not worker.is_cancelled:
            said = apart.next()
            if apart is self._apart:
                self.post_message(self.GpusSaid(said))
            if isinstance(said, str) or "refusal" in said:
                return

    def on_box_page_gpus_said(self, message: GpusSaid) -> None:
        said = message.said
        if isinstance(said, str):
            self._take_silence(said)
        elif "readings" in said:
            self._take_readings(said["readings"])
        else:
            self._gpu_facts, self._gpus = box.gpu_facts(said), gauges_of(said)
            self._show_facts()
        self.query_one(Gauges).show_gpus(list(self._gpus.values()))

    def _take_silence(self, why: str) -> None:
        """Say why the GPUs are not heard any more; what they said of themselves stays."""
        for gpu in self._gpus.values():
            gpu.trouble = gpu.trouble or why
        if self._gpu_facts == _UNHEARD:
            self._gpu_facts = box.gpu_facts(why)
            self._show_facts()

    def _take_readings(self, readings: Mapping[str, Any]) -> None:
        for uuid, gpu in self._gpus.items():
            reading = readings.get(uuid, {})
            gpu.values = reading.get("values", {})
            gpu.tenants = reading.get("tenants", gpu.tenants)
            gpu.unseen = reading.get("unseen", gpu.unseen)
            gpu.trouble = reading.get("lost", "" if gpu.values else gpu.trouble or "the GPU no longer answers")


def device(gpu: GpuGauge) -> str:
    """Return what a GPU is called in a column; its line among the gauges tells of what kind a slice is."""
    return gpu_label(gpu.index, gpu.slice[max(gpu.slice.find("Device"), 0) :])


def _section(name: str, rows: Sequence[Fact], width: int) -> Section:
    return Section(Content.styled(name, "bold $text-primary"), [_row(fact, width) for fact in rows])


def _row(fact: Fact, width: int) -> tuple[Content, Content]:
    value = plain(fact.value, 300) if fact.value else Content.assemble("n/a", (": ", "dim"), plain(fact.reason, 300, "dim"))
    note = Content.assemble("  ", plain(fact.note, 200, "$text-warning")) if fact.note else Content("")
    return plain(fact.name.ljust(min(width, 28)), 60, "dim"), Content("").join([value, note])


def _swap() -> tuple[int, int]:
    """Return the bytes of swap that there are, and those in use."""
    try:
        found = psutil.swap_memory()
    except (OSError, RuntimeError, ValueError):  # a /proc that does not tell
        return 0, 0
    return found.total, found.used


def _waiting_percent() -> float | None:
    try:
        return float(Path("/proc/pressure/cpu").read_text().split()[1].removeprefix("avg10="))
    except (OSError, ValueError, IndexError):
        return None
