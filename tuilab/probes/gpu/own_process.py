"""Asks the GPUs in a process of its own, which may hang or crash without harm to who asks.

    python -P -m tuilab.probes.gpu.own_process         one line of JSON about the GPUs, then a line of readings each second
    python -P -m tuilab.probes.gpu.own_process list    one line about those that a run can have

It ends when its stdin is closed.
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
PATIENCE_S = 10.0  # a driver that is not kept loaded takes seconds to answer the first time
_TENANTS_EVERY, _MOST_TENANTS = 5, 20  # readings, and processes that are told of
_SLICE_S = 0.2
_LINE_LIMIT = 1024 * 1024


class Apart:
    """A process that asks the GPUs; `next` returns what it says, line by line."""

    def __init__(self, *words: str) -> None:
        self._is_closed = False
        self._lock = (
            Lock()
        )  # a descriptor must not be closed, and given to somebody else, while it is read
        self._said = b""
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "tuilab.probes.gpu.own_process", *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C at the terminal is not meant for it
        )

    def next(self, patience_s: float = PATIENCE_S) -> dict[str, Any] | str:
        """Return the next thing it says, or why there is none; to be called by a thread that may wait."""
        deadline = time.monotonic() + patience_s
        while b"\n" not in self._said:
            more = self._read()
            if self._is_closed:
                return "no longer read"
            if more == b"" or len(self._said) > _LINE_LIMIT:
                return self._how_it_ended()
            if time.monotonic() > deadline:
                return f"NVML has not answered for {patience_s:g} s"
            self._said += more or b""
        line, _, self._said = self._said.partition(b"\n")
        with contextlib.suppress(ValueError):
            said = json.loads(line)
            if isinstance(said, dict):
                return said
        return "the process that asks NVML gave an invalid answer"

    def _read(self) -> bytes | None:
        """Return what it said within a short time, None for nothing, b"" when it has ended."""
        with self._lock:
            if self._is_closed or self._process.stdout is None:
                return None
            fd = self._process.stdout.fileno()
            poll = select.poll()
            poll.register(fd, select.POLLIN)
            return os.read(fd, 65536) if poll.poll(_SLICE_S * 1000) else None

    def close(self) -> None:
        """End it; one that hangs in the driver cannot be ended, and is not waited for."""
        self._is_closed = True
        self._process.kill()
        with self._lock:
            for pipe in (self._process.stdin, self._process.stdout):
                if pipe is not None:
                    with contextlib.suppress(OSError):
                        pipe.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(0.5)

    def _how_it_ended(self) -> str:
        with contextlib.suppress(subprocess.TimeoutExpired):
            code = self._process.wait(1.0)
            if code < 0:
                return f"NVML ended the process that asked it, by signal {-code}"
            return f"the process that asks NVML has ended with exit code {code}"
        return "the process that asks NVML stopped answering"


def ask(patience_s: float = PATIENCE_S) -> dict[str, Any] | str:
    """Return what there is to say about the GPUs, or why nothing can be said; for who needs it once."""
    apart = Apart()
    try:
        return apart.next(patience_s)
    finally:
        apart.close()


def main() -> None:
    """Say what GPUs there are, then read them each second; or only list those that a run can have."""
    from tuilab.probes.gpu.nvml import open_gpus

    Thread(target=_end_with_stdin, daemon=True).start()
    gpus = open_gpus()
    if isinstance(gpus, str):
        _say({"refusal": gpus})
        return
    if sys.argv[1:] == ["list"]:
        from tuilab.probes.gpu.gpu_choices import listed

        _say(listed(gpus, os.environ))
        return
    found = [asdict(gpu) for gpu in gpus.found]
    _say(
        {
            "facts": gpus.facts(),
            "gpus": found,
            "unusable": {str(index): why for index, why in gpus.unusable.items()},
        }
    )
    for number in itertools.count():
        if not gpus.found:
            return
        _say({"readings": _read_all(gpus, has_tenants=number % _TENANTS_EVERY == 0)})
        time.sleep(PERIOD_S)


def _read_all(gpus: Any, *, has_tenants: bool) -> dict[str, Any]:
    from tuilab.probes.gpu.nvml import GpuLost

    readings: dict[str, Any] = {}
    for gpu in list(gpus.found):
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
    """Return who computes on a GPU, or why that is not known."""
    from tuilab.probes import NotKnown

    try:
        found = gpus.tenants(gpu)
    except NotKnown as problem:
        return {"tenants": [], "unseen": str(problem)}
    unseen = (
        gpus.no_pids
        if not found
        else f"{len(found) - _MOST_TENANTS} more"
        if len(found) > _MOST_TENANTS
        else ""
    )
    return {"tenants": [one._asdict() for one in found[:_MOST_TENANTS]], "unseen": unseen}


def _say(what: dict[str, Any]) -> None:
    try:
        os.write(1, json.dumps(what).encode() + b"\n")
    except OSError:
        os._exit(0)


def _end_with_stdin() -> None:
    with contextlib.suppress(OSError):
        while os.read(0, 64):
            pass
    os._exit(0)


if __name__ == "__main__":
    main()
