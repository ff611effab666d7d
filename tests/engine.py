"""Tools for tests of whole runs: write small scenarios, start the command line, wait for records."""

import os
import re
import subprocess
import time
from collections.abc import Callable, Mapping
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import pytest

from tests.conftest import TUILAB
from tuilab.engine import processes
from tuilab.record import presence
from tuilab.record.journal.lines import Item
from tuilab.record.journal.reader import Reader
from tuilab.record.live_run import Watch
from tuilab.record.summary import RunSummary
from tuilab.runs import store

T = TypeVar("T")

HEAD = '''"""A scenario for a test.{lesson}"""
import ctypes, os, signal, subprocess, sys, time
from tuilab import Lab

'''


_CLAIM = re.compile(r"lab\.claim(?:_ratio)?\([\"']([a-z][a-z0-9-]*)[\"']")


def claims_section(body: str, sentences: Mapping[str, str]) -> str:
    """Return the section of a lesson that states the claims of a body; empty if there are none."""
    stated = {key: key.replace("-", " ") for key in _CLAIM.findall(body)}
    stated.update(sentences)
    if not stated:
        return ""
    bullets = [f"\n- [{key}] {sentence}" for key, sentence in stated.items()]
    return f"\n\n## Look for{''.join(bullets)}\n"


def write_scenario(
    folder: Path,
    body: str,
    more: str = "",
    name: str = "probe",
    claims: Mapping[str, str] | None = None,
) -> Path:
    """Write a scenario whose `run` has the given body (one statement a line).

    Its lesson states each claim of the body: "one-is-one" as "one is one", or with the sentence
    that `claims` has for the key.
    """
    lesson = claims_section(body, claims or {})
    # The lesson is on one line, so that the lines of a scenario always have the same numbers.
    escaped_lesson = repr(lesson)[1:-1].replace('"', '\\"')
    head = HEAD.replace("{lesson}", escaped_lesson)
    lines = "\n".join("    " + line for line in body.strip().splitlines())
    path = folder / f"{name}.py"
    path.write_text(f"{head}{more}\ndef run(lab: Lab) -> None:\n{lines}\n")
    return path


def start(root: Path, *words: str, **more: Any) -> "subprocess.Popen[str]":
    """Start `tuilab ...` and return it while it runs."""
    environment = {**os.environ, "TUILAB_ROOT": str(root)}
    process: subprocess.Popen[str] = subprocess.Popen(
        [TUILAB, *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
        **more,
    )
    return process


def do_first(folder: Path, monkeypatch: pytest.MonkeyPatch, lines: str) -> None:
    """Make every Python process of a test run these lines at its start."""
    site = folder / "site"
    site.mkdir(exist_ok=True)
    with (site / "sitecustomize.py").open("a") as file:
        file.write(lines)
    monkeypatch.setenv("PYTHONPATH", str(site), prepend=os.pathsep)


def until(condition: Callable[[], T | None], patience_s: float = 60.0) -> T:
    """Poll until a condition returns a true value, and return the value.

    A condition that reads a missing file does not hold yet.
    """
    deadline = time.monotonic() + patience_s
    while True:
        with suppress(FileNotFoundError):
            value = condition()
            if value:
                return value
        if time.monotonic() > deadline:
            raise AssertionError("what was waited for did not happen")
        time.sleep(0.02)


def newest(root: Path) -> Path | None:
    """Return the newest run; None if there is none."""
    return next(iter(store.list_runs(root)), None)


def read_stream(path: Path) -> list[Item]:
    """Return every item of a stream, up to its present end."""
    with closing(Reader(path)) as reader:
        return rest_of(reader)


def rest_of(reader: Reader) -> list[Item]:
    """Return the items that a reader has not returned yet."""
    rest: list[Item] = []
    while items := reader.read():
        rest += items
    return rest


class Seen(NamedTuple):
    """A run as a view saw it at one moment."""

    summary: RunSummary
    state: str
    supervisor_presence: str


def look(run_dir: Path) -> Seen:
    """Return a run as a view sees it now."""
    watch = Watch(run_dir)
    watch.catch_up()
    seen = Seen(watch.summary, watch.state(), watch.supervisor_presence)
    watch.close()
    return seen


def wait_for_stage(root: Path, name: str) -> Path:
    """Wait until the newest run has entered a stage, and return its folder."""

    def entered() -> Path | None:
        run_dir = newest(root)
        if run_dir is not None and has_entered(run_dir, name):
            return run_dir
        return None

    return until(entered)


def has_entered(run_dir: Path, stage_name: str) -> bool:
    """Whether a run has entered a stage."""
    return any(stage.name == stage_name for stage in look(run_dir).summary.stages)


def processes_of(run_dir: Path) -> list[str]:
    """Return the names of the living processes of a run.

    These are the processes with its mark, its supervisor, and the descendants of the supervisor.
    """
    run = look(run_dir).summary.run
    pids = [pid for pid, _ in presence.marked(run_dir.name)]
    if run is not None and presence.presence(run.supervisor) == "alive":
        pids.append(run.supervisor.pid)
        pids += presence.descendants(run.supervisor.pid)
    return [processes.name_of(pid) for pid in pids]
