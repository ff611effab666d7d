"""The Box screen: the current load of this machine, and who uses each GPU.

Its keys lead to the facts about the machine and to the checks.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import psutil
from textual import work
from textual.app import ComposeResult
from textual.content import Content
from textual.message import Message
from textual.worker import get_current_worker

from tuilab.probes.gpu.own_process import NvmlProcess
from tuilab.tui.keys import bindings
from tuilab.tui.looks.marks import to_content
from tuilab.tui.screens.page import Page
from tuilab.tui.widgets.gauges import GaugeReading, Gauges

_PERIOD_S = 1.0


class BoxPage(Page):
    """Shows gauges, which are read only while the screen is visible."""

    PLACE = "box"
    BINDINGS = bindings("box")

    class GpusAnswered(Message):
        """There is an answer about the GPUs, or a text with the reason why there is none."""

        def __init__(self, answer: Mapping[str, Any] | str) -> None:
            super().__init__()
            self.answer = answer

    def __init__(self) -> None:
        super().__init__()
        self._nvml: NvmlProcess | None = None

    def compose_body(self) -> ComposeResult:
        self.gauges = Gauges()
        yield self.gauges

    def on_mount(self) -> None:
        self.gauges.focus()
        psutil.cpu_percent(percpu=True)  # this only starts the period that the next call measures
        self.set_interval(_PERIOD_S, self._measure)
        host = to_content(os.uname().nodename, 100)
        self.heading.show(Content.assemble(("tuilab", "bold"), "  box  ", host))

    def on_screen_resume(self) -> None:
        self._listen_to_gpus()

    def on_screen_suspend(self) -> None:
        self._end_listening()

    def on_unmount(self) -> None:
        self._end_listening()

    def command(self) -> str:
        return "tuilab doctor --all"

    def _measure(self) -> None:
        """Show the load of the cores and the memory, unless another screen covers this one."""
        if not self.is_current:
            return
        memory = psutil.virtual_memory()
        swap_bytes, swap_used_bytes = _swap()
        reading = GaugeReading(
            cores=psutil.cpu_percent(percpu=True),
            memory_used_bytes=memory.total - memory.available,
            memory_total_bytes=memory.total,
            load=os.getloadavg(),
            waiting_percent=_waiting_percent(),
            swap_used_bytes=swap_used_bytes,
            swap_total_bytes=swap_bytes,
        )
        self.gauges.show(reading)

    def _listen_to_gpus(self) -> None:
        """Start the process that asks NVML, and show its answers; do nothing if it runs already.

        If it cannot be started, show why.
        """
        if self._nvml is not None:
            return
        try:
            self._nvml = NvmlProcess()
        except OSError as problem:
            self.gauges.show_silence(f"cannot start the process that asks NVML: {problem.strerror}")
            return
        self._listen(self._nvml)

    def _end_listening(self) -> None:
        if self._nvml is not None:
            self._nvml.close()
            self._nvml = None

    @work(thread=True, group="live")
    def _listen(self, nvml: NvmlProcess) -> None:
        """Post the answers about GPUs until the screen closes or no further answer can come."""
        worker = get_current_worker()
        while not worker.is_cancelled:
            answer = nvml.next()
            if nvml is self._nvml:
                self.post_message(self.GpusAnswered(answer))
            if isinstance(answer, str) or "refusal" in answer:
                return

    def on_box_page_gpus_answered(self, message: GpusAnswered) -> None:
        """Show the answer: the GPUs, how they are used, or why that is not known."""
        answer = message.answer
        if isinstance(answer, str):
            self.gauges.show_silence(answer)
        elif "readings" in answer:
            self.gauges.show_readings(answer["readings"])
        else:
            self.gauges.show_gpus(answer)


def _swap() -> tuple[int, int]:
    """Return the bytes of swap in all and in use; both 0 if they are not known."""
    try:
        swap = psutil.swap_memory()
    except (OSError, RuntimeError, ValueError):  # /proc does not have the values
        return 0, 0
    return swap.total, swap.used


def _waiting_percent() -> float | None:
    """Return in how many % of the last 10 s a process waited for a core; None if unknown."""
    try:
        # The file starts with "some avg10=1.23 avg60=...".
        words = Path("/proc/pressure/cpu").read_text().split()
        return float(words[1].removeprefix("avg10="))
    except (OSError, ValueError, IndexError):
        return None
