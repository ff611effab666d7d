"""What is written on a command line, and where its output goes."""

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import TUILAB
from tests.engine import until, write_scenario
from tests.faults.oracle import check, is_well
from tests.faults.sites import Site, latest

pytestmark = pytest.mark.faults

ONE = 'lab.log(0, half=0.0)\nlab.claim("one-is-one", True)\nprint("x" * 100_000)'
VERBS = [
    ("list",),
    ("runs",),
    ("attach", "last", "--plot"),
    ("attach", "last", "--jsonl"),
    ("verify",),
    ("--help",),
    ("run", "PATH", "--headless"),
]


@pytest.mark.parametrize(
    "where", ["| head -c 1", "> /dev/full", ">&-", "2> /dev/full >&2", "<&- >&- 2>&-"]
)
def test_58_output_that_nobody_takes_ends_no_run_and_is_no_traceback(
    site: Site, where: str
) -> None:
    path = str(write_scenario(site.folder, ONE))
    site.run("run", path, "--headless", "--quiet")
    for words in VERBS:
        line = " ".join([TUILAB, *(path if word == "PATH" else word for word in words), where])
        done = subprocess.run(
            ["bash", "-c", line], env=site.environment, capture_output=True, text=True, timeout=60
        )
        assert "Traceback" not in done.stderr and "Broken pipe" not in done.stderr, (
            words,
            done.stderr,
        )
        assert "Exception ignored" not in done.stderr, words

    until(lambda: not site.living())
    for run_dir in site.root.iterdir():
        if run_dir.name[0] != ".":
            check(site, run_dir, "succeeded")


WORDS = [
    "../../x",
    "-rf",
    "--",
    "a\nb",
    "n" * 300,
    "$(touch hit)",
    "; touch hit",
    "`touch hit`",
    "|touch hit",
    "/",
    ".",
    "~",
    "*",
    "%s%n",
    "\\",
    "'\"",
    " ",
    "a/../b",
]


@pytest.mark.parametrize("place", ["a parameter", "a tag", "a title", "an artifact"])
def test_62_a_word_of_any_kind_is_a_word(site: Site, place: str) -> None:
    """None is a command, a path out of the run, or an option that was not meant."""
    path = site.folder / "form.py"
    path.write_text(
        '"""Form."""\nimport contextlib\nfrom tuilab import Lab\ndef run(lab: Lab, text: str = "x") -> None:\n'
        "    lab.text(text, title=text)\n    with contextlib.suppress(ValueError): lab.artifact(text, text)\n"
    )
    here = site.folder / "here"
    here.mkdir()
    before = set(os.listdir(site.folder)) | {"runs", "cache"}
    site.run("run", str(path), "--headless", "--quiet", cwd=here)
    lines: dict[str, Callable[[str], tuple[str, ...]]] = {
        "a parameter": lambda word: ("run", str(path), "--headless", "--quiet", f"--text={word}"),
        "a tag": lambda word: ("note", "last", f"--tag={word}"),
        "a title": lambda word: ("runs", f"--tag={word}"),
        "an artifact": lambda word: (
            "export",
            "last",
            "-o",
            f"{here}/{word.replace('/', '_')}.tgz",
        ),
    }
    told = [
        site.run(*lines[place](word), cwd=here)
        for word in (WORDS if place != "a parameter" else WORDS[:6])
    ]

    assert all(map(is_well, told)), [
        (done.args[1:], done.stderr) for done in told if not is_well(done)
    ]
    assert not (here / "hit").exists()
    assert set(os.listdir(site.folder)) <= before
    until(lambda: not site.living())
    shown = site.run("attach", "last", "--json", "--quiet")
    if place == "a parameter":
        assert json.loads(shown.stdout)["runs"][0]["params"] == {"text": WORDS[5]}
    run_dir = latest(site)
    check(site, run_dir, "succeeded")
    kept = [
        Path(folder, name) for folder, _, names in os.walk(run_dir / "artifacts") for name in names
    ]
    assert all(file.resolve().is_relative_to(run_dir.resolve()) for file in kept)
