"""Record the runs in tests/journals: real runs of the scenarios there, without facts of a machine.

    python -m tests.record_journals [NAME...]

Verdicts about times depend on the machine and the day: after recording again, check what
test_journals.py expects.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple
from zlib import crc32

from tests.conftest import TUILAB

JOURNALS = Path(__file__).with_name("journals")
_SPIN = "while True: pass"


class Recipe(NamedTuple):
    """How a run is made."""

    source: str
    options: tuple[str, ...] = ()
    spinners: int = 0  # busy processes next to the run
    has_gpu: bool = False  # a GPU of the fake NVML


RECIPES = {
    "tour": Recipe("tour", ("--repeat", "6"), has_gpu=True),
    "identical-arms-under-load": Recipe("identical", ("--repeat", "6"), spinners=2),
    "drift-in-the-second-half": Recipe("simulated", ("--repeat", "8", "--box", "drift")),
    "outliers": Recipe("simulated", ("--repeat", "8", "--box", "outliers")),
    "bimodal-processes": Recipe("simulated", ("--repeat", "8", "--box", "modes")),
    "computes-something-else": Recipe("other", ("--quick",)),
    "crash-in-the-third-repeat": Recipe("crash", ("--repeat", "6")),
    "not-a-number": Recipe("numbers", ("--quick",)),
    "two-repeats": Recipe("identical", ("--repeat", "2")),
}


def record(name: str, recipe: Recipe) -> None:
    """Run a scenario and keep what it recorded."""
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        environment = dict(os.environ)
        if recipe.has_gpu:
            environment |= _fake_gpu(Path(folder))
        for _ in range(recipe.spinners):
            spinner = subprocess.Popen([sys.executable, "-c", _SPIN])
            stack.callback(spinner.wait)
            stack.callback(spinner.kill)
        source = str(JOURNALS / f"{recipe.source}.py")
        options = ["--headless", "--quiet", "--root", folder, *recipe.options]
        command = [TUILAB, "run", source, *options]
        subprocess.run(command, env=environment, stdout=subprocess.DEVNULL)
        (journal,) = Path(folder).glob("*/journal")
        _keep(journal.parent, name, recipe)


def _fake_gpu(folder: Path) -> dict[str, str]:
    """Build the fake NVML with one throttled GPU. Return the variables with which it is used."""
    library = folder / "libnvidia-ml.so.1"
    source = JOURNALS.parent / "fakes" / "nvml.c"
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", library, source], check=True)
    switches = folder / "nvml.txt"
    lines = ["gpus=1", "name=Fake H100", "used=3000000000", "total=80000000000", "throttle=0x4"]
    switches.write_text("".join(f"{line}\n" for line in lines))
    return {"LD_LIBRARY_PATH": str(folder), "TUILAB_FAKE_NVML": str(switches)}


def _keep(run_dir: Path, name: str, recipe: Recipe) -> None:
    """Copy a run to tests/journals, without facts of this machine."""
    target = JOURNALS / name
    shutil.rmtree(target, ignore_errors=True)
    (target / "journal").mkdir(parents=True)
    shutil.copy(run_dir / "scenario.py", target)
    streams = {path.name: _read(path) for path in sorted((run_dir / "journal").glob("*.jsonl"))}
    times = []
    for records in streams.values():
        times += [fields["t"] for fields in records]
    began_ns = min(times) - 1_000_000_000
    for stream, records in streams.items():
        lines = []
        for fields in records:
            clean = _clean(fields, run_dir, name, recipe)
            clean["t"] -= began_ns
            lines.append(_line(clean))
        (target / "journal" / stream).write_bytes(b"".join(lines))


def _read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line[9:]) for line in path.read_bytes().splitlines()]


def _line(fields: dict[str, Any]) -> bytes:
    body = json.dumps(fields, separators=(",", ":"), ensure_ascii=False).encode()
    return b"%08x %b\n" % (crc32(body), body)


def _clean(fields: dict[str, Any], run_dir: Path, name: str, recipe: Recipe) -> dict[str, Any]:
    """Remove the facts of this machine from a record."""
    text = json.dumps(fields, ensure_ascii=False)
    text = text.replace(str(run_dir), "RUN").replace(run_dir.name, name)
    text = text.replace(str(JOURNALS.parent.parent), "HERE").replace(sys.prefix, "VENV")
    clean: dict[str, Any] = json.loads(text)
    kind = clean["k"]
    if kind == "run_started":
        clean["run"] = name
        clean["scenario"] = name
        clean["topic"] = "journals"
        clean["argv"] = ["run", name, *recipe.options]
        clean["supervisor"] = {"host": "box", "boot": "boot", "pid": 1, "start": 1}
        clean["wall_ns"] = 1_800_000_000_000_000_000
    elif kind == "worker_started":
        clean["pid"] = 100
        clean["start"] = 100
    elif kind == "environment_recorded" and clean["part"] == "box":
        clean["facts"] = _BOX
    elif kind == "environment_recorded" and clean["part"] == "torch":
        clean["facts"] = {"version": clean["facts"]["version"], "threads": 2}
    return clean


_BOX = {
    "cpu": {"model": "a CPU", "logical": 2, "physical": 1},
    "numa": {"nodes": {"0": {"cpus": "0-1"}}, "allowed_nodes": [0]},
    "env": {"python": "3.11.7", "host": "box", "kernel": "6.1", "machine": "x86_64"},
}

if __name__ == "__main__":
    for chosen in sys.argv[1:] or RECIPES:
        record(chosen, RECIPES[chosen])
