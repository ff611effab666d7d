"""The place that is soaked: a folder of runs, a scenario that notes what it logged, and the moments of a run."""

import random
import re
import signal
from dataclasses import dataclass, field
from pathlib import Path

from tests.engine import look, until, write_scenario
from tests.faults.oracle import view
from tests.faults.sites import Site
from tests.faults.victims import child_of, supervisor_of
from tuilab.engine import processes

STEPS = 120  # a run logs so many, about a tenth of a second of them
# It notes each record once the lab has taken it, does what the fault asks for at one of them, and waits at gates.
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
    """A run that a fault left, the states that it may be in, and whether its record is whole; None: it may be either."""

    run_dir: Path
    states: tuple[str, ...]
    is_whole: bool | None = True


@dataclass
class Place:
    """One folder of runs and the chance of the present step."""

    site: Site
    has_own_shared_memory: bool = False
    chance: random.Random = field(default_factory=random.Random)

    def folder(self, name: str) -> Path:
        found = self.site.folder / name
        found.mkdir(exist_ok=True, mode=0o700)
        return found

    def scenario(
        self,
        act: str = "pass",
        more: str = "",
        end: str = "",
        name: str = "soaked",
        at: int | None = None,
    ) -> Path:
        """Write a scenario that does something at one of its steps."""
        where = self.chance.randrange(STEPS) if at is None else at
        lines = "\n".join("        " + line for line in act.strip().splitlines())
        made = {
            "notes": str(self.folder("notes")),
            "gates": str(self.folder("gates")),
            "steps": STEPS,
            "at": where,
        }
        body = BODY.format(**made, act=lines, end=end or CLAIM.format(last=STEPS - 1))
        return write_scenario(self.folder("mine"), body, more, name)

    def begin(self, path: Path, *words: str) -> Path:
        """Start a run that has no front, from this process, and return its folder."""
        (run_dir,) = self.begin_all(path, words=words)
        return run_dir

    def begin_all(self, *paths: Path, words: tuple[str, ...] = ()) -> list[Path]:
        code, text = view("run", *map(str, paths), "--detach", *words)
        assert code == 0, text
        ids = re.findall("^[0-9a-f]{6}$", text, re.MULTILINE)
        assert len(ids) == len(paths), text
        return [next(self.site.root.glob(f"*-{id}")) for id in ids]

    def logged(self, run_dir: Path) -> int:
        """Return how many records the scenario of a run has noted."""
        note = self.site.folder / "notes" / run_dir.name
        return int.from_bytes(note.read_bytes(), "little") if note.exists() else 0

    def wait_for_moment(self, run_dir: Path) -> None:
        """Wait for a moment of a run, drawn from all of its life: when it is made, starts, logs, or is being judged."""
        count = self.chance.choice(
            [-1, 0, 1, self.chance.randrange(STEPS), self.chance.randrange(STEPS), STEPS]
        )
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
        """Send a signal to the processes of a run that a module of ours is: none, when it is not there any more."""
        pid, _ = supervisor_of(run_dir)
        for child in list(child_of(pid, module)):
            processes.send(*child, number)

    def clean(self) -> None:
        """Forget the notes and gates of the steps before, and the fronts, which have ended."""
        for name in ("notes", "gates", "mine"):
            for path in self.folder(name).iterdir():
                if path.is_file():
                    path.unlink()
        self.site.started.clear()
