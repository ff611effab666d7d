"""The screens with a Textual that tuilab does not know: on Textual's own driver, in a real terminal."""

import re
import shutil
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
import textual
from rich.segment import Segment
from textual.color import Color

from tests.conftest import TUILAB
from tests.engine import until
from tests.tui.terminals import PATIENCE_S, Terminal, terminal
from tuilab.catalogue import catalog
from tuilab.doctor import Box
from tuilab.doctor.terminal import driver
from tuilab.probes import textual_version
from tuilab.tui.terminal.known_textual import PARTS, why_unknown
from tuilab.tui.terminal.plain_app import Cleaner

INSTALLED = Path(textual.__file__).parent
FUTURE = "8.3.0"
SEARCH = "Search for commands"
FOUND_BY_PREFIX = {"_action_command_list"}  # Textual builds this name from the name of the action


def name_version(packages: Path, version: str) -> None:
    (packages / f"textual-{version}.dist-info").mkdir()


@pytest.fixture
def future(tmp_path: Path) -> Path:
    """A folder with today's Textual under the version of a future one."""
    packages = tmp_path / "future"
    packages.mkdir()
    (packages / "textual").symlink_to(INSTALLED)
    name_version(packages, FUTURE)
    return packages


@pytest.fixture
def renamed(tmp_path: Path) -> Path:
    """A folder with a Textual of a known version whose private parts have other names."""
    packages = tmp_path / "renamed"
    shutil.copytree(INSTALLED, packages / "textual", ignore=shutil.ignore_patterns("__pycache__"))
    name_version(packages, textual_version.TESTED[-1])
    words = {word for owner, parts in PARTS.items() for word in [*re.split("[.:]", owner), *parts]}
    private = {
        word for word in words if word.startswith("_") and not word.endswith("__")
    } - FOUND_BY_PREFIX
    pattern = re.compile(rf"\b({'|'.join(sorted(private))})\b")
    for path in (packages / "textual").rglob("*.py"):
        path.write_text(pattern.sub(r"\1_renamed", path.read_text()))
        if path.stem in private:
            path.rename(path.with_stem(f"{path.stem}_renamed"))
    return packages


@contextmanager
def screens(tmp_path: Path, packages: Path, *words: str, **more: Any) -> Iterator[Terminal]:
    """Open the screens with the Textual of a folder, and wait until they are there."""
    with terminal(tmp_path, *words, env={"PYTHONPATH": str(packages)}, **more) as term:
        term.wait_for("tensor-basics", "quit", " cores")
        yield term


def leave(term: Terminal, shown: str, below: str) -> None:
    """Press escape, and wait until words are gone and the Lab is there."""

    def is_left() -> bool:
        text = term.text
        return shown not in text and below in text

    term.type("\x1b")
    until(is_left)


def is_drawn_again_down_to_the_last_line(term: Terminal) -> bool:
    """Draw a picture over nothing; return whether it has the size of the terminal, which the screens may not know yet."""
    term.wipe()
    term.type("\x0c")
    term.wait_for("tensor-basics", "quit")
    return "quit" in term.text.splitlines()[-1]


def visit_pages_and_quit(term: Terminal) -> None:
    """Open pages and dialogs, resize the terminal, draw again and quit."""
    count = len(catalog.load())
    for keys, shown in (
        ("?", "keys of lab"),
        ("h", "No runs yet."),
        ("/softmax", f" of {count} "),
        ("\x10", SEARCH),
    ):
        term.type(keys)
        term.wait_for(shown)
        leave(term, shown, f"Scenarios {count} ")
    term.resize(100, 30)
    until(lambda: is_drawn_again_down_to_the_last_line(term))
    term.type("q")

    assert term.wait() == 0
    assert term.is_restored()
    assert b"Traceback" not in term.sent
    assert b"\x1b[5n" not in term.sent, "tuilab's own driver asks this after each frame"


def test_screens_run_on_the_driver_of_a_future_textual(tmp_path: Path, future: Path) -> None:
    with screens(tmp_path, future) as term:
        visit_pages_and_quit(term)


@pytest.mark.slow
def test_screens_run_with_a_textual_whose_private_parts_have_other_names(
    tmp_path: Path, renamed: Path
) -> None:
    with screens(tmp_path, renamed) as term:
        visit_pages_and_quit(term)


@pytest.mark.slow
def test_killed_screens_on_another_driver_give_the_terminal_back(
    tmp_path: Path, future: Path
) -> None:
    with screens(tmp_path, future) as term:
        term.process.kill()

        assert term.process.wait(PATIENCE_S) == -signal.SIGKILL
        until(term.is_restored)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGTERM, 130), (signal.SIGHUP, 0), (signal.SIGINT, 130)]
)
def test_signal_ends_the_screens_on_another_driver(
    tmp_path: Path, future: Path, number: int, code: int
) -> None:
    with screens(tmp_path, future) as term:
        term.process.send_signal(number)

        assert term.wait() == code
        assert term.is_restored()


@pytest.mark.slow
def test_closed_terminal_ends_the_screens_on_another_driver(tmp_path: Path, future: Path) -> None:
    with screens(tmp_path, future) as term:
        term.hang_up()

        term.process.wait(PATIENCE_S)


@pytest.mark.slow
def test_suspended_screens_on_another_driver_come_back(tmp_path: Path, future: Path) -> None:
    command = f"set -m; {TUILAB}; echo suspended; fg; echo rc=$?"
    with screens(tmp_path, future, "-c", command, command="bash") as term:
        term.wipe()
        term.type("\x1a")
        until(lambda: b"suspended" in term.sent)
        term.wait_for("tensor-basics", "quit", " cores")
        term.type("q")

        term.wait_for("rc=0")


@pytest.mark.slow
def test_terminal_without_utf8_gets_only_ascii_from_another_driver(
    tmp_path: Path, future: Path
) -> None:
    kind = {"TERM": "vt100", "LANG": "C", "LC_ALL": "C"}
    with screens(tmp_path, future, kind=kind) as term:
        term.type("q")

        assert term.wait() == 0
        assert term.sent.isascii()
        assert b"\\u" not in term.sent
        assert not re.search(rb"\x1b\[[0-9;]*3[0-9]m", term.sent), (
            "a terminal without colours gets none"
        )


def test_version_that_was_not_tested_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    assert why_unknown() == ""

    monkeypatch.setattr(textual_version, "installed_textual", lambda: FUTURE)
    assert why_unknown() == "Textual 8.3.0 was not tested"
    monkeypatch.setattr(textual_version, "installed_textual", str)
    assert why_unknown() == "Textual of an unknown version was not tested"


def test_tested_version_without_a_part_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr("textual.app.App._display")
    assert why_unknown() == "textual.app:App._display is gone"


def test_doctor_reports_a_textual_that_was_not_tested(monkeypatch: pytest.MonkeyPatch) -> None:
    finding = driver(Box())
    assert (finding.status, finding.next_step) == ("pass", "")

    monkeypatch.setattr(textual_version, "installed_textual", lambda: FUTURE)
    finding = driver(Box())
    assert finding.status == "warn"
    assert finding.found.startswith("Textual 8.3.0 was not tested")
    assert "textual==" + textual_version.TESTED[-1] in finding.next_step


@pytest.mark.parametrize("text", ["a\x1b[2Jb", "a\x9b2Jb", "a\x07b\r\n\t"])
def test_cleaner_removes_what_a_terminal_would_obey(text: str) -> None:
    (segment,) = Cleaner().apply([Segment(text)], Color(0, 0, 0))

    assert segment.text in ("a[2Jb", "a2Jb", "ab")


def test_installed_version_is_that_of_the_package() -> None:
    assert textual_version.installed_textual() == metadata.version("textual")
