"""Record the scalars of a step: at once, or after earlier ones of the same name on a GPU."""

import _thread
import functools
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import torch

from tuilab.lab.arguments import LEAST, MOST, number, place, words
from tuilab.lab.gpu_memory import Holdings
from tuilab.lab.scalars.pending import Pending
from tuilab.record.encoding import encode_exactly, encode_finite
from tuilab.record.events import Logged
from tuilab.record.journal.writer import Writer

_PATIENCE_S = 20.0  # for a GPU that does not compute the logged values
_LAST_PATIENCE_S = 1.0  # the same, while the run is being stopped
_AGAIN_S = 0.005  # until SIGTERM is sent again

Scalar = float | int | torch.Tensor

_signals = import_module("_signal")  # the module below `signal`, without its slow enums


@functools.lru_cache(maxsize=256)
def _check_room(arm: str, *names: str) -> None:
    """Raise ValueError if a record with these names could be too long, whatever its values."""
    longest_number = -sys.float_info.min
    longest_values = dict.fromkeys(names, longest_number)
    encode_exactly(
        Logged(n=MOST, t=MOST, s=LEAST, v=longest_values, a=arm, at=MOST, x=longest_number)
    )


class ScalarLog:
    """Writes the records of `lab.log`; `arm` is the arm of this process, if it has one."""

    def __init__(
        self, journal: Writer, run_dir: Path, writer: str, arm: str, holdings: Holdings
    ) -> None:
        self._journal = journal
        self._arm = arm
        self._holdings = holdings
        self._gpus = holdings.gpus  # empty on a CPU, where a log checks nothing else
        self._placed = 0  # records whose step is not a whole number
        self._pending = Pending(run_dir, writer, self._write, journal.now_ns)
        self._held = self._pending.held

    def log(self, step: float, arm: str, values: dict[str, Scalar]) -> None:
        """Record the values of a step, or hold them back while one of them is on a GPU.

        `values` is changed: numbers become floats. Raises TypeError or ValueError for anything
        else.
        """
        x = None
        if type(step) is not int or not LEAST <= step <= MOST:
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
        record = Logged(s=step, v=values, a=arm or self._arm, x=x)  # type: ignore[arg-type]
        self._journal.append(record, encode_finite if is_finite else encode_exactly)
        return None

    def flush(self) -> None:
        """Write the values that have arrived from a GPU, without waiting."""
        if self._held:
            self._pending.flush()

    def bring_over(self) -> None:
        """Wait for the values that are still on a GPU; those that do not arrive count as lost."""
        self._journal.miss(*self._pending.bring_over(_PATIENCE_S))

    def _place(self, step: Any) -> tuple[int, float | None]:
        """Return the number of a record, and its x: None, or a step that is not a whole number.

        Records with an x are counted, and their count is their number.
        """
        checked_step = place("step", step)
        if isinstance(checked_step, int):
            return checked_step, None
        self._placed += 1
        return self._placed - 1, checked_step

    def _log_later(self, step: int, arm: str, values: dict[str, Scalar], x: float | None) -> None:
        """Hold back a record until its values have arrived; invalid values raise at once.

        From the first such record on, SIGTERM writes the held records before it ends this process.
        """
        for name, value in values.items():
            if not (isinstance(value, torch.Tensor) and value.device.type == "cuda"):
                values[name] = number(name, value)
        _check_room(arm or self._arm, *values)
        before_sigterm(self._save)
        self._pending.add(step, arm or self._arm, values, x)

    def _log_behind(self, step: int, arm: str, values: dict[str, Scalar], x: float | None) -> None:
        """Log while records are held back: after them, if they share a name."""
        if self._pending.has_any(values):
            self._pending.add(step, arm or self._arm, values, x)
        else:
            self._write(Logged(s=step, v=values, a=arm or self._arm, x=x))  # type: ignore[arg-type]
            self._pending.flush(len(values))

    def _write(self, record: Logged) -> None:
        is_finite = all(value - value == 0.0 for value in record.v.values())
        self._journal.append(record, encode_finite if is_finite else encode_exactly)

    def _save(self) -> bool:
        """Write held records before SIGTERM ends the process; False if this interrupts a write."""
        return not self._journal.is_busy and self._pending.save(_LAST_PATIENCE_S)


def before_sigterm(act: Callable[[], bool]) -> None:
    """Call `act` before SIGTERM ends this process; if it returns False, call it again in a moment.

    A handler of the scenario takes precedence. If the main thread is in a call of C, the handler
    does not run, and the SIGKILL that follows ends the process.
    """
    has_handler = _signals.getsignal(signal.SIGTERM) != signal.SIG_DFL
    if has_handler or threading.current_thread() is not threading.main_thread():
        return
    owner = os.getpid()

    def send_again() -> None:
        time.sleep(_AGAIN_S)
        os.kill(owner, signal.SIGTERM)

    def end(number: int, frame: object) -> None:
        """End this process after `act`; if `act` returns False, send SIGTERM again soon."""
        if os.getpid() == owner and not act():
            # A thread of `threading` would wait for locks that this may have interrupted.
            _thread.start_new_thread(send_again, ())
            return
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGTERM)

    signal.signal(signal.SIGTERM, end)
