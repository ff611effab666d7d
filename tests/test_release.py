"""A release, as docs/releasing.md has its steps: built, installed outside the checkout, tried, and put over an older one."""

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.conftest import CHECKOUT
from tests.documents import blocks_of
from tuilab import __version__

WHOLE, UPGRADE = [
    block.text for block in blocks_of(CHECKOUT / "docs" / "releasing.md") if block.language == "sh"
]
BEFORE = "313d58310e9f18688df880fd27c600f059f1421c"  # before the modules stood in rooms; no version has a tag yet


def test_a_wheel_brings_the_scenarios_as_data_of_tuilab_and_its_types(tmp_path: Path) -> None:
    """Unpacked into an empty folder it lists the same scenarios, found inside the package."""
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)],
        cwd=CHECKOUT,
        check=True,
    )
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "site")
    code = (
        "from tuilab.catalogue import catalog; print(*(s.path for s in catalog.load()), sep='\\n')"
    )

    listed = subprocess.run(
        [sys.executable, "-P", "-c", code], capture_output=True, text=True, cwd=tmp_path, check=True,
        env={**os.environ, "PYTHONPATH": str(tmp_path / "site"), "XDG_CACHE_HOME": str(tmp_path / "cache")},
    ).stdout.splitlines()  # fmt: skip

    ours = sorted(path.name for path in (CHECKOUT / "scenarios").rglob("*.py"))
    assert sorted(Path(path).name for path in listed) == ours
    assert all(path.startswith(str(tmp_path / "site" / "tuilab" / "_scenarios")) for path in listed)
    assert not (tmp_path / "site" / "scenarios").exists()
    assert (tmp_path / "site" / "tuilab" / "py.typed").exists()
    assert wheel.name == f"tuilab-{__version__}-py3-none-any.whl"


def type_in(steps: str, folder: Path, **more: str) -> str:
    """Type the steps in the checkout and return what they print.

    What tuilab depends on is borrowed from the environment of the tests, and not installed again: torch alone is gigabytes.
    """
    borrowed = [path for path in sys.path if path.endswith("site-packages")]
    environment = {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "TMPDIR": str(folder),
        "LANG": "C.UTF-8",
        "PYTHONPATH": os.pathsep.join(borrowed),
        "PIP_NO_DEPS": "1",
        "PIP_NO_INDEX": "1",
        "PIP_FORCE_REINSTALL": "1",  # one version of tuilab stands in what is borrowed, and has the same number
    }
    shell = ["bash", "-euo", "pipefail", "-c", steps]
    done = subprocess.run(
        shell,
        cwd=CHECKOUT,
        env=environment | more,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=400,
    )
    assert (done.returncode, "Traceback" in done.stdout + done.stderr) == (0, False), (
        done.stdout + done.stderr
    )
    return done.stdout


@pytest.mark.tools
@pytest.mark.timeout(420)
def test_what_is_built_runs_outside_the_checkout(tmp_path: Path) -> None:
    printed = type_in(WHOLE, tmp_path)

    (out,) = tmp_path.glob("tmp.*")  # torch may have a folder of its own beside it
    (installed,) = (out / "bare").glob("lib/python3*/site-packages/tuilab")
    assert f"{installed}/__init__.py\ntuilab {__version__}\n" in printed
    assert "stability/xyy " in printed
    scenarios = list((CHECKOUT / "scenarios" / "stability").glob("*.py"))
    assert f"{len(scenarios)} runs, " in printed
    assert "complete and unchanged" in printed
    assert (out / "run.html").stat().st_size > 10_000


@pytest.mark.tools
@pytest.mark.timeout(420)
def test_an_upgrade_reads_what_the_version_before_left(tmp_path: Path) -> None:
    if (
        shutil.which("git") is None
        or subprocess.run(["git", "cat-file", "-e", BEFORE], cwd=CHECKOUT).returncode
    ):
        pytest.skip("the version before is not in this checkout's history")

    printed = type_in(UPGRADE, tmp_path, OLD=BEFORE)

    (out,) = tmp_path.glob("tmp.*")  # torch may have a folder of its own beside it
    told = {
        name: (out / f"{name}.txt").read_text()
        for name in ("runs-before", "runs-after", "list-before", "list-after")
    }
    (run,) = (out / "home" / "my-runs").glob("*-xyy-*")
    assert [
        *out.glob("box/lib/python3*/site-packages/tuilab/py.typed")
    ]  # which the version before had not
    assert told["runs-after"].splitlines()[0] == told["runs-before"].splitlines()[0]
    assert "from the version before" in told["runs-after"]
    assert "✓ xyy" in told["list-before"] and "✓ xyy" in told["list-after"]
    assert f"{run}\n" in printed and "\ncomplete and unchanged\n" in printed
    assert (out / "run.html").stat().st_size > 10_000
