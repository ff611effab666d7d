"""Which runs are meant by the words of a filter, on the screens and behind `tuilab runs`."""

import json
import os
import time
from functools import partial
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.made_runs import finished
from tuilab.cli.verbs import runs
from tuilab.errors import UsageError
from tuilab.runs import notes, read_entry, store
from tuilab.runs.filters import completed, moment, parse, words_of

NOW = 1.8e9
DAY = 86400.0


@pytest.fixture
def three(root: Path) -> Path:
    """An old run that was refuted and has a tag, one of yesterday that was stopped, a new quick one that holds."""
    tagged = finished(
        root,
        {"a": "REFUTED", "b": "SUPPORTED"},
        at_s=NOW - 9 * DAY,
        end="aaaaaa",
        params={"n": 8},
        changed=["n"],
    )
    notes.add(tagged, "look at this", ["Mine"])
    finished(
        root,
        {"a": "NO MEANINGFUL DIFFERENCE"},
        name="xyy",
        state="stopped",
        at_s=NOW - DAY,
        end="bbbbbb",
    )
    finished(root, {"a": "SUPPORTED"}, name="xent", quick=True, at_s=NOW - 60, end="cccccc")
    return root


def found(root: Path, text: str) -> str:
    """Return the first letters of the ids of those that a filter leaves."""
    wanted = parse(text, NOW)
    entries = [
        (read_entry.read_entry(run_dir), notes.read(run_dir)) for run_dir in store.list_runs(root)
    ]
    left = [
        entry.run
        for entry, written in entries
        if wanted.matches(entry, written, partial(words_of, entry, written))
    ]
    return "".join(sorted(run[-1] for run in left))


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("", "abc"),
        ("verdict:refuted", "a"),
        ("verdict:no-difference", "b"),
        ("!verdict:supported", "b"),
        ("state:stop", "b"),
        ("!state:stopped", "ac"),
        ("since:2d", "bc"),
        ("!since:2d", "a"),
        ("since:2027-01-14", "bc"),
        ("tag:mine", "a"),
        ("!tag:mine xent", "c"),
        ("SOFTMAX look n=8", "a"),
        ("quick", "c"),
        ("!quick !stopped", "a"),
        ("verdict: ! state:", "abc"),
        ("other:word", ""),
    ],
)
def test_words_choose_runs(three: Path, text: str, ids: str) -> None:
    assert parse(text, NOW).problem == ""
    assert found(three, text) == ids


def test_a_day_can_be_named_by_its_word() -> None:
    now_s = 1_800_003_723.0  # 2027-01-15 09:02:03 UTC

    assert moment("today", now_s) == moment("2027-01-15", now_s)
    assert moment("Yesterday", now_s) == moment("2027-01-14", now_s)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (
            "since:soon",
            "since:soon is not a time; use 2h, 3d, 1w, today, yesterday or a day such as 2026-11-21",
        ),
        ("state:zzz", "no state begins with zzz; use one of queued, starting, "),
        ("verdict:\x1b[2J", "no verdict begins with \ufffd[2j; use one of supported, weaker, "),
    ],
)
def test_a_word_that_makes_no_sense_is_told_with_what_does(text: str, problem: str) -> None:
    assert parse(text, NOW).problem.startswith(problem)


@pytest.mark.parametrize(
    "text", ["", "d", ".d", "-1d", "1e9d", "1d2", "٣d", "2026-13-01", "9" * 20 + "d"]
)
def test_what_is_no_time_is_none(text: str) -> None:
    assert moment(text, NOW) is None


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        ("v", "verdict:"),
        ("xent !verdict:r", "xent !verdict:refuted"),
        ("state:st", "state:stopped"),
        ("state:starti", None),
        ("verdict:su", None),
        ("tag:", "tag:mine"),
        ("since:", "since:1d"),
        ("xent", None),
        ("xent ", None),
        ("", None),
    ],
)
def test_the_last_word_is_completed_to_what_runs_have(text: str, whole: str | None) -> None:
    there = {"verdict": ["refuted"], "state": ["stopped", "failed"], "tag": ["mine"]}

    assert completed(text, there) == whole


def test_a_key_that_no_run_has_a_value_of_is_not_offered() -> None:
    assert [completed(text, {"state": ["failed"]}) for text in ("t", "v", "s", "si")] == [
        None,
        None,
        "state:",
        "since:",
    ]


def test_the_command_line_takes_the_same_words(
    three: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time, "time", lambda: NOW)
    run = partial(CliRunner().invoke, runs.command, standalone_mode=False)

    listed = json.loads(run(["--root", str(three), "!quick", "since:30d", "--json"]).stdout)
    assert [one["run"][-6:] for one in listed["runs"]] == ["bbbbbb", "aaaaaa"]
    assert "filters are: words  !word  verdict:refuted" in str(
        run(["--root", str(three), "since:soon"]).exception
    )


def test_runs_of_another_user_are_not_passed_over_in_silence(
    three: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = partial(CliRunner().invoke, runs.command, standalone_mode=False)
    (three / "20270115T080000000Z-a-file-ffffff").write_text("")
    for run_dir in store.list_runs(three):
        (run_dir / "journal").rename(
            three / f"kept-{run_dir.name[-6:]}"
        )  # what cannot be entered has none to be seen
    monkeypatch.setattr(os, "access", lambda path, mode: mode != os.X_OK)

    assert run(["--root", str(three)]).stdout.startswith(
        f"3 runs in {three} cannot be read by you; ask their owner"
    )
    assert json.loads(run(["--root", str(three), "--json"]).stdout)["closed"] == 3
    with pytest.raises(UsageError, match="cannot be read by you; ask their owner"):
        store.find("last", three)


@pytest.mark.parametrize("kind", ["file", "link"])
def test_a_run_whose_journal_is_no_folder_is_not_passed_over_in_silence(
    three: Path, tmp_path: Path, kind: str
) -> None:
    run = partial(CliRunner().invoke, runs.command, standalone_mode=False)
    first, *others = store.list_runs(three)
    (first / "journal").rename(tmp_path / "away")
    assert (
        "no folder" not in run(["--root", str(three)]).stdout
    )  # without any it may be one that is just being made
    (first / "journal").write_text("") if kind == "file" else (first / "journal").symlink_to(
        tmp_path / "away"
    )

    told = run(["--root", str(three)]).stdout.splitlines()
    assert told[-1].startswith(f"no longer a run, as its journal is not a folder: {first};")
    assert len(told) == len(others) + 2
    listed = json.loads(run(["--root", str(three), "--json"]).stdout)
    assert (listed["total"], listed["spoilt"]) == (
        len(others),
        [{"run": first.name, "path": str(first)}],
    )
    for word in (first.name, first.name[-6:], first.name[:18]):
        with pytest.raises(UsageError, match="no longer a run, as its journal is not a folder: "):
            store.find(word, three)
    with pytest.raises(UsageError, match="no run named zzzz"):
        store.find("zzzz", three)
