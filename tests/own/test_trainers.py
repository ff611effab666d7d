"""Scripts as other people write them, under `tuilab exec`: what is seen of each, and that each ends as it does by itself."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any, NamedTuple

import pytest

from tests.conftest import CHECKOUT, TESTS
from tuilab.commands.step_parts import BACKWARD, DATA, OPTIMIZER

pytestmark = [pytest.mark.own, pytest.mark.real_torch, pytest.mark.timeout(300)]

Tuilab = Callable[..., CompletedProcess[str]]
VALUE = 8  # column of the values in a table


class Seen(NamedTuple):
    """What came of a run: its document, and how it ended."""

    run: dict[str, Any]
    done: CompletedProcess[str]

    def curves(self) -> dict[str, int]:
        """Return the points of each curve."""
        found: dict[str, int] = {}
        for series in self.run["series"]:
            found[series["name"]] = found.get(series["name"], 0) + series["count"]
        return found

    @property
    def told(self) -> str:
        return "\n".join(text["text"] for text in self.run["texts"])


def needs(*libraries: str) -> pytest.MarkDecorator:
    missing = [name for name in libraries if find_spec(name) is None]
    return pytest.mark.skipif(
        bool(missing), reason=f"not installed: {', '.join(missing)} (pip install -e '.[own]')"
    )


def watched(
    tuilab: Tuilab,
    script: str,
    *words: str,
    options: tuple[str, ...] = (),
    prefix: tuple[str, ...] = (),
) -> Seen:
    """Run one of tests/trainers, or a path below the checkout, under the lab."""
    path = CHECKOUT / script if "/" in script else TESTS / "trainers" / f"{script}.py"
    done = tuilab("exec", *options, "--json", "--", sys.executable, *prefix, str(path), *words)
    (run,) = json.loads(done.stdout)["runs"]
    return Seen(run, done)


def by_itself(script: str, *words: str) -> CompletedProcess[str]:
    """Run one without the lab."""
    return subprocess.run(
        [sys.executable, str(TESTS / "trainers" / f"{script}.py"), *words],
        capture_output=True,
        text=True,
    )


@pytest.mark.parametrize(
    ("script", "library", "steps", "curves"),
    [
        ("hf_trainer", "transformers", 30, {"backward root", "loss (transformers)"}),
        ("accelerate_loop", "accelerate", 40, {"backward root"}),
        ("timm_loop", "timm", 30, {"backward root"}),
    ],
)
def test_a_trainer_of_a_library_is_seen(
    tuilab: Tuilab, script: str, library: str, steps: int, curves: set[str]
) -> None:
    if find_spec(library) is None:
        pytest.skip(f"not installed: {library} (pip install -e '.[own]')")
    seen = watched(tuilab, script)

    assert (seen.done.returncode, seen.run["state"]) == (0, "succeeded")
    assert seen.curves()["backward root"] == steps
    assert curves <= seen.curves().keys()
    assert "a step takes" in seen.told


@needs("lightning")
def timed_steps(steps: int) -> int:
    """Return how many steps have a time.

    The first one has none, and neither have steps 5 and 47, which are counted, and those after them.
    """
    without_time = {0, 5, 6, 47, 48}
    return len(set(range(steps)) - without_time)


def test_what_lightning_logs_is_a_curve_with_its_source(tuilab: Tuilab) -> None:
    seen = watched(tuilab, "examples/train_lightning.py")

    assert seen.done.returncode == 0
    assert {name.rpartition(" (")[2] for name in seen.curves() if "(" in name} >= {"lightning)"}
    assert (
        seen.curves()["step_ms"]
        == seen.curves()["forward_ms"]
        == timed_steps(seen.curves()["backward root"])
    )


@pytest.mark.parametrize("script", ["examples/train_cnn.py", "examples/train_gpt.py"])
def test_the_examples_are_seen(tuilab: Tuilab, script: str) -> None:
    seen = watched(tuilab, script, "--steps", "40")

    assert seen.done.returncode == 0
    assert seen.curves()["backward root"] == 40
    assert seen.told.startswith("a step takes ")


COMMANDS = re.findall(
    r"(?m)^(?:tuilab|python) .*$", (CHECKOUT / "examples" / "README.md").read_text()
)


@pytest.mark.parametrize("line", COMMANDS)
def test_what_the_page_of_the_examples_says_can_be_typed(
    line: str, root: Path, tmp_path: Path
) -> None:
    if "lightning" in line and find_spec("lightning") is None:
        pytest.skip("not installed: lightning (pip install -e '.[own]')")
    (tmp_path / "examples").symlink_to(CHECKOUT / "examples")
    few = "" if "--help" in line else " --steps 20"
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = subprocess.run(
        f"{line}{few}", shell=True, cwd=tmp_path, env={**os.environ, "PATH": path, "TUILAB_ROOT": str(root)},
        capture_output=True, text=True, stdin=subprocess.DEVNULL,
    )  # fmt: skip

    assert done.returncode == 0 or (line.startswith("tuilab ab") and done.returncode == 1), (
        done.stdout + done.stderr
    )


def test_each_of_two_ranks_has_its_lane(tuilab: Tuilab) -> None:
    run = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")
    seen = watched(tuilab, "ddp_gloo", prefix=run)

    lanes = {
        series["arm"]: series["count"]
        for series in seen.run["series"]
        if series["name"] == "backward root"
    }
    assert seen.done.returncode == 0, seen.done.stderr
    assert lanes == {"rank 0": 40, "rank 1": 40}
    texts = {text["title"]: text["text"] for text in seen.run["texts"]}
    assert "exchange that no computation hides: " in texts["rank 0"]
    assert "backward ends last" in texts["all ranks"]


@pytest.mark.parametrize(
    ("script", "steps", "told"),
    [
        ("gan", 20, "3 optimizer steps (2 optimizers; a step ends with Adam"),
        ("lbfgs", 20, "1 optimizer step and 5 backwards a step"),
        ("amp_scaler", 30, "GradScaler skipped 2 of 30 optimizer steps"),
        ("fork_loader", 40, "1 optimizer step and 1 backward a step"),
        ("spawn_loader", 40, "1 optimizer step and 1 backward a step"),
        ("reexec", None, "1 optimizer step and 1 backward a step"),
    ],
)
def test_steps_are_told_as_they_are(
    tuilab: Tuilab, script: str, steps: int | None, told: str
) -> None:
    seen = watched(tuilab, script)

    assert seen.done.returncode == 0, seen.done.stderr
    assert told in seen.told
    if steps is not None:
        assert seen.curves()["step_ms"] == timed_steps(steps)


@pytest.mark.parametrize("words", [("--backend", "eager"), ("--backend", "eager", "--step")])
def test_a_compiled_step_is_seen_or_said_not_to_be(tuilab: Tuilab, words: tuple[str, ...]) -> None:
    seen = watched(tuilab, "compiled_step", *words)

    assert seen.done.returncode == 0
    assert "a step" in seen.told
    assert seen.curves()["backward root"] > 0


@pytest.mark.parametrize(
    ("words", "code"), [(("--by", "exit"), 3), (("--by", "kill"), 137), (("--by", "abort"), 134)]
)
def test_nothing_is_lost_however_a_trainer_goes(
    tuilab: Tuilab, words: tuple[str, ...], code: int
) -> None:
    seen = watched(tuilab, "killed", *words, "--after", "25")

    assert seen.done.returncode == code
    assert seen.curves()["backward root"] == 25


@pytest.mark.parametrize("end", ["last", "raise", "term"])
def test_hooks_of_the_script_act_as_by_themselves(tuilab: Tuilab, end: str) -> None:
    seen, alone = watched(tuilab, "own_hooks", "--end", end), by_itself("own_hooks", "--end", end)

    code = alone.returncode if alone.returncode >= 0 else 128 - alone.returncode
    assert seen.done.returncode == code
    assert alone.stdout in seen.done.stderr  # with --json what it prints goes there


def test_parts_are_those_that_the_profiler_of_torch_sees(tuilab: Tuilab, tmp_path: Path) -> None:
    done = tuilab(
        "exec", "--headless", "--", sys.executable, str(TESTS / "trainers" / "profiled.py")
    )
    exported = tuilab("report", "last", "-o", "samples.csv")
    assert done.returncode == exported.returncode == 0

    profiled = json.loads(done.stdout)
    rows = [line.split(",") for line in Path("samples.csv").read_text().splitlines()]
    for part, curve in ((DATA, "data_ms"), (BACKWARD, "backward_ms"), (OPTIMIZER, "optimizer_ms")):
        seen = [float(value) for row in rows if curve in row for value in [row[VALUE]]][-40:]
        assert sum(seen) / len(seen) == pytest.approx(profiled[part], rel=0.15)
