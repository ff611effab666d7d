"""The site of a fault: a folder of runs with its processes, and a bystander that must get no signal."""

import contextlib
import os
import signal
import subprocess
import sys
import uuid
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.conftest import TUILAB
from tests.engine import newest, until, wait_for_stage
from tuilab.catalogue import catalog
from tuilab.engine import launch, messages, processes
from tuilab.record import presence

# It prints which signals it gets. After a SIGKILL it has ended.
BYSTANDER = """
import signal, sys
signals = {signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCONT, signal.SIGUSR1, signal.SIGUSR2, signal.SIGQUIT}
signal.pthread_sigmask(signal.SIG_BLOCK, signals)
print("ready", flush=True)
while True:
    print(signal.sigwait(signals).name, flush=True)
"""


@dataclass
class Site:
    """A folder of runs of its own, a command line in it, and an innocent bystander."""

    folder: Path
    environment: dict[str, str]
    bystander: "subprocess.Popen[str]"
    bystander_says: Path
    started: "list[subprocess.Popen[Any]]" = field(default_factory=list)

    @property
    def root(self) -> Path:
        return self.folder / "runs"

    def start(
        self, *words: str, command: "list[str] | None" = None, **more: Any
    ) -> "subprocess.Popen[str]":
        """Start `tuilab ...` and return it while it runs."""
        options: dict[str, Any] = {
            "stdin": subprocess.DEVNULL,
            "stdout": subprocess.PIPE,
            "stderr": subprocess.PIPE,
            "text": True,
        }
        environment = {**self.environment, **more.pop("env", {})}
        options.update(more)
        if command is None:
            command = [TUILAB]
        front = subprocess.Popen([*command, *words], env=environment, **options)
        self.started.append(front)
        return front

    def run(
        self, *words: str, timeout: float = 100, **more: Any
    ) -> "subprocess.CompletedProcess[str]":
        """Run `tuilab ...` to its end."""
        front = self.start(*words, **more)
        out, err = front.communicate(timeout=timeout)
        return subprocess.CompletedProcess(front.args, front.returncode, out, err)

    def detach(self, path: Path, *words: str, **more: Any) -> Path:
        """Start a run without a client, and return its folder."""
        done = self.run("run", str(path), "--detach", *words, **more)
        assert done.returncode == 0, done.stderr
        run_id = done.stdout.strip()
        return next(run for run in self.root.iterdir() if run.name.endswith(run_id))

    def living(self) -> dict[int, int]:
        """Return the processes of this site except its clients and the bystander: pid -> start time."""
        pids = carrying(self.environment["TUILAB_SITE"])
        for front in self.started:
            pids.pop(front.pid, None)
        pids.pop(self.bystander.pid, None)
        pids.pop(os.getpid(), None)
        return pids

    def end(self) -> None:
        """End what a failed test may have left."""
        for front in self.started:
            front.kill()
            front.wait()
            for pipe in (front.stdin, front.stdout, front.stderr):
                if pipe:
                    pipe.close()
        for pid, start in self.living().items():
            processes.send(pid, start, signal.SIGKILL)
        self.bystander.kill()
        self.bystander.wait()


def make_site(folder: Path) -> Site:
    """Make a site. Its processes have a mark in their environment."""
    says = folder / "bystander"
    environment = {key: value for key, value in os.environ.items() if not key.startswith("TUILAB")}
    environment |= {
        "TUILAB_ROOT": str(folder / "runs"),
        "XDG_CACHE_HOME": str(folder / "cache"),
        "TUILAB_SITE": uuid.uuid4().hex,
    }
    marked = {**environment, presence.MARK: "another-run"}
    with says.open("w") as log:
        bystander = subprocess.Popen(
            [sys.executable, "-c", BYSTANDER], env=marked, stdout=log, text=True
        )
    until(lambda: says.read_text() == "ready\n")
    return Site(folder, environment, bystander, says)


def carrying(mark: str) -> dict[int, int]:
    """Return the living processes with the mark of a site in their environment: pid -> start time."""
    processes_of_site = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        pid = int(entry.name)
        start = presence.start_time(pid)
        with contextlib.suppress(OSError):
            if start is not None and mark.encode() in (entry / "environ").read_bytes():
                processes_of_site[pid] = start
    return processes_of_site


def reach_stage(site: Site, name: str) -> Path:
    """Wait until the newest run has entered a stage, and return its folder."""
    return wait_for_stage(site.root, name)


def latest(site: Site) -> Path:
    """Wait for the first run of a site and return its newest."""
    return until(lambda: newest(site.root))


def order_for(site: Site, path: Path) -> bytes:
    """Return what a client writes to the stdin of a supervisor to run a scenario file."""
    (scenario,) = catalog.find(catalog.load([]), str(path))
    return messages.pack(launch.order(scenario, {}, root=site.root)) + b"\n" + messages.GO


def supervise(site: Site, order: bytes, *before: str) -> None:
    """Run a supervisor without a client, with the words `before` in front of its command line."""
    command = [*before, sys.executable, "-P", "-m", "tuilab.engine.supervisor"]
    subprocess.run(
        command, input=order, env=site.environment, capture_output=True, timeout=60, check=False
    )
