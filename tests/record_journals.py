"""Records the runs in tests/journals: real runs of the scenarios there, without what tells one box from another.

    python -m tests.record_journals [NAME...]

Verdicts about times are what the box said on that day: after recording again, look at what test_journals.py expects.
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
    spinners: int = 0  # busy processes beside it
    has_gpu: bool = False  # a made-up one, through the fake NVML


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
        environment = {**os.environ, **(_fake_gpu(Path(folder)) if recipe.has_gpu else {})}
        for _ in range(recipe.spinners):
            spinner = subprocess.Popen([sys.executable, "-c", _SPIN])
            stack.callback(spinner.wait)
            stack.callback(spinner.kill)
        source = JOURNALS / f"{recipe.source}.py"
        command = [
            TUILAB,
            "run",
            str(source),
            "--headless",
            "--quiet",
            "--root",
            folder,
            *recipe.options,
        ]
        subprocess.run(command, env=environment, stdout=subprocess.DEVNULL)
        (run_dir,) = (path for path in Path(folder).iterdir() if (path / "journal").is_dir())
        _keep(run_dir, name, recipe)


def _fake_gpu(folder: Path) -> dict[str, str]:
    library = folder / "libnvidia-ml.so.1"
    subprocess.run(
        ["gcc", "-shared", "-fPIC", "-o", str(library), str(JOURNALS.parent / "fakes" / "nvml.c")],
        check=True,
    )
    switches = folder / "nvml.txt"
    switches.write_text(
        "gpus=1\nname=Fake H100\nused=3000000000\ntotal=80000000000\nthrottle=0x4\n"
    )
    return {"LD_LIBRARY_PATH": str(folder), "TUILAB_FAKE_NVML": str(switches)}


def _keep(run_dir: Path, name: str, recipe: Recipe) -> None:
    kept = JOURNALS / name
    shutil.rmtree(kept, ignore_errors=True)
    (kept / "journal").mkdir(parents=True)
    shutil.copy(run_dir / "scenario.py", kept)
    streams = {path.name: _read(path) for path in sorted((run_dir / "journal").glob("*.jsonl"))}
    began = min(fields["t"] for records in streams.values() for fields in records) - 1_000_000_000
    for stream, records in streams.items():
        lines = [_clean(fields, run_dir, name, recipe, began) for fields in records]
        (kept / "journal" / stream).write_bytes(b"".join(_line(fields) for fields in lines))


def _read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line[9:]) for line in path.read_bytes().splitlines()]


def _line(fields: dict[str, Any]) -> bytes:
    body = json.dumps(fields, separators=(",", ":"), ensure_ascii=False).encode()
    return b"%08x %b\n" % (crc32(body), body)


def _clean(
    fields: dict[str, Any], run_dir: Path, name: str, recipe: Recipe, began: int
) -> dict[str, Any]:
    """Take out of a record what belongs to the box that it was made on."""
    words = json.dumps(fields, ensure_ascii=False)
    for path, word in (
        (run_dir, "RUN"),
        (run_dir.name, name),
        (JOURNALS.parent.parent, "HERE"),
        (sys.prefix, "VENV"),
    ):
        words = words.replace(str(path), str(word))
    found: dict[str, Any] = json.loads(words)
    found["t"] -= began
    kind = found["k"]
    if kind == "run_started":
        found |= {
            "run": name,
            "scenario": name,
            "topic": "journals",
            "argv": ["run", name, *recipe.options],
        }
        found |= {
            "supervisor": {"host": "box", "boot": "boot", "pid": 1, "start": 1},
            "wall_ns": 1_800_000_000_000_000_000,
        }
    elif kind == "worker_started":
        found |= {"pid": 100, "start": 100}
    elif kind == "environment_recorded" and found["part"] in ("box", "torch"):
        found["facts"] = (
            {"version": found["facts"]["version"], "threads": 2}
            if found["part"] == "torch"
            else _BOX
        )
    return found


_BOX = {
    "cpu": {"model": "a CPU", "logical": 2, "physical": 1},
    "numa": {"nodes": {"0": {"cpus": "0-1"}}, "allowed_nodes": [0]},
    "env": {"python": "3.11.7", "host": "box", "kernel": "6.1", "machine": "x86_64"},
}

if __name__ == "__main__":
    for chosen in sys.argv[1:] or RECIPES:
        record(chosen, RECIPES[chosen])
