"""What a shell offers when tab is pressed."""

import os
import pty
import select
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.made_runs import finished, make_run, started
from tuilab.record import events

Tuilab = Callable[..., "subprocess.CompletedProcess[str]"]


def offered(tuilab: Tuilab, line: str, shell: str = "bash") -> list[str]:
    """Return what a shell is told for a line whose last word is begun."""
    words = line.split(" ")
    at = words[-1] if shell == "fish" else str(len(words) - 1)
    done = tuilab(
        env={"_TUILAB_COMPLETE": f"{shell}_complete", "COMP_WORDS": line, "COMP_CWORD": at}
    )
    return [offer for offer in done.stdout.split("\n") if offer]


@pytest.mark.parametrize(
    "line",
    [
        "tuilab run ./sc",
        "tuilab run softmax --report fm",
        "tuilab report last -o fm",
        "tuilab compare last -o fm",
        "tuilab check ./s",
        "tuilab advise -o bo",
        "tuilab run ~/x",
    ],
)
def test_files_are_the_shells_affair(tuilab: Tuilab, root: Path, line: str) -> None:
    assert offered(tuilab, line) == [f"file,{line.split()[-1]}"]


@pytest.mark.parametrize("line", ["tuilab new x --dir s", "tuilab compare box"])
def test_folders_too(tuilab: Tuilab, root: Path, line: str) -> None:
    assert offered(tuilab, line) == [f"dir,{line.split()[-1]}"]


def test_scenarios_and_topics_by_their_beginning(tuilab: Tuilab) -> None:
    assert offered(tuilab, "tuilab run stabi") == ["plain,stability"]
    assert "plain,softmax" in offered(tuilab, "tuilab show softm")


def test_all_is_offered_where_it_is_meant(tuilab: Tuilab, root: Path) -> None:
    assert offered(tuilab, "tuilab report al") == ["plain,all"]
    assert offered(tuilab, "tuilab show al") == ["plain,all"]
    assert offered(tuilab, "tuilab attach al") == []


def test_what_goes_on_is_stopped_and_what_is_over_is_deleted(tuilab: Tuilab, root: Path) -> None:
    finished(root, {"a": "SUPPORTED"}, end="aaaaaa")
    make_run(root, started(is_alive=True), events.StateChanged(state="running"), end="bbbbbb")

    assert offered(tuilab, "tuilab stop ") == ["plain,bbbbbb"]
    assert offered(tuilab, "tuilab rm ") == ["plain,aaaaaa"]
    assert offered(tuilab, "tuilab note ") == [
        "plain,last",
        "plain,last~1",
        "plain,bbbbbb",
        "plain,aaaaaa",
    ]
    assert "plain,aaaaaa" not in offered(tuilab, "tuilab compare aaaaaa ")


def test_sweeps_are_offered_where_one_is_begun(tuilab: Tuilab, root: Path) -> None:
    sweep = events.Sweep(id="sweep-0a1b2c", values={"rows": [5]}, point={"rows": 5})
    finished(root, {}, end="aaaaaa", sweep=sweep)

    for line in (
        "tuilab report s",
        "tuilab attach s",
        "tuilab stop sweep-",
        "tuilab sweep --resume s",
    ):
        assert offered(tuilab, line) == ["plain,sweep-last", "plain,sweep-0a1b2c"]
    assert offered(tuilab, "tuilab sweep --resume sweep-0") == ["plain,sweep-0a1b2c"]
    assert offered(tuilab, "tuilab attach ") == ["plain,last", "plain,last~1", "plain,aaaaaa"]
    assert offered(tuilab, "tuilab advise s") == []


def test_tags_and_claims_are_offered(tuilab: Tuilab, root: Path) -> None:
    finished(root, {}, end="aaaaaa")
    tuilab("note", "last", "--tag", "mine", "--tag", "other")

    assert offered(tuilab, "tuilab runs --tag ") == ["plain,mine", "plain,other"]
    assert "plain,unbind" in offered(tuilab, "tuilab runs --scenario row-reduce --claim unb")


def test_claims_of_a_scenario_that_is_in_no_folder_are_those_of_its_last_run(
    tuilab: Tuilab, root: Path
) -> None:
    source = '"""A probe.\n\n## Look for\n\n- [it-holds] It holds.\n"""\ndef run(lab):\n    lab.claim("it-holds")\n'
    (finished(root, {}, name="probe") / "scenario.py").write_text(source)

    assert offered(tuilab, "tuilab runs --scenario probe --claim it") == ["plain,it-holds"]


def test_nothing_that_a_terminal_would_obey_is_offered(tuilab: Tuilab, root: Path) -> None:
    for name in ("x\x1b[2J", "20270115T080000000Z-a\x1b]0;x\x07-ab\x1bcd"):
        (root / name / "journal").mkdir(parents=True)

    assert offered(tuilab, "tuilab attach ") == ["plain,last", "plain,last~1"]


LINES = [
    " ", " r", " runs", " x", " -", " --ro", "", " run ", " run a", " run stab", " run nothing", " run ./", " run st/",
    " run --hea", " run softmax --rep", " run softmax x", " show softm", " check so", " runs so", " run r=", " run ~",
    " --lang zh run so", " run =", " run  so", " export ",
]  # fmt: skip


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
@pytest.mark.parametrize("line", LINES)
@pytest.mark.first(12)
def test_a_plain_question_is_answered_as_click_answers_one_with_quotes(
    tuilab: Tuilab, root: Path, line: str, shell: str
) -> None:
    assert offered(tuilab, f"tuilab{line}", shell) == offered(tuilab, f"'tuilab'{line}", shell)


@pytest.mark.parametrize(
    ("typed", "whole"),
    [
        ("tuilab exec -- train-my", "tuilab exec -- train-my-net "),
        (
            "tuilab sweep --set a=1,2 -- env train-my-net no",
            "tuilab sweep --set a=1,2 -- env train-my-net notes.txt ",
        ),
        (
            "tuilab ab --arm a --arm b -- ./bin/train-m",
            "tuilab ab --arm a --arm b -- ./bin/train-my-net ",
        ),
    ],
)
def test_a_command_behind_dashes_is_completed_by_bash_itself(
    tuilab: Tuilab, tmp_path: Path, typed: str, whole: str
) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "notes.txt").touch()
    for name, does in (("train-my-net", "true"), ("tuilab", f"touch {tmp_path}/asked")):
        (tmp_path / "bin" / name).write_text(f"#!/bin/sh\n{does}\n")
        (tmp_path / "bin" / name).chmod(0o755)
    completion = tuilab(env={"_TUILAB_COMPLETE": "bash_source"}).stdout
    short_prompt = "PS1='$ '\n"  # a long line is not shown as one: bash scrolls it sideways
    (tmp_path / "rc").write_text(short_prompt + completion)
    env = {
        **os.environ,
        "PATH": f"{tmp_path}/bin:{os.environ['PATH']}",
        "TERM": "dumb",
        "INPUTRC": "/dev/null",
    }
    ours, theirs = pty.openpty()
    bash = subprocess.Popen(
        ["bash", "--rcfile", "rc", "-i"],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env=env,
        cwd=tmp_path,
        start_new_session=True,
    )
    os.close(theirs)
    os.write(ours, f"{typed}\t".encode())
    seen = b""
    while whole.encode() not in seen and select.select([ours], [], [], 20)[0]:
        seen += os.read(ours, 65536)
    bash.kill()
    bash.wait()
    os.close(ours)

    assert whole in seen.decode() and not (tmp_path / "asked").exists()


EVIL = "\x1b]0;owned\x07\x9b31m\r\nplain,owned\n\u202e\u2028"
LABEL = "".join(EVIL.splitlines())
ODD = f'''"""Title {EVIL}"""
from typing import Literal

def run(
    lab: "Lab",
    choice: Literal["odd {ascii(EVIL)[1:-1]}", "$(touch hit)", "two words", "even"] = "even",  # {LABEL}
) -> None:
    lab.claim("it-holds", True)
'''


@pytest.fixture
def odd(tmp_path: Path) -> str:
    """A folder of scenarios in which every word would like to steer a terminal, or to be another word."""
    folder = tmp_path / "own" / f"topic{EVIL}"
    folder.mkdir(parents=True)
    for name in ("good", f"name{EVIL}"):
        (folder / f"{name}.py").write_text(ODD)
    return str(tmp_path / "own")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_no_word_of_a_scenario_steers_a_terminal_or_becomes_another(
    tuilab: Tuilab, odd: str, shell: str
) -> None:
    names = offered(tuilab, f"tuilab run --scenarios {odd} ", shell)
    choices = offered(tuilab, f"tuilab run good --scenarios {odd} --choice ", shell)
    options = offered(tuilab, f"tuilab run good --scenarios {odd} --cho", shell)

    assert [
        line for line in (*names, *choices, *options) if not line.replace("\t", "").isprintable()
    ] == []
    assert [line for line in (*names, *choices) if "owned" in line and "Title" not in line] == []
    assert any("good" in line for line in names) and any("--choice" in line for line in options)
    words = {"bash": ["plain,even"], "zsh": ["$(touch hit)", "two words", "even"]}
    words["fish"] = [f"plain,{word}" for word in words["zsh"]]
    assert [line for line in choices if line not in ("plain", "_")] == words[shell]
