"""The soak: `python -m tests.faults.soak --minutes N --seed S` injects faults into hundreds of short runs, one after another.

After each, nothing may be left but its record: no process, descriptor, temporary file, socket or shared memory; and two processes
that live through all of it, the screens and this one, must not grow. What a step does is drawn from the seed and its number. When
something does not hold, it says the seed, the step and what was found, keeps the folder, and exits with 1.
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
# What each step left for good, the 3 MiB of a page or the 100 kB of a run, would be more within ten or 300 steps; what is loaded
# at the first need, such as a format of reports, and what allocators keep has come to half of it.
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
        left = fault(self.place)
        for one in left:
            check_run(self.place, one)
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
        gc.collect()  # which is not done by itself where tests are collected: tests/conftest.py
        subprocess.run(
            ["true"]
        )  # Python takes notice of children that have ended when it starts the next
        for meter in self.meters:
            if self.step == WARM:
                meter.calibrate()
            elif self.step > WARM:
                self.check_meter(meter)

    def check_meter(self, meter: Meter) -> None:
        """Neither descriptors nor ended children nor memory pile up."""
        try:
            until(lambda: meter.count_fds() <= meter.fds and not meter.zombies(), patience_s=10)
        except AssertionError:
            raise AssertionError(
                f"{meter.name}: {meter.fds} descriptors before, now {meter.kinds_of_fds()}, {meter.zombies()} zombies"
            ) from None
        grown = meter.read_rss() - meter.rss
        assert grown < ROOM, f"{meter.name} has grown by {grown / MIB:.1f} MiB since step {WARM}"

    def told(self) -> str:
        """Return a line on where it stands."""
        meters = ", ".join(
            f"{one.name}: {one.read_rss() / MIB:.1f} MiB (was {one.rss / MIB:.1f}), {one.count_fds()} fds"
            for one in self.meters
        )
        return f"step {self.step}, {self.runs} runs; {meters}; " + ", ".join(
            f"{name} {count}" for name, count in sorted(self.counts.items())
        )


def soak(folder: Path, minutes: float, seed: int, has_own_shared_memory: bool) -> bool:
    """Go on for so many minutes; return whether all held."""
    os.environ |= {
        "TMPDIR": str(folder / "tmp"),
        "PYTHONPATH": LIGHT,
        "XDG_STATE_HOME": str(folder / "state"),
    }
    (folder / "tmp").mkdir()
    site = make_site(folder)
    os.environ |= site.environment  # for what is started from this process
    os.chdir(folder)
    print(f"seed {seed}, in {folder}", flush=True)
    screens = open_screens(site)
    it = Soak(seed, Place(site, has_own_shared_memory), screens)
    began = told = time.monotonic()
    try:
        while time.monotonic() - began < minutes * 60:
            it.go_on()
            if time.monotonic() - told >= 60:
                told += 60
                print(f"minute {(told - began) / 60:.0f}: {it.told()}", flush=True)
        print(f"all held: seed {seed}, {it.told()}", flush=True)
        return True
    except Exception:
        print(
            f"{traceback.format_exc()}\nFAILED: seed {seed}, step {it.step}, {it.fault}; {it.told()}\nkept: {folder}",
            flush=True,
        )
        return False
    finally:
        screens.close()
        site.end()


def take_own_mounts() -> bool:
    """Keep disks that are mounted to this process and what it starts, with a /dev/shm of its own; return whether that may be."""
    if os.getuid() != 0 or ctypes.CDLL(None).unshare(_OWN_MOUNTS):
        return False
    commands = (
        ["mount", "--make-rprivate", "/"],
        ["mount", "-t", "tmpfs", "-o", "mode=1777", "none", "/dev/shm"],
    )
    return all(subprocess.run(command).returncode == 0 for command in commands)


def _let_others_hear() -> None:
    """Have what is started here hear a Ctrl-C and the end of its terminal, also where nohup or a shell's `&` keeps them from us."""
    for number in (signal.SIGHUP, signal.SIGINT):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, lambda *_: None)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, required=True)
    parser.add_argument("--seed", type=int, required=True)
    asked = parser.parse_args()
    _let_others_hear()
    has_own_shared_memory = take_own_mounts()
    folder = Path(tempfile.mkdtemp(prefix="tuilab-soak-"))
    has_held = soak(folder, asked.minutes, asked.seed, has_own_shared_memory)
    if has_held:
        shutil.rmtree(folder)
    return 0 if has_held else 1


if __name__ == "__main__":
    sys.exit(main())
