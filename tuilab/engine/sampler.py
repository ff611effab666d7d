"""The sampler: a disposable process that records twice a second what the processes of a run use.

    python -P -m tuilab.engine.sampler RUN_DIR SUPERVISOR_PID STREAM

When its stdin closes, the supervisor is gone: it then ends the processes of the run, and itself.
Its stdout is a heartbeat of one byte a sample, and another byte when it has described the machine.
"""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Thread

from tuilab.engine import processes
from tuilab.engine.gpus.raced import RacedGpu
from tuilab.engine.gpus.schedule import PERIOD_S, GpuAnswers
from tuilab.engine.gpus.watch import GpuWatch
from tuilab.engine.spawn import BOX_TOLD, has_rest, words_for_rest
from tuilab.probes.tree import Tree, Usage
from tuilab.record.events import EnvironmentRecorded, Sampled
from tuilab.record.journal.writer import Writer

DEATHS_ALLOWED = 2  # after so many deaths, samplers do not use NVML any more


def main() -> None:
    """Sample until the supervisor ends this process, or is gone.

    The first sample comes before everything slow. The machine is described in a thread meanwhile.
    """
    run_dir, supervisor, stream = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    _set_signals()
    Thread(target=_hold_lifeline, args=[run_dir], daemon=True).start()
    journal = Writer(run_dir / "journal" / f"{stream}.jsonl")
    tree = Tree(supervisor)
    _write(journal, tree.read(), GpuAnswers({}, {}))  # before anything slow
    watch = GpuWatch(journal, RacedGpu(run_dir), _refusal(run_dir))
    Thread(target=_record_box, args=[journal], daemon=True).start()
    for _ in ticks(PERIOD_S):
        usage = tree.read()
        _write(journal, usage, watch.read(usage.pids))


def ticks(
    period_s: float,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> Iterator[None]:
    """Yield at the multiples of a period from now on; if one is missed, it is skipped."""
    start = clock()
    while True:
        sleep(period_s - (clock() - start) % period_s)
        yield


def _set_signals() -> None:
    """Ignore the signals of a terminal, and end silently on SIGTERM, whatever was inherited."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])


def _hold_lifeline(run_dir: Path) -> None:
    """Wait for the end of the supervisor, then end the processes of the run and this process.

    Between the two, the unread marks of a command are recorded. A thread does this, because the
    main thread may hang in a system call.
    """
    try:
        with contextlib.suppress(OSError):
            while os.read(0, 64):
                pass
        processes.end_marked(run_dir.name)
        if has_rest(run_dir):
            subprocess.run(words_for_rest(run_dir), stdin=subprocess.DEVNULL, check=False)
    finally:
        os._exit(0)


def _refusal(run_dir: Path) -> str:
    """Return why NVML is not used: it may have killed earlier samplers.

    An empty string: it is used.
    """
    # Each sampler has a stream of its own, and this one has opened its stream already.
    deaths = len(list((run_dir / "journal").glob("sampler*.jsonl"))) - 1
    if deaths < DEATHS_ALLOWED:
        return ""
    return f"not asked any more: the sampler has died {deaths} times"


def _record_box(journal: Writer) -> None:
    """Record facts about the machine, then say so in the heartbeat, also if that failed."""
    from tuilab.probes.cpu import cpu_facts
    from tuilab.probes.env import environment_facts
    from tuilab.probes.numa import numa_facts

    try:
        facts = {"cpu": cpu_facts(), "numa": numa_facts(), "env": environment_facts(Path())}
        journal.append(EnvironmentRecorded(part="box", facts=facts))
    finally:
        _beat(BOX_TOLD)


def _write(journal: Writer, usage: Usage, gpus: GpuAnswers) -> None:
    """Record one sample and send a heartbeat; errors of the disk or the pipe are ignored."""
    sample = Sampled(
        processes=len(usage.pids),
        threads=usage.threads,
        cpu_percent=usage.cpu_percent,
        rss_bytes=usage.rss_bytes,
        uss_bytes=usage.uss_bytes,
        waiting_bytes=usage.waiting_bytes,
        gpus=gpus.readings,
        gpus_asked=gpus.asked,
    )
    journal.append(sample)
    _beat(b".")


def _beat(byte: bytes) -> None:
    with contextlib.suppress(OSError):
        os.write(1, byte)


if __name__ == "__main__":
    main()
