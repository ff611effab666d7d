"""Run `tuilab tune` on scripts with one planted slowness each, and show what it found.

The scripts are those of `tests/tune_scripts`. The value of a script is 1 if a treatment that
removes its slowness has one of the outcomes in FOUND, else 0. Scripts for a GPU run on the model of
a GPU in `tests/fakes/timed_gpu.py`. The last row says how many scripts were found.
"""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.pairs import Missing, Row
from benchmarks.processes import CHECKOUT, PYTHON, find_program, run_command
from tests.fakes import cuda_values
from tests.tune_scripts import SLOW_SCRIPTS, SlowScript

FULL = {"budget": 360, "scripts": len(SLOW_SCRIPTS)}  # seconds for each script
TINY = {"budget": 60, "scripts": 1}
ENDS_WITH = (0, 1)  # what the treatments gain does not matter for the exit code
FOUND = ("SUPPORTED", "FASTER BUT LEARNING NOT SHOWN")


def rows(place: Path, *, budget: int, scripts: int) -> Iterator[Row]:
    """Yield the best outcome of each script, and the number of scripts that were found."""
    found_count = 0
    tried_count = 0
    for script in SLOW_SCRIPTS[:scripts]:
        try:
            treatments = tune(script, place, budget)
        except Missing as reason:
            yield Row(script.name, missing=str(reason))
            continue
        tried_count += 1
        best = find_best(script, treatments)
        is_found = best is not None and best["outcome"] in FOUND
        found_count += is_found
        words = describe(best) if best else f"{' and '.join(script.treatments)} not planned"
        yield Row(script.name, words, [int(is_found)])
        for other in treatments:
            if other["outcome"] in FOUND and other["name"] not in script.treatments:
                yield Row(f"{script.name}, besides", describe(other), [1])
    yield Row("found", f"of {tried_count} scripts", [found_count])


def tune(script: SlowScript, place: Path, budget: int) -> list[dict[str, Any]]:
    """Return the treatments of a script, with their outcomes."""
    check_processor(script)
    options = ["--budget", f"{budget}s", "--yes", "--json", "--quiet"]
    command = [find_program("tuilab"), "tune", *options, "--", *start_words(script, place)]
    variables = {"PYTHONPATH": str(CHECKOUT)} if script.needs_gpu else {}  # for `tests`
    document = json.loads(run_command(command, place, variables, ends_with=ENDS_WITH))
    (run,) = document["runs"]
    tuning = run.get("tuning") or {"treatments": []}  # nothing is planned if the script fails
    treatments: list[dict[str, Any]] = tuning["treatments"]
    return treatments


def check_processor(script: SlowScript) -> None:
    """Raise Missing if the slowness of a script does not exist on this machine."""
    if not script.processor_flag:
        return
    cpuinfo = Path("/proc/cpuinfo")
    flags = cpuinfo.read_text().split() if cpuinfo.exists() else []
    if script.processor_flag not in flags:
        raise Missing(f"the processor has no {script.processor_flag}")


def start_words(script: SlowScript, place: Path) -> list[str]:
    """Return the words of the command that starts a script."""
    words = [str(script.path), "--steps", "100000"]
    if script.needs_gpu:
        return [PYTHON, "-m", "tests.fakes.timed_gpu", str(model_of_gpu(place)), *words]
    if script.ranks > 1:
        ranks = str(script.ranks)
        return [PYTHON, "-m", "torch.distributed.run", "--nproc-per-node", ranks, *words]
    return [PYTHON, *words]


def model_of_gpu(place: Path) -> Path:
    """Return the compiled model of a GPU; the first call compiles it."""
    library = place / "gpu.so"
    if shutil.which("g++") is None:
        raise Missing("no g++: the model of a GPU is in C++")
    if not library.exists():
        cuda_values.build(library)
    return library


def find_best(script: SlowScript, treatments: list[dict[str, Any]]) -> dict[str, Any] | None:
    """Return the treatment that removes the slowness; a found one comes first."""
    removing = [item for item in treatments if item["name"] in script.treatments]
    for treatment in removing:
        if treatment["outcome"] in FOUND:
            return treatment
    return removing[0] if removing else None


def describe(treatment: dict[str, Any]) -> str:
    """Return the outcome of a treatment, with its gain."""
    words = f"{treatment['arm']}: {treatment['outcome']}"
    ratio = treatment["ratio"]
    if ratio is not None and ratio["estimate"] is not None:
        return f"{words}, {ratio['estimate']:.3g}x [{ratio['low']:.3g}, {ratio['high']:.3g}]"
    if treatment["tried_ratio"] is not None:
        return f"{words}, {treatment['tried_ratio']:.3g}x in one process"
    return words
