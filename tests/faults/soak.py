"""The soak test: `python -m tests.faults.soak --minutes N --seed S` injects faults into short runs.

After each run, only its record may be left: no process, descriptor, temporary file, socket or shared
memory. Two processes live through the whole test, the screens and this one, and must not grow. The
seed and the number of a step determine the fault. If a check fails, this prints the seed, the step and
the error, keeps the folder, and exits with 1.
"""

import argparse
import ctypes
import gc
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from tests.conftest import LIGHT
from tests.engine import newest, until
from tests.faults.sites import make_site
from tests.faults.soaked import fronts, queued, signals, storage, workers
from tests.faults.soaked.checks import (
    check_leftovers,
    check_list,
    check_run,
    check_views,
    thin_out,
)
from tests.faults.soaked.long_lived_processes import Meter, Screens, open_screens
from tests.faults.soaked.place import Place

FAULTS = (*signals.FAULTS, *workers.FAULTS, *storage.FAULTS, *fronts.FAULTS, *queued.FAULTS)
WARM = 10  # steps, after which all is loaded that is loaded once
MIB = 1 << 20
# A leak of a page (3 MiB) or of a run (100 kB) in each step exceeds this within 10 or 300 steps.
# Modules that are loaded on demand, and what allocators keep, have come to half of this.
ROOM = 32 * MIB
_OWN_MOUNTS = 0x20000  # CLONE_NEWNS


@dataclass
class Soak:
    """Faults, step after step, and what was counted."""

    seed: int
    place: Place
    screens: Screens
    step: int = 0
    fault: str = ""
    counts: Counter[str] = field(default_factory=Counter)
    runs: int = 0

    def __post_init__(self) -> None:
        self.meters = [self.screens.meter, Meter("this process", os.getpid())]

    def go_on(self) -> None:
        """Inject one fault and check what must hold after it."""
        self.step += 1
        self.place.chance = random.Random(f"{self.seed} {self.step}")
        fault = self.place.chance.choice(FAULTS)
        self.fault = fault.__name__
        before = set(self.place.site.root.glob("*Z-*"))
        for expected in fault(self.place):
            check_run(self.place, expected)
        self.runs += len(set(self.place.site.root.glob("*Z-*")) - before) or 1
        self.counts[self.fault] += 1
        self.check()

    def check(self) -> None:
        check_leftovers(self.place)
        check_list(self.place)
        self.screens.look_on(newest(self.place.site.root))
        if self.step % 5 == 0:
            check_views(self.place)
        thin_out(self.place)
        self.place.clean()
        gc.collect()  # tests/conftest.py makes automatic collections rare
        # When Python starts a process, it waits for children that have ended.
        subprocess.run(["true"])
        for meter in self.meters:
            if self.step == WARM:
                meter.calibrate()
            elif self.step > WARM:
                self.check_meter(meter)

    def check_meter(self, meter: Meter) -> None:
        """Check that descriptors, ended children and memory do not accumulate."""
        try:
            until(lambda: meter.count_fds() <= meter.fds and not meter.zombies(), patience_s=10)
        except AssertionError:
            now = f"{meter.kinds_of_fds()}, {meter.zombies()} zombies"
            raise AssertionError(
                f"{meter.name}: {meter.fds} descriptors before, now {now}"
            ) from None
        grown = meter.read_rss() - meter.rss
        assert grown < ROOM, f"{meter.name} has grown by {grown / MIB:.1f} MiB since step {WARM}"

    def describe(self) -> str:
        """Return a line about the progress."""
        meters = []
        for meter in self.meters:
            rss_mib = meter.read_rss() / MIB
            first_mib = meter.rss / MIB
            fds = meter.count_fds()
            meters.append(f"{meter.name}: {rss_mib:.1f} MiB (was {first_mib:.1f}), {fds} fds")
        faults = [f"{name} {count}" for name, count in sorted(self.counts.items())]
        progress = f"step {self.step}, {self.runs} runs"
        return f"{progress}; {', '.join(meters)}; {', '.join(faults)}"


def soak(folder: Path, minutes: float, seed: int, has_own_shared_memory: bool) -> bool:
    """Inject faults for so many minutes. Return whether all checks held."""
    os.environ |= {
        "TMPDIR": str(folder / "tmp"),
        "PYTHONPATH": LIGHT,
        "XDG_STATE_HOME": str(folder / "state"),
    }
    (folder / "tmp").mkdir()
    site = make_site(folder)
    os.environ |= site.environment  # for processes that are started from this one
    os.chdir(folder)
    print(f"seed {seed}, in {folder}", flush=True)
    screens = open_screens(site)
    run = Soak(seed, Place(site, has_own_shared_memory), screens)
    began_s = time.monotonic()
    reported_s = began_s
    try:
        while time.monotonic() - began_s < minutes * 60:
            run.go_on()
            if time.monotonic() - reported_s >= 60:
                reported_s += 60
                minute = (reported_s - began_s) / 60
                print(f"minute {minute:.0f}: {run.describe()}", flush=True)
        print(f"all held: seed {seed}, {run.describe()}", flush=True)
        return True
    except Exception:
        print(traceback.format_exc())
        where = f"seed {seed}, step {run.step}, {run.fault}"
        print(f"FAILED: {where}; {run.describe()}\nkept: {folder}", flush=True)
        return False
    finally:
        screens.close()
        site.end()


def take_own_mounts() -> bool:
    """Mount disks for this process and its children only, and a /dev/shm. Return whether that works."""
    if os.getuid() != 0 or ctypes.CDLL(None).unshare(_OWN_MOUNTS):
        return False
    commands = (
        ["mount", "--make-rprivate", "/"],
        ["mount", "-t", "tmpfs", "-o", "mode=1777", "none", "/dev/shm"],
    )
    return all(subprocess.run(command).returncode == 0 for command in commands)


def _hear_signals() -> None:
    """Handle SIGHUP and SIGINT if nohup or a shell's `&` has set them to be ignored.

    Children would inherit that, but start with the default if there is a handler.
    """
    for number in (signal.SIGHUP, signal.SIGINT):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, lambda *_: None)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, required=True)
    parser.add_argument("--seed", type=int, required=True)
    asked = parser.parse_args()
    _hear_signals()
    has_own_shared_memory = take_own_mounts()
    folder = Path(tempfile.mkdtemp(prefix="tuilab-soak-"))
    has_held = soak(folder, asked.minutes, asked.seed, has_own_shared_memory)
    if has_held:
        shutil.rmtree(folder)
    return 0 if has_held else 1


if __name__ == "__main__":
    sys.exit(main())
