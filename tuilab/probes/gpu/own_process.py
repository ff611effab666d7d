"""Read the GPUs in a process of its own, which may hang or crash without harm to its parent.

    python -P -m tuilab.probes.gpu.own_process         a line of JSON about the GPUs, then readings
    python -P -m tuilab.probes.gpu.own_process list    a line about those that a run can use

The readings are one line each second. The process ends when its stdin is closed.
"""

import contextlib
import itertools
import json
import os
import select
import subprocess
import sys
import time
from dataclasses import asdict
from threading import Lock, Thread
from typing import Any

PERIOD_S = 1.0
PATIENCE_S = 10.0  # a driver that is not kept loaded takes seconds for its first answer
_READINGS_PER_TENANTS = 5  # the processes are listed with every fifth reading
_MAX_TENANTS = 20  # processes of a GPU that are listed
_POLL_S = 0.2
_LINE_LIMIT = 1024 * 1024


class NvmlProcess:
    """A process that reads the GPUs; `next` returns its answers one by one."""

    def __init__(self, *words: str) -> None:
        """Start the process; `words` are its arguments. Raises OSError if that fails."""
        self._is_closed = False
        # A descriptor must not be closed while it is read: another file could get its number.
        self._lock = Lock()
        self._output = b""  # that was read, and not returned yet
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "tuilab.probes.gpu.own_process", *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C at the terminal must not end it
        )

    def next(self, patience_s: float = PATIENCE_S) -> dict[str, Any] | str:
        """Return the next answer, or why there is none; call it in a thread that may wait."""
        deadline = time.monotonic() + patience_s
        while b"\n" not in self._output:
            data = self._read()
            if self._is_closed:
                return "no longer read"
            if data == b"" or len(self._output) > _LINE_LIMIT:
                return self._describe_end()
            if time.monotonic() > deadline:
                return f"NVML has not answered for {patience_s:g} s"
            self._output += data or b""
        line, _, self._output = self._output.partition(b"\n")
        with contextlib.suppress(ValueError):
            answer = json.loads(line)
            if isinstance(answer, dict):
                return answer
        return "the process that asks NVML gave an invalid answer"

    def _read(self) -> bytes | None:
        """Return the output of a short time; None for none so far, b"" if the process has ended.

        None as well if this object was closed meanwhile.
        """
        with self._lock:
            if self._is_closed or self._process.stdout is None:
                return None
            fd = self._process.stdout.fileno()
            poll = select.poll()
            poll.register(fd, select.POLLIN)
            if not poll.poll(_POLL_S * 1000):
                return None
            return os.read(fd, 65536)

    def close(self) -> None:
        """End the process. If it hangs in the driver, it cannot be ended and is not waited for."""
        self._is_closed = True
        self._process.kill()
        with self._lock:
            for pipe in (self._process.stdin, self._process.stdout):
                if pipe is not None:
                    with contextlib.suppress(OSError):
                        pipe.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(0.5)

    def _describe_end(self) -> str:
        """Wait up to a second for the end of the process, and return how it ended."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            code = self._process.wait(1.0)
            if code < 0:
                return f"NVML ended the process that asked it, by signal {-code}"
            return f"the process that asks NVML has ended with exit code {code}"
        return "the process that asks NVML stopped answering"


def ask(patience_s: float = PATIENCE_S) -> dict[str, Any] | str:
    """Return the first answer of a process of its own: the GPUs, or why they are not known."""
    process = NvmlProcess()
    try:
        return process.next(patience_s)
    finally:
        process.close()


def main() -> None:
    """Print the GPUs, then readings each second; or only the GPUs that a run can use."""
    from tuilab.probes.gpu.nvml import open_gpus

    Thread(target=_end_with_stdin, daemon=True).start()
    gpus = open_gpus()
    if isinstance(gpus, str):
        _print({"refusal": gpus})
        return
    if sys.argv[1:] == ["list"]:
        from tuilab.probes.gpu.gpu_choices import describe_choices

        _print(describe_choices(gpus, os.environ))
        return
    rows = [asdict(gpu) for gpu in gpus.available]
    unusable = {str(index): reason for index, reason in gpus.unusable.items()}
    _print({"facts": gpus.facts(), "gpus": rows, "unusable": unusable})
    for number in itertools.count():
        if not gpus.available:
            return
        has_tenants = number % _READINGS_PER_TENANTS == 0
        _print({"readings": _read_all(gpus, has_tenants=has_tenants)})
        time.sleep(PERIOD_S)


def _read_all(gpus: Any, *, has_tenants: bool) -> dict[str, Any]:
    """Return the readings of each GPU by UUID, on request with its processes.

    A lost GPU has the reason instead, and is not in later readings.
    """
    from tuilab.probes.gpu.nvml import GpuLost

    readings: dict[str, Any] = {}
    for gpu in list(gpus.available):
        try:
            reading = gpus.read(gpu)
        except GpuLost as lost:
            readings[gpu.uuid] = {"lost": str(lost)}
        else:
            readings[gpu.uuid] = {"values": reading.values, "missing": reading.missing}
            if has_tenants:
                readings[gpu.uuid] |= _tenants(gpus, gpu)
    return readings


def _tenants(gpus: Any, gpu: Any) -> dict[str, Any]:
    """Return the processes on a GPU, and which of them are not listed, or why none is."""
    from tuilab.probes import NotKnown

    try:
        processes = gpus.tenants(gpu)
    except NotKnown as problem:
        return {"tenants": [], "unseen": str(problem)}
    listed = [process._asdict() for process in processes[:_MAX_TENANTS]]
    unseen = ""
    if not processes:
        unseen = gpus.no_pids
    elif len(processes) > len(listed):
        unseen = f"{len(processes) - len(listed)} more"
    return {"tenants": listed, "unseen": unseen}


def _print(answer: dict[str, Any]) -> None:
    """Print an answer as a line of JSON; end this process if no process reads it."""
    try:
        os.write(1, json.dumps(answer).encode() + b"\n")
    except OSError:  # no process reads the answers any more
        os._exit(0)


def _end_with_stdin() -> None:
    """End this process as soon as its stdin is closed."""
    with contextlib.suppress(OSError):
        while os.read(0, 64):
            pass
    os._exit(0)


if __name__ == "__main__":
    main()
