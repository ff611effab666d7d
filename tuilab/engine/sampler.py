"""The sampler: a disposable process that writes down, twice a second, what the processes of a run use.

    python -P -m tuilab.engine.sampler RUN_DIR SUPERVISOR_PID STREAM

Its stdin is a lifeline: when the supervisor is gone it ends what the run left behind, and itself. Its stdout is a
heartbeat of one byte a sample. NVML is asked in a thread: one that hangs costs the readings of the GPUs and nothing else.
"""

import contextlib
import os
import signal
import sys
import time
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread

from tuilab.engine import processes
from tuilab.probes.gpu import Gpu, GpuLost, Gpus, Reading, open_gpus
from tuilab.probes.tree import Tree, Usage
from tuilab.record.events import EnvironmentRecorded, GpuFound, Sampled, Unavailable
from tuilab.record.journal import Writer

PERIOD_S = 0.5
GPU_PATIENCE_S = 0.1  # how long a sample waits for the GPUs
GPU_SHARE = 0.005  # of a core at most: many GPUs are asked less often
GPU_SILENCE_S = 5.0  # after this the journal says that they do not answer
DEATHS_ALLOWED = 2  # a sampler that died as often is restarted without NVML

Readings = dict[str, dict[str, float]]


def main() -> None:
    """Sample until the supervisor ends this process, or is gone."""
    run_dir, supervisor, stream = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    _set_signals()
    Thread(target=_hold_lifeline, args=[run_dir.name], daemon=True).start()
    journal = Writer(run_dir / "journal" / f"{stream}.jsonl")
    tree = Tree(supervisor)
    _write(journal, tree.read(), {})  # before anything that is slow
    watch = GpuWatch(journal, _refusal(run_dir))
    Thread(target=_record_box, args=[journal], daemon=True).start()
    for _ in ticks(PERIOD_S):
        usage = tree.read()
        _write(journal, usage, watch.read(usage.pids))


def ticks(
    period_s: float, clock: Callable[[], float] = time.monotonic, sleep: Callable[[float], None] = time.sleep
) -> Iterator[None]:
    """Yield at the multiples of a period from now on; those that were missed are not made up."""
    start = clock()
    while True:
        sleep(period_s - (clock() - start) % period_s)
        yield


class GpuWatch:
    """Asks the GPUs in a thread of its own, because NVML can hang."""

    def __init__(self, journal: Writer, refusal: str = "") -> None:
        self._journal = journal
        self._refusal = refusal
        self._questions: SimpleQueue[Collection[int]] = SimpleQueue()
        self._answers: SimpleQueue[Readings] = SimpleQueue()
        self._asked_at: float | None = None  # when the question was put that is not answered yet
        self._due = 0.0
        self._is_off = False
        self._is_silent = False
        self._explained: set[str] = set()
        Thread(target=self._serve, daemon=True).start()

    def read(self, pids: Collection[int]) -> Readings:
        """Return what the GPUs say now; nothing when there are none, or they do not answer in time."""
        if self._is_off:
            return {}
        if self._asked_at is None:
            if time.monotonic() < self._due:
                return {}
            self._asked_at = time.monotonic()
            self._questions.put(set(pids))
        try:
            readings = self._answers.get(timeout=GPU_PATIENCE_S)
        except Empty:
            self._note_silence(time.monotonic() - self._asked_at)
            return {}
        is_stale = time.monotonic() - self._asked_at > 2 * PERIOD_S
        self._asked_at = None
        return {} if is_stale else readings

    def _note_silence(self, silence_s: float) -> None:
        if silence_s > GPU_SILENCE_S and not self._is_silent:
            self._is_silent = True
            self._journal.append(Unavailable(what="gpu", reason=f"NVML has not answered for {GPU_SILENCE_S:g} s"))

    def _serve(self) -> None:
        gpus = self._refusal or open_gpus()
        if isinstance(gpus, str):
            self._journal.append(Unavailable(what="gpu", reason=gpus))
        else:
            self._introduce(gpus)
            while gpus.found:
                self._answer(gpus, self._questions.get())
        self._is_off = True

    def _answer(self, gpus: Gpus, pids: Collection[int]) -> None:
        began = time.thread_time()
        readings = self._ask_all(gpus, pids)
        cost_s = time.thread_time() - began
        self._due = time.monotonic() + cost_s / GPU_SHARE - PERIOD_S / 2
        self._answers.put(readings)

    def _introduce(self, gpus: Gpus) -> None:
        for gpu in gpus.found:
            self._journal.append(GpuFound(uuid=gpu.uuid, index=gpu.index, name=gpu.name, bytes_total=gpu.bytes_total))
        for index, reason in gpus.unusable.items():
            self._journal.append(Unavailable(what=f"gpu {index}", reason=reason))
        self._journal.append(EnvironmentRecorded(part="gpu", facts=gpus.facts()))

    def _ask_all(self, gpus: Gpus, pids: Collection[int]) -> Readings:
        readings = {}
        for gpu in list(gpus.found):
            try:
                reading = gpus.read(gpu, pids)
            except GpuLost as lost:
                self._journal.append(Unavailable(what=gpu.uuid, reason=str(lost)))
            else:
                self._explain(gpu, reading)
                readings[gpu.uuid] = reading.values
        return readings

    def _explain(self, gpu: Gpu, reading: Reading) -> None:
        """Say once why something is left out."""
        for name, reason in reading.missing.items():
            what = f"{gpu.uuid} {name}"
            if what not in self._explained:
                self._explained.add(what)
                self._journal.append(Unavailable(what=what, reason=reason))


def _set_signals() -> None:
    """Leave the terminal's signals to the supervisor, and end without a word on SIGTERM, whatever was inherited."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])


def _hold_lifeline(run: str) -> None:
    """Wait for the end of the supervisor; this works while the main thread hangs in a system call too."""
    try:
        with contextlib.suppress(OSError):
            while os.read(0, 64):
                pass
        processes.end_marked(run)
    finally:
        os._exit(0)


def _refusal(run_dir: Path) -> str:
    """Say why NVML is not asked: it may be what ended the samplers before this one."""
    deaths = len(list((run_dir / "journal").glob("sampler*.jsonl"))) - 1
    return f"not asked any more: the sampler has died {deaths} times" if deaths >= DEATHS_ALLOWED else ""


def _record_box(journal: Writer) -> None:
    from tuilab.probes.cpu import cpu_facts
    from tuilab.probes.env import environment_facts
    from tuilab.probes.numa import numa_facts

    facts = {"cpu": cpu_facts(), "numa": numa_facts(), "env": environment_facts(Path())}
    journal.append(EnvironmentRecorded(part="box", facts=facts))


def _write(journal: Writer, usage: Usage, readings: Readings) -> None:
    """Write one sample and beat; a full disk or a deaf supervisor is no reason to end."""
    sample = Sampled(
        processes=len(usage.pids),
        threads=usage.threads,
        cpu_percent=usage.cpu_percent,
        rss_bytes=usage.rss_bytes,
        uss_bytes=usage.uss_bytes,
        gpus=readings,
    )
    journal.append(sample)
    with contextlib.suppress(OSError):
        os.write(1, b".")


if __name__ == "__main__":
    main()
