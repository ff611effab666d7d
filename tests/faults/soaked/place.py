"""The place of the soak test: a folder of runs, and a scenario that notes what it has logged."""

import random
import re
import signal
import textwrap
from dataclasses import dataclass, field
from pathlib import Path

from tests.engine import look, until, write_scenario
from tests.faults.oracle import view
from tests.faults.sites import Site
from tests.faults.victims import child_of, supervisor_of
from tuilab.engine import processes

STEPS = 120  # of a run; they take about 0.1 s
# The scenario notes each step once the lab has taken its record. At one step it runs `act`.
BODY = """
note = os.open(os.path.join({notes!r}, os.environ["TUILAB_RUN"]), os.O_WRONLY | os.O_CREAT, 0o600)
def wait_for(name):
    open(os.path.join({gates!r}, os.environ["TUILAB_RUN"] + ".at." + name), "w").close()
    while not os.path.exists(os.path.join({gates!r}, name)): time.sleep(0.005)
for step in range({steps}):
    if step == {steps} // 2: lab.stage("half way")
    lab.log(step, half=step / 2)
    os.pwrite(note, (step + 1).to_bytes(8, "little"), 0)
    if step == {at}:
{act}
    time.sleep(0.001)
os.close(note)
{end}
"""
CLAIM = 'lab.claim("it-logged-all", step, equals={last})'
HOLDS = 'wait_for("go")'


@dataclass
class ExpectedRun:
    """A run after a fault, and the states that it may have.

    `is_whole` is whether its record is complete; None means that both are correct.
    """

    run_dir: Path
    states: tuple[str, ...]
    is_whole: bool | None = True


@dataclass
class Place:
    """One folder of runs, and the random numbers of the present step."""

    site: Site
    has_own_shared_memory: bool = False
    chance: random.Random = field(default_factory=random.Random)

    def folder(self, name: str) -> Path:
        """Return a folder of this place, and make it if it is missing."""
        path = self.site.folder / name
        path.mkdir(exist_ok=True, mode=0o700)
        return path

    def scenario(
        self,
        act: str = "pass",
        more: str = "",
        end: str = "",
        name: str = "soaked",
        at: int | None = None,
    ) -> Path:
        """Write a scenario that does something at one of its steps."""
        if at is None:
            at = self.chance.randrange(STEPS)
        body = BODY.format(
            notes=str(self.folder("notes")),
            gates=str(self.folder("gates")),
            steps=STEPS,
            at=at,
            act=textwrap.indent(act.strip(), "        "),
            end=end or CLAIM.format(last=STEPS - 1),
        )
        return write_scenario(self.folder("mine"), body, more, name)

    def begin(self, path: Path, *words: str) -> Path:
        """Start a run without a client, from this process. Return its folder."""
        (run_dir,) = self.begin_all(path, words=words)
        return run_dir

    def begin_all(self, *paths: Path, words: tuple[str, ...] = ()) -> list[Path]:
        """Start several runs without a client. Return their folders."""
        code, text = view("run", *map(str, paths), "--detach", *words)
        assert code == 0, text
        ids = re.findall("^[0-9a-f]{6}$", text, re.MULTILINE)
        assert len(ids) == len(paths), text
        return [next(self.site.root.glob(f"*-{id}")) for id in ids]

    def logged(self, run_dir: Path) -> int:
        """Return how many records the scenario of a run has noted."""
        note = self.site.folder / "notes" / run_dir.name
        if not note.exists():
            return 0
        return int.from_bytes(note.read_bytes(), "little")

    def wait_for_moment(self, run_dir: Path) -> None:
        """Wait for a random moment of a run: at once, or until it has started, or has logged."""
        some_step = self.chance.randrange(STEPS)
        another_step = self.chance.randrange(STEPS)
        count = self.chance.choice([-1, 0, 1, some_step, another_step, STEPS])
        if count == 0:
            until(lambda: look(run_dir).summary.workers or look(run_dir).summary.is_over)
        elif count > 0:
            until(lambda: self.logged(run_dir) >= count or look(run_dir).summary.is_over)

    def wait_at_gate(self, run_dir: Path, name: str = "go") -> None:
        """Wait until the scenario of a run waits."""
        until(lambda: (self.site.folder / "gates" / f"{run_dir.name}.at.{name}").exists())

    def open_gate(self, name: str = "go") -> None:
        (self.folder("gates") / name).touch()

    def signal_supervisor(self, run_dir: Path, number: int) -> None:
        processes.send(*supervisor_of(run_dir), number)

    def signal_children(self, run_dir: Path, module: str, number: int = signal.SIGKILL) -> None:
        """Send a signal to the processes of a run that run a module of tuilab, if there are any."""
        pid, _ = supervisor_of(run_dir)
        for child in list(child_of(pid, module)):
            processes.send(*child, number)

    def clean(self) -> None:
        """Remove the notes and gates of the steps before. Forget the clients, which have ended."""
        for name in ("notes", "gates", "mine"):
            for path in self.folder(name).iterdir():
                if path.is_file():
                    path.unlink()
        self.site.started.clear()
