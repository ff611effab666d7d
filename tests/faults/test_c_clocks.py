"""The clock on the wall jumps: a run lasts as long as it did, in the order in which it happened."""

import subprocess
from pathlib import Path

import pytest

from tests.conftest import CHECKOUT
from tests.engine import look, write_scenario
from tests.fakes.compiled import compile_library
from tests.faults.gates import STEPS, gates, reaches
from tests.faults.oracle import check, is_well
from tests.faults.sites import Site, latest

pytestmark = pytest.mark.faults


@pytest.fixture
def wall(site: Site) -> Path:
    """A file that says by how many seconds the wall clock of all that the site starts is off."""
    library, file = site.folder / "wall.so", site.folder / "wall"
    source = CHECKOUT / "tests" / "fakes" / "wall_clock.c"
    compile_library(source, library, lack="another clock cannot be built")
    file.write_text("0")
    site.environment |= {"LD_PRELOAD": str(library), "TUILAB_WALL": str(file)}
    return file


@pytest.mark.parametrize("jump", ["-3600", "86400"], ids=["an hour back", "a day ahead"])
def test_49_a_wall_clock_that_jumps_changes_no_order_no_length_and_no_state(
    site: Site, wall: Path, jump: str
) -> None:
    body = """
lab.log(0, half=0.0)
lab.stage("before")
wait_for("jump")
lab.stage("after")
lab.log(1, half=0.5)
"""
    at = gates(site)
    front = site.start(
        "run",
        str(write_scenario(site.folder, body, STEPS)),
        "--headless",
        "--quiet",
        "--timeout",
        "100",
    )
    reaches(at, "jump")
    wall.write_text(jump)
    listed = site.run("runs")
    state = look(latest(site)).state
    (at / "jump").touch()
    out, err = front.communicate(timeout=60)
    wall.write_text("0")

    summary = check(site, latest(site), "succeeded").summary
    assert (
        is_well(subprocess.CompletedProcess([], front.returncode, out, err))
        and front.returncode == 0
    )
    assert is_well(listed) and "running" in listed.stdout and state == "running"
    assert [stage.name for stage in summary.stages] == ["before", "after"]
    assert 0 < summary.elapsed_s < 100
    assert site.run("runs", "--since", "yesterday").returncode == 0
