"""What a verb says, for a program: one JSON document that names its schema."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.test_compare import put

Tuilab = Callable[..., "subprocess.CompletedProcess[str]"]


def ask(tuilab: Tuilab, *words: str, code: int = 0) -> Any:
    done = tuilab(*words, "--json")
    assert done.returncode == code, done.stderr
    told = json.loads(done.stdout)
    assert told.pop("schema") == f"tuilab.{words[0]}/1"
    return told


@pytest.fixture
def run_dir(root: Path) -> Path:
    return put(root, "tour", "aaaaaa", tour="20270115T080000000Z-tour-aaaaaa")


def test_show(tuilab: Tuilab) -> None:
    (told,) = ask(tuilab, "show", "softmax", "--source")["scenarios"]

    assert (told["id"], told["topic"], told["params"][0]["name"]) == ("softmax", "stability", "tied")
    assert told["lesson"] and "def run(" in told["source"] and told["claim_keys"]


def test_check(tuilab: Tuilab, tmp_path: Path) -> None:
    path = tmp_path / "odd.py"
    path.write_text('"""Odd."""\nfrom tuilab import Lab\n\n\ndef run(lab: Lab) -> None:\n    pass\n')

    told = ask(tuilab, "check", str(path), code=1)

    assert told["exit_code"] == 1 and told["scenarios"] == [str(path)]
    assert {tuple(finding) for finding in told["findings"]} == {("path", "line", "sentence")}


def test_verify(tuilab: Tuilab, run_dir: Path) -> None:
    assert ask(tuilab, "verify", "last")["wrong"] == []
    (run_dir / "scenario.py").write_text("# edited")

    told = ask(tuilab, "verify", "last", code=1)

    assert told["wrong"] == ["scenario.py is not the source that ran"]
    assert (told["run"], told["exit_code"], told["is_over"]) == (run_dir.name, 1, True)
    assert len(told["recorded"]) == len(told["again"]) == 5
    assert told["recorded"][0]["verdict"] == "SUPPORTED"


def test_note(tuilab: Tuilab, run_dir: Path) -> None:
    told = ask(tuilab, "note", "last", "looks good", "--tag", "mine")

    assert (told["run"], told["tags"], [one["text"] for one in told["notes"]]) == (run_dir.name, ["mine"], ["looks good"])


def test_stop(tuilab: Tuilab, run_dir: Path) -> None:
    told = ask(tuilab, "stop", "aaaaaa")

    assert told == {"run": run_dir.name, "path": str(run_dir), "done": "aaaaaa is over already: succeeded"}


def test_an_archive_and_back(tuilab: Tuilab, run_dir: Path, tmp_path: Path) -> None:
    packed = ask(tuilab, "export", "last", "-o", f"{tmp_path}/x.tgz")
    (came,) = ask(tuilab, "import", f"{tmp_path}/x.tgz", "--root", f"{tmp_path}/two")["runs"]

    assert (packed["run"], packed["file"], packed["taken_out"]) == (run_dir.name, f"{tmp_path}/x.tgz", {})
    assert packed["bytes"] == (tmp_path / "x.tgz").stat().st_size
    assert (came["path"], came["left_out"], came["taken_out"]) == (f"{tmp_path}/two/{run_dir.name}", [], {})


def test_rm_by_age_says_first_what_would_go(tuilab: Tuilab, run_dir: Path) -> None:
    would = ask(tuilab, "rm", "--keep", "0")
    assert run_dir.exists()
    done = ask(tuilab, "rm", "--keep", "0", "--yes")

    assert would == {"is_done": False, "runs": [str(run_dir)], "kept": []}
    assert done == {"is_done": True, "runs": [str(run_dir)], "kept": []}
    assert not run_dir.exists()


def test_rm_by_name(tuilab: Tuilab, run_dir: Path) -> None:
    assert ask(tuilab, "rm", "aaaaaa") == {"is_done": True, "runs": [str(run_dir)], "kept": []}


def test_config(tuilab: Tuilab) -> None:
    told = ask(tuilab, "config")

    assert told["settings"]["fps"] == {"value": 2.0, "origin": "default"}
    assert "--json is of tuilab config print, not of path" in tuilab("config", "path", "--json").stderr
