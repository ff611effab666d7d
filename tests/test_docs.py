"""The documents: what they show works, and what exists is in them."""

import os
import re
import shlex
import subprocess
import sys
import zipfile
from pathlib import Path

import click
import pytest

from tests.conftest import TUILAB
from tuilab import cli
from tuilab.cli import VERBS
from tuilab.errors import MEANINGS, ExitCode

HERE = Path(__file__).resolve().parent.parent
README = (HERE / "README.md").read_text()
PLUMBING = {"record", "records_written", "close"}  # for the lab's own parts
CONTRIBUTING = (HERE / "CONTRIBUTING.md").read_text()


def tour() -> list[str]:
    """Return the commands of the README's tour."""
    block = README.partition("## A tour")[2].split("```")[1]
    return [re.split(r"\s{2,}", line)[0] for line in block.strip().splitlines()]


@pytest.mark.slow
@pytest.mark.real_torch
def test_the_tour_works_from_its_first_line_to_its_last(tmp_path: Path) -> None:
    """In an empty folder, as a newcomer would type it; only the refuted claims and an unfinished lesson exit with 1."""
    environment = {**os.environ, "TUILAB_ROOT": str(tmp_path / "runs"), "XDG_CACHE_HOME": str(tmp_path / "cache")}

    codes = {}
    for line in tour():
        verb, *words = shlex.split(line)
        assert verb == "tuilab"
        done = subprocess.run([TUILAB, *words], capture_output=True, text=True, cwd=tmp_path, env=environment, timeout=100)
        assert "Traceback" not in done.stdout + done.stderr, done.stderr
        codes[line] = done.returncode

    timed = {line: codes.pop(line) for line in list(codes) if " row-reduce " in line}
    assert set(timed.values()) <= {0, 1}, timed  # what a claim about time comes to is the box's affair
    assert codes.pop("tuilab doctor") in (0, 1, 2)  # so is how the box is
    needs_terminal = {"tuilab": 2, "tuilab replay last": 2}  # shown in a terminal by tests/tui
    assert {line: code for line, code in codes.items() if code} == {
        "tuilab run softmax --tied 1000 --headless": 1,
        **needs_terminal,
    }


def test_the_readme_shows_every_verb() -> None:
    assert [verb for verb in VERBS if f"tuilab {verb}" not in README] == []


def test_the_readme_lists_every_exit_code_in_the_words_of_the_help() -> None:
    listed = README.partition("**Exit codes**")[2].replace("`", "")
    shown = cli.tuilab.get_help(click.Context(cli.tuilab, info_name="tuilab"))
    helped = " ".join(shown.partition("Exit codes:\n")[2].split())

    assert {int(code): when for code, when in re.findall(r"(?m)^\| ([0-9]+) \| (.+) \|$", listed)} == MEANINGS
    assert helped == " ".join(f"{code} {when}" for code, when in MEANINGS.items())
    assert set(MEANINGS) == set(ExitCode)


def test_the_readme_names_every_module() -> None:
    tree = README.partition("## Where to change a thing")[2]
    named = set(re.findall(r"\w+", tree))
    modules = {path for path in (HERE / "tuilab").rglob("*.py") if path.parent.name not in ("scrub", "verbs")}

    assert [path for path in modules if path.stem not in {"__init__", "__main__", *named}] == []


def test_every_picture_of_the_readme_is_there_and_fetches_nothing() -> None:
    pictures = [HERE / name for name in re.findall(r"!\[[^]]+\]\(([^)]+)\)", README)]

    assert len(pictures) == 4
    assert [picture.name for picture in pictures if not 10_000 < picture.stat().st_size < 400_000] == []
    drawn = [picture.read_text() for picture in pictures if picture.suffix == ".svg"]
    assert [text for text in drawn if "url(http" in text or "@import" in text or "<script" in text] == []


def test_every_file_that_the_readme_names_exists() -> None:
    table = README.partition("| to change | open |")[2]
    paths = re.findall(r"`(tuilab/[a-z_/]+\.py)`", table)

    assert len(paths) > 5
    assert [path for path in paths if not (HERE / path).exists()] == []


def test_the_guide_names_every_call_of_the_lab() -> None:
    from tuilab.lab import Lab

    calls = [name for name in vars(Lab) if not name.startswith("_") and name not in PLUMBING]

    assert [name for name in calls if f"lab.{name}(" not in CONTRIBUTING] == []


def test_the_command_of_the_readme_is_what_ci_runs() -> None:
    command = "python3 -m venv .venv && .venv/bin/pip install -c constraints.txt -e '.[test]' && .venv/bin/pytest"

    assert f"\n    {command}\n" in README
    assert "sed -n" in (HERE / ".ci" / "run").read_text()


def test_every_suite_of_ci_has_tests_and_stands_in_the_guide() -> None:
    done = subprocess.run([HERE / ".ci" / "run", "nonsense"], capture_output=True, text=True)

    suites = done.stdout.partition("there are: ")[2].split()
    marked = "".join(path.read_text() for path in (HERE / "tests").rglob("*.py"))
    assert done.returncode == 2 and {"default", "lint"} < set(suites)
    assert [name for name in suites if name not in ("default", "lint") and f"pytest.mark.{name}" not in marked] == []
    assert [name for name in suites if f"`{name}`" not in CONTRIBUTING] == []


def test_a_wheel_brings_the_scenarios_as_data_of_tuilab(tmp_path: Path) -> None:
    """Unpacked into an empty folder it lists the same scenarios, found inside the package."""
    subprocess.run([sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)], cwd=HERE, check=True)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "site")
    code = "from tuilab.catalogue import catalog; print(*(s.path for s in catalog.load()), sep='\\n')"

    listed = subprocess.run(
        [sys.executable, "-P", "-c", code], capture_output=True, text=True, cwd=tmp_path, check=True,
        env={**os.environ, "PYTHONPATH": str(tmp_path / "site"), "XDG_CACHE_HOME": str(tmp_path / "cache")},
    ).stdout.splitlines()  # fmt: skip

    ours = sorted(path.name for path in (HERE / "scenarios").rglob("*.py"))
    assert sorted(Path(path).name for path in listed) == ours
    assert all(path.startswith(str(tmp_path / "site" / "tuilab" / "_scenarios")) for path in listed)
    assert not (tmp_path / "site" / "scenarios").exists()


@pytest.mark.parametrize("path", ["README.md", "CONTRIBUTING.md", "CHANGELOG.md"])
def test_lines_are_short_enough_to_read_in_a_terminal(path: str) -> None:
    lines = (HERE / path).read_text().splitlines()

    assert [line for line in lines if len(line) > 130 and not line.startswith("|")] == []
