"""The Calibrate screen: how reliable timing verdicts are on this machine, and the key that measures it."""

import shlex

from textual import work

from tuilab import places
from tuilab.judging.calibration import USUAL_MINUTES, describe_saved
from tuilab.probes.gpu.there import is_gpu_there
from tuilab.runs import queue
from tuilab.runs.command_line import root_option
from tuilab.text import plural, show
from tuilab.tui.keys import Key, bindings
from tuilab.tui.screens.printed import PrintedPage
from tuilab.tui.state.box.calibrating import Calibrating
from tuilab.tui.widgets.question import Question
from tuilab.words import clock
from tuilab.wrapping import hung

_PERIOD_S = 1.0
_BAR = 30
_NAMES = {"cpu": "this machine", "cuda": "the GPU with the most free memory"}


class CalibratePage(PrintedPage):
    """What `tuilab calibrate --show` prints, and how far a calibration is that goes on."""

    PLACE = "calibrate"
    BINDINGS = bindings("calibrate")

    def on_mount(self) -> None:
        super().on_mount()
        self.set_interval(_PERIOD_S, self._look)
        self._look()

    def command(self) -> str:
        now = self._now
        device = ["--device", now.device] if now and now.device != "cpu" else []
        return shlex.join(["tuilab", "calibrate", *device, *root_option(self.desk.root)])

    def places(self) -> list[str]:
        return [*(["running calibration"] if self._goes_on else []), *super().places()]

    def keys_now(self) -> list[Key]:
        hidden = {"enter", "g"} if self._goes_on else set() if is_gpu_there() else {"g"}
        return [key for key in super().keys_now() if key.key not in hidden]

    @property
    def _now(self) -> Calibrating | None:
        return self.desk.calibrating

    @property
    def _goes_on(self) -> bool:
        return self._now is not None and not self._now.is_over

    def _look(self) -> None:
        self.printout.show(self._printed)
        self.say(f"measuring {_NAMES[self._now.device]}" if self._now and self._goes_on else "")
        self.show_keys()

    def _printed(self, width: int) -> str:
        lines = [
            f"How reliable timing verdicts are here, from {show(places.calibration_file(), 300)}:",
            "",
        ]
        lines += [*describe_saved(), ""]
        lines += self._progress() if self._now else [self._what_it_takes()]
        return "\n".join(part for line in lines for part in hung(line, width))

    def _what_it_takes(self) -> str:
        if self.desk.is_read_only:
            return ""
        return "Press enter to measure: the same work is timed against itself, and against itself with an injected 5 % delay."

    def _progress(self) -> list[str]:
        now = self._now
        assert now is not None
        if not now.is_over:
            done = min(now.elapsed_s / now.whole_s, 1.0)
            bar = f"{'#' * round(done * _BAR):.<{_BAR}}"
            return [f"[{bar}]  {clock(now.elapsed_s)} of about {clock(now.whole_s)}; do not use the machine meanwhile"]
        if now.why_not:
            return [f"The calibration of {_NAMES[now.device]} failed: {now.why_not}"]
        return [f"Calibrated {_NAMES[now.device]} in {clock(now.elapsed_s)}."]

    @work(group="question")
    async def action_start(self, device: str) -> None:
        """Calibrate, after a question."""
        if self._goes_on:
            self.lab.tell("a calibration is running; s stops it", is_problem=False)
            return
        if device == "cuda" and not is_gpu_there():
            self.lab.tell("there is no GPU to calibrate")
            return
        busy = [f"It keeps {'every core' if device == 'cpu' else 'the GPU'} busy for {USUAL_MINUTES[device]:g} minutes,"]
        about = [*busy, f"and writes {places.calibration_file()}", "It continues if you leave."]
        if await self.app.push_screen_wait(Question(f"Calibrate {_NAMES[device]}?", about, self._disturbs())):
            self._start(device)

    def _disturbs(self) -> str:
        """Return what runs now, whose times and the calibration would spoil each other."""
        count = len(queue.running(self.desk.root))
        if not count:
            return ""
        are = "is" if count == 1 else "are"
        return f"{plural(count, 'run')} {are} being timed now; all results would be less reliable."

    def _start(self, device: str) -> None:
        try:
            self.desk.calibrating = Calibrating(device, self.desk.root)
        except OSError as problem:
            self.lab.tell(f"cannot start the calibration: {problem.strerror}")
        self._look()

    @work(group="question")
    async def action_cancel(self) -> None:
        """End the calibration, after a question."""
        now = self._now
        if now is None or now.is_over:
            self.lab.tell("no calibration is running", is_problem=False)
        elif await self.app.push_screen_wait(Question("Stop the calibration?", ["Its measurements are not kept."])):
            now.cancel()
