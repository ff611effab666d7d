"""Sweeps: a scenario or a command with every combination of values, stopped and gone on with, and told along them."""

import csv
import io
import json
import os
import re
import signal
import subprocess
from collections.abc import Callable
from contextlib import suppress
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from tests.engine import look, newest, start, until
from tests.made_runs import finished, make_run, started
from tests.report_aids import checked_document
from tuilab.catalogue import grid
from tuilab.errors import UsageError
from tuilab.record import events
from tuilab.record.events import Sweep
from tuilab.reports.reported_run import read_subject
from tuilab.reports.sweeps.points import axis_of, describe_where_it_holds, group_points, number_of
from tuilab.reports.sweeps.sweep_summary import summarise_sweep as summed_up
from tuilab.reports.sweeps.text import fit_table
from tuilab.runs import read_entry, store, sweeps
from tuilab.runs.index import Index
from tuilab.runs.notes import Notes
from tuilab.runs.representative import representative_runs
from tuilab.tui.widgets.history import runline

Tuilab = Callable[..., "subprocess.CompletedProcess[str]"]

SCENARIO = '''"""A probe.

A lesson.

## Look for
- [small] it is small
"""

import os
import time

from tuilab import Lab


def run(
    lab: Lab,
    rows: int = 10,  # rows, 1..100000
    fast: bool = False,  # whether it hurries
    token: str = "",  # a secret
) -> None:
    lab.stage("on")
    if rows == 7:
        raise ValueError("seven")
    while rows in (8, 80) and not os.path.exists("GATE"):
        time.sleep(0.01)
    lab.claim("small", rows, at_most=100)
'''


@pytest.fixture
def probe(tmp_path: Path) -> str:
    path = tmp_path / "probe.py"
    path.write_text(SCENARIO.replace("GATE", str(tmp_path / "gate")))
    return str(path)


def swept(tuilab: Tuilab, *words: str, code: int = 0) -> dict[str, Any]:
    done = tuilab("sweep", "--json", "--quiet", *words)
    assert done.returncode == code, done.stderr
    told: dict[str, Any] = checked_document(json.loads(done.stdout))
    return told


# ---- the points


def test_how_many_tokens_a_command_takes_is_no_secret(tuilab: Tuilab) -> None:
    told = swept(
        tuilab, "--set", "max_tokens=128,256", "--", "echo", "--max-tokens", "{max_tokens}"
    )

    assert [run["point"] for run in told["runs"]] == [{"max_tokens": "128"}, {"max_tokens": "256"}]


def test_every_combination_is_a_point_and_the_last_setting_changes_fastest() -> None:
    read = grid.read(["a=1, 2", "b=x,y"], lambda name, text: text)

    assert list(grid.points(read)) == [{"a": a, "b": b} for a, b in product("12", "xy")]


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ([], "no values to sweep"),
        (["rows"], "takes NAME=VALUE"),
        (["=1,2"], "takes NAME=VALUE"),
        (["rows="], "empty value"),
        (["rows=1,,2"], "empty value"),
        (["rows=1,2,1"], "has 1 twice"),
        (["rows=1", "rows=2"], "names rows twice"),
        (
            ["a=" + ",".join(map(str, range(1000))), "b=" + ",".join(map(str, range(1000)))],
            "1000000 points",
        ),
    ],
)
def test_what_is_no_grid_is_refused_in_a_sentence(settings: list[str], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        grid.read(settings, lambda name, text: text)


def test_claims_are_told_along_the_first_setting_that_goes_through_numbers() -> None:
    def axis(**values: list[Any]) -> str:
        return axis_of(Sweep(id="sweep-1", values=values, point={}))

    assert axis(device=["cpu", "cuda"], rows=[1, 2]) == "rows"
    assert axis(rows=[1], lr=["0.1", "1e-3"]) == "lr"
    assert axis(device=["cpu", "cuda"], fast=[True, False], lr=["0.1", "nan"]) == ""


def test_points_that_differ_along_the_axis_alone_stand_together() -> None:
    points = [
        {"rows": rows, "device": device, "seed": 1} for rows in (1, 2) for device in ("cpu", "cuda")
    ]

    assert group_points(points, "rows", ["rows", "device"]) == {
        "device=cpu": [0, 2],
        "device=cuda": [1, 3],
    }
    assert group_points(points, "rows", ["rows"]) == {"": [0, 1, 2, 3]}


# ---- where a claim holds


@pytest.mark.parametrize(
    ("holds", "words"),
    [
        ("yy", "holds at all 2 values"),
        ("nnn", "holds at none of 3 values"),
        ("nyy", "holds from 2 on, not at 1"),
        ("nny", "holds from 3 on, not at 1, 2"),
        ("yyn", "holds up to 2, not at 3"),
        ("ynn", "holds up to 1, not at 2, 3"),
        ("yny", "holds at 1, 3, not at 2"),
        ("n?y", "holds from 3 on, not at 1; not decided at 2"),
        ("ny?", "holds at 2, not at 1; not decided at 3"),
        ("ny?y", "holds at 2, 4, not at 1; not decided at 3"),
        ("?ny", "holds at 3, not at 2; not decided at 1"),
        ("y?n", "holds up to 1, not at 3; not decided at 2"),
        ("??", "decided at none of 2 values"),
        ("?", "not decided at 1"),
        ("y", "holds at 1"),
        ("n", "does not hold at 1"),
        ("?y?", "holds at 2; not decided at 1, 3"),
    ],
)
def test_where_a_claim_holds_is_told_in_a_phrase(holds: str, words: str) -> None:
    assert describe_where_it_holds(_places(holds), is_ordered=True) == words


@given(some.text("yn?", min_size=1, max_size=6), some.booleans())
def test_no_value_is_told_to_hold_that_does_not(holds: str, is_ordered: bool) -> None:
    """Read back what is said, as a person would: where each value stands, in one of the three."""
    said = describe_where_it_holds(_places(holds), is_ordered=is_ordered)

    assert (
        "".join(_read_back(said, str(at), len(holds)) for at in range(1, len(holds) + 1)) == holds
    )


def _places(holds: str) -> list[tuple[str, bool | None]]:
    meanings = {"y": True, "n": False, "?": None}
    return [(str(at), meanings[one]) for at, one in enumerate(holds, 1)]


def _read_back(said: str, place: str, count: int) -> str:
    if said.startswith("decided at none"):
        return "?"
    where = {"y": "", "n": "", "?": ""}
    for part in said.split("; "):
        if part.startswith("not decided at "):
            where["?"] = part.removeprefix("not decided ")
        elif part.startswith("does not hold "):
            where["n"] = part.removeprefix("does not hold ")
        else:
            yes, _, no = part.removeprefix("holds ").partition(", not ")
            where["y"], where["n"] = ("", "at all") if "none" in yes else (yes, no)
    at = {
        name
        for name, text in where.items()
        if text and re.search(rf"\bat (.*\b)?({place}\b|all)", text)
    }
    if at:
        (only,) = at
        return only
    ranges = {name: _span(text, count) for name, text in where.items()}
    (only,) = [name for name, span in ranges.items() if int(place) in span]
    return only


def _span(text: str, count: int) -> range:
    if found := re.fullmatch(r"from (\d+) on", text):
        return range(int(found[1]), count + 1)
    if found := re.fullmatch(r"up to (\d+)", text):
        return range(1, int(found[1]) + 1)
    return range(0)


# ---- the whole of it


def test_a_claim_is_told_along_the_values(
    tuilab: Tuilab, probe: str, root: Path, tmp_path: Path
) -> None:
    done = tuilab("sweep", probe, "--set", "rows=10,100,1000", "--report", "told.html")

    assert done.returncode == 1, done.stderr
    assert (
        "3 of 3 points" in done.stdout and "holds up to rows=100, not at rows=1000" in done.stdout
    )
    assert "3/3 rows=1000: succeeded  ✗" in done.stderr
    (sweep_id,) = {
        run.sweep.id
        for folder in store.list_runs(root)
        if (run := look(folder).summary.run) and run.sweep
    }
    page = (tmp_path / "told.html").read_text()
    assert (
        "holds up to rows=100, not at rows=1000" in page
        and sweep_id in page
        and "side by side" not in page
    )
    written = tuilab("report", sweep_id[:9], "-o", "-", "--as", "md").stdout
    assert "- **holds up to rows=100, not at rows=1000**" in written and written.count("\n## ") == 4
    report = json.loads(tuilab("report", sweep_id, "-o", "-", "--as", "json").stdout)
    assert sorted(run["sweep"]["point"]["rows"] for run in checked_document(report)["runs"]) == [
        10,
        100,
        1000,
    ]


@pytest.mark.parametrize(
    ("rows", "holds"),
    [
        ("1,2,10", "holds at rows=10"),
        ("1,2", "n/a: claimed for rows=10"),
        ("10,20", "holds at rows=10"),
    ],
)
def test_claim_about_one_value_counts_at_no_other_point(
    tuilab: Tuilab, probe: str, tmp_path: Path, rows: str, holds: str
) -> None:
    path = Path(probe)
    path.write_text(path.read_text().replace("at_most=100", 'equals=10, at={"rows": 10}'))

    done = tuilab("sweep", probe, "--set", f"rows={rows}", "--report", "told.html")

    assert done.returncode == 0, done.stderr
    others = len(rows.split(",")) - ("10" in rows.split(","))
    for text in (done.stdout, (tmp_path / "told.html").read_text()):
        assert holds in text and "✗" not in text and "REFUTED" not in text
        assert text.count("n/a: claimed for rows=10") >= others
        assert "as written for" not in text and "not decided" not in text


def test_run_with_another_value_shows_the_claim_as_not_applicable(
    tuilab: Tuilab, probe: str
) -> None:
    path = Path(probe)
    path.write_text(path.read_text().replace("at_most=100", 'equals=10, at={"rows": 10}'))

    done = tuilab("run", probe, "--rows", "20", "--headless")

    assert done.returncode == 0, done.stderr
    assert "– NOT TESTABLE HERE  it is small  n/a: claimed for rows=10" in done.stdout
    assert "needs:" not in done.stdout + done.stderr


def test_each_point_is_a_run_like_any_other(tuilab: Tuilab, probe: str, root: Path) -> None:
    told = swept(tuilab, probe, "--set", "rows=10,20", "--set", "fast=yes,no")

    assert [run["point"] for run in told["runs"]] == [
        {"rows": r, "fast": f} for r in (10, 20) for f in (True, False)
    ]
    run = look(Path(told["runs"][3]["path"])).summary.run
    assert run and run.argv == ["run", probe, "--rows", "20", "--no-fast"]
    assert run.params == {"rows": 20, "fast": False, "token": ""}
    (claim,) = told["claims"]
    assert claim["holds"] == [
        "fast=true: holds at all 2 values",
        "fast=false: holds at all 2 values",
    ]
    said = tuilab(
        "sweep", "--resume", "last"
    ).stdout  # what was counted differs, so that each value is told
    assert (
        re.findall(r"rows=(\d+) .* SUPPORTED +measured (\d+)", said)
        == [("10", "10"), ("20", "20")] * 2
    )
    (found,) = json.loads(tuilab("runs", told["sweep"], "--json").stdout)["runs"][:1]
    assert found["run"] == told["runs"][3]["run"]


def test_points_that_failed_are_told_and_run_again_by_resume(
    tuilab: Tuilab, probe: str, tmp_path: Path
) -> None:
    first = swept(tuilab, probe, "--set", "rows=7,9", code=4)
    assert len(first["missing"]) == 1 and first["missing"][0].startswith("rows=7: failed")
    Path(probe).write_text(Path(probe).read_text().replace("rows == 7", "rows == -7"))

    again = swept(tuilab, "--resume", first["sweep"])

    assert again["sweep"] == first["sweep"] and again["missing"] == []
    assert [run["point"]["rows"] for run in again["runs"]] == [7, 9, 7]
    done = tuilab("sweep", "--resume", "last")
    assert done.returncode == 0 and "2 of 2 points" in done.stdout, done.stderr


def test_a_point_that_was_run_again_is_no_error_of_a_suite(tuilab: Tuilab, tmp_path: Path) -> None:
    fails_once = ("sh", "-c", f"test -e {tmp_path}/again || test $0 = 1", "{n}")
    assert tuilab("sweep", "--set", "n=1,2", "--", *fails_once).returncode == 4
    (tmp_path / "again").touch()
    assert tuilab("sweep", "--resume", "last").returncode == 0

    told = tuilab("report", "sweep-last", "-o", "-", "--as", "junit").stdout

    assert 'errors="0"' in told and told.count("<testsuite ") == 2


def test_one_that_is_interrupted_goes_on_where_it_was(
    tuilab: Tuilab, probe: str, root: Path, tmp_path: Path
) -> None:
    front = start(root, "sweep", probe, "--set", "rows=3,8,5")
    until(lambda: _is_at(root, 8))
    front.send_signal(signal.SIGINT)
    _, said = front.communicate(timeout=60)
    assert (
        front.returncode == 130
        and "2 points without a result; run the missing points: tuilab sweep --resume sweep-"
        in said
    )
    (tmp_path / "gate").touch()

    again = swept(tuilab, "--resume", "last")

    assert [(run["point"]["rows"], run["state"]) for run in again["runs"]] == [
        (3, "succeeded"), (8, "stopped"), (8, "succeeded"), (5, "succeeded")
    ]  # fmt: skip


def _is_at(root: Path, rows: int) -> bool:
    run_dir = newest(root)
    summary = look(run_dir).summary if run_dir else None
    return bool(
        summary and summary.run and summary.run.params.get("rows") == rows and summary.stages
    )


def test_what_goes_on_is_not_started_again(
    tuilab: Tuilab, probe: str, root: Path, tmp_path: Path
) -> None:
    queued = tuilab("sweep", probe, "--set", "rows=8,80", "--detach")
    assert len(queued.stdout.split()) == 2 and "sweep-" in queued.stderr
    until(lambda: len(sweeps.list_points(root)) == 2)

    done = tuilab("sweep", "--resume", "last")

    assert (
        done.returncode == 0 and "0 of 2 points" in done.stdout and "rows=8: running" in done.stdout
    ), done.stderr
    assert len(store.list_runs(root)) == 2
    (tmp_path / "gate").touch()
    until(lambda: all(look(folder).summary.is_over for folder in store.list_runs(root)))


def test_a_command_gets_its_values_where_their_names_stand(tuilab: Tuilab, tmp_path: Path) -> None:
    command = ("sh", "-c", 'echo "loss=$0" "{other} {}"', "{lr}")
    told = swept(tuilab, "--set", "lr=0.5,0.25", "--metric", "loss=loss=([0-9.]+)", "--", *command)

    assert [run["point"] for run in told["runs"]] == [{"lr": "0.5"}, {"lr": "0.25"}]
    run = look(Path(told["runs"][1]["path"])).summary.run
    assert (
        run
        and run.command == [*command[:3], "0.25"]
        and run.argv[:3] == ["exec", "--metric", "loss=loss=([0-9.]+)"]
    )
    assert "{other} {}" in (Path(told["runs"][1]["path"]) / "stdout.log").read_text()
    shown = tuilab("report", told["sweep"], "-o", "-", "--as", "md").stdout
    assert "last loss" in shown and re.search(r"lr=0.25 .*0\.25", shown)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--set", "rows=1,2"], "nothing to sweep; name a scenario"),
        (["PROBE"], "no values to sweep"),
        (["PROBE", "--set", "rows=1,x"], '"x" is not a whole number'),
        (["PROBE", "--set", "rows=1,0"], "0 is out of range"),
        (["PROBE", "--set", "rwos=1,2"], "did you mean rows"),
        (["PROBE", "--set", "rows=1,1e0"], "is not a whole number"),
        (["PROBE", "--set", "token=a,b"], "looks like a secret"),
        (["PROBE", "--set", "rows=1", "--metric", "a=(b)"], "--metric works only with a command"),
        (["stability", "--set", "rows=1,2"], "a sweep takes one scenario"),
        (["PROBE", "--set", "rows=1,2", "--", "true"], "sweep either a scenario or a command"),
        (["--set", "a=1,2", "--"], "no command after --"),
        (["--set", "a=1,2", "--", "echo"], "does not contain {a}"),
        (
            ["--set", "a=1,2", "--repeat", "3", "--", "echo", "{a}"],
            "--repeat works only with a scenario",
        ),
        (
            ["--set", "a=abcdefgh1,2", "--", "env", "API_KEY={a}", "true"],
            "a value looks like a secret in this command",
        ),
        (["--set", "a=1,2", "--", "no-such-command", "{a}"], "no command no-such-command"),
        (["--set", f"a={'x' * 7000},2", "--", "echo", "{a}"], "at most 6000"),
        (
            ["PROBE", "--set", "rows=1,2", "--detach", "--report", "x.html"],
            "--detach does not wait",
        ),
        (["PROBE", "--set", "rows=" + ",".join(map(str, range(1, 102))), "--detach"], "up to 100"),
        (["PROBE", "--set", "rows=1,2", "--report", "/nowhere/x.html"], "cannot write"),
        (["--resume", "last"], "is not a sweep"),
        (["--resume", "sweep-123456"], "is not a sweep"),
        (["PROBE", "--resume", "last"], "drop the name"),
        (["--resume", ""], "empty"),
    ],
)
def test_what_cannot_be_swept_is_told_before_anything_runs(
    tuilab: Tuilab, probe: str, root: Path, words: list[str], said: str
) -> None:
    done = tuilab("sweep", *(probe if word == "PROBE" else word for word in words))

    assert done.returncode in (2, 5) and said in done.stderr and done.stderr.count("\n") == 1, (
        done.stderr
    )
    assert store.list_runs(root) == []


def test_a_sweep_whose_scenario_takes_other_values_by_now_is_not_gone_on_with(
    tuilab: Tuilab, probe: str
) -> None:
    told = swept(tuilab, probe, "--set", "rows=7,9", code=4)
    Path(probe).write_text(Path(probe).read_text().replace("rows: int = 10", 'rows: str = "10"'))

    done = tuilab("sweep", "--resume", told["sweep"])

    assert done.returncode == 2 and "would use other values now" in done.stderr


def test_a_point_that_failed_is_not_decided_in_the_sentence(tuilab: Tuilab, probe: str) -> None:
    """As where the largest size has no memory: then nobody knows what holds from there on."""
    (claim,) = swept(tuilab, probe, "--set", "rows=1000,7,9", code=4)["claims"]

    assert claim["holds"] == ["holds at rows=9, not at rows=1000; not decided at rows=7"]
    assert [one["point"]["rows"] for one in claim["points"]] == [9, 1000]


def test_points_of_two_sources_are_told(tuilab: Tuilab, probe: str, tmp_path: Path) -> None:
    first = swept(tuilab, probe, "--set", "rows=7,9", code=4)
    Path(probe).write_text(Path(probe).read_text().replace("rows == 7", "rows == -7"))

    said = tuilab("sweep", "--resume", first["sweep"], "--quiet").stdout

    assert "The source changed between the points" in said
    for kind in ("md", "html"):
        assert (
            "The source changed between the points"
            in tuilab("report", "sweep-last", "-o", "-", "--as", kind).stdout
        )


def test_a_point_whose_record_is_damaged_leaves_the_others_a_sweep(
    tuilab: Tuilab, probe: str
) -> None:
    told = swept(tuilab, probe, "--set", "rows=5,6,9")
    stream = Path(told["runs"][1]["path"]) / "journal" / "supervisor.jsonl"
    lines = stream.read_bytes().splitlines(keepends=True)
    stream.write_bytes(b"".join([b"nonsense\n", *lines[1:]]))

    said = tuilab("report", "sweep-last", "-o", "-", "--as", "md").stdout

    damaged = stream.parts[-3].rpartition("-")[2]
    assert "along rows" in said and "2 of 3 points" in said
    assert f"rows=6: its values cannot be read from its recorded data ({damaged})" in said
    assert "What holds on this machine" not in said and "not decided at rows=6" in said


def test_what_came_of_a_sweep_is_for_programs_too(tuilab: Tuilab) -> None:
    told = swept(
        tuilab,
        "--set",
        "v=0.5,nan",
        "--metric",
        "loss=loss=(\\S+)",
        "--",
        "sh",
        "-c",
        'echo "loss=$0"',
        "{v}",
    )

    assert [run["last"] for run in told["runs"]] == [
        {"loss (printed)": 0.5},
        {"loss (printed)": "nan"},
    ]
    assert re.search(r"v=nan .*NaN", tuilab("report", "sweep-last", "-o", "-", "--as", "md").stdout)
    started = json.loads(
        tuilab("sweep", "--set", "v=1,2", "--detach", "--json", "--", "true", "{v}").stdout
    )
    assert checked_document(started)["sweep"].startswith("sweep-") and len(started["runs"]) == 2


def test_a_table_that_is_too_wide_loses_whole_columns(tmp_path: Path) -> None:
    story = events.TextShown(text=f"a step takes 1 ms\nbackward {'x' * 90}\nmore", title="steps")
    point = started(
        command=["x"], sweep=Sweep(id="sweep-1", values={"lr": ["0.1"]}, point={"lr": "0.1"})
    )
    loss = events.Logged(s=0, v={"loss": 1.124})
    run_dir = make_run(tmp_path, point, story, loss, events.StateChanged(state="succeeded"))

    assert fit_table(summed_up([read_subject(run_dir)]).numbers, 60) == [
        "        step  last loss  run",
        "lr=0.1  1 ms  1.124      abcdef",
        "left out for the width: where a step goes; a report has it",
    ]


def test_a_table_that_is_too_wide_loses_what_stands_behind_a_semicolon_first() -> None:
    rows = [
        ("", "step", "last loss", "run"),
        ("lr=0.1", "1 ms, mean of 9 steps; the median is 2 ms", "1.124", "abcdef"),
    ]

    assert fit_table(rows, 50) == [
        "        step                   last loss  run",
        "lr=0.1  1 ms, mean of 9 steps  1.124      abcdef",
    ]
    assert "; the median is 2 ms" in fit_table(rows, 80)[1]


def test_a_table_that_is_too_wide_though_it_has_few_columns_is_stacked() -> None:
    rows = [("", "step", "run"), ("data=" + "word " * 9, "1 ms", "abcdef")]

    assert fit_table(rows, 40) == [
        "data=word word word word word word word",
        "  word word",
        "  step  1 ms",
        "  run  abcdef",
    ]


# ---- found again


def test_sweeps_are_listed_with_what_came_of_their_points(
    tuilab: Tuilab, probe: str, root: Path
) -> None:
    assert tuilab("sweep").stdout.startswith("no sweeps yet")
    first = swept(tuilab, probe, "--set", "rows=7,9", code=4)["sweep"]
    second = swept(tuilab, "--set", "n=0,1", "--", "sh", "-c", "exit 0", "{n}")["sweep"]

    newest, oldest, count = tuilab("sweep").stdout.splitlines()

    assert newest.startswith(second) and newest.endswith(
        "  2 of 2 points done  sh -c 'exit 0' '{n}': n = 0, 1"
    )
    assert (
        oldest.startswith(first)
        and "  1 of 2 points done, 1 failed  " in oldest
        and oldest.endswith("/probe: rows = 7, 9")
    )
    assert count == "2 sweeps"
    told = checked_document(json.loads(tuilab("sweep", "--json").stdout))
    assert [one["points"] for one in told["sweeps"]] == [
        {"succeeded": 2},
        {"failed": 1, "succeeded": 1},
    ]
    assert "1 of 2 points" in tuilab("attach", "sweep-last~1").stdout
    assert "sweep-last~2 is not a sweep" in tuilab("attach", "sweep-last~2").stderr
    assert "sweep- is not a sweep" in tuilab("stop", "sweep-").stderr


def test_the_runs_of_a_sweep_tell_its_id_and_their_values(
    tuilab: Tuilab, probe: str, root: Path
) -> None:
    told = swept(tuilab, "--set", "n=0,1", "--", "sh", "-c", "exit 0", "{n}")["sweep"]
    swept(tuilab, probe, "--set", "rows=10")

    lines = tuilab("runs").stdout.splitlines()

    assert [line.split("  ")[-2] for line in lines[:3]] == ["rows=10", "n=1", "n=0"]
    assert [line.endswith(told) for line in lines[:3]] == [False, True, True]
    (found,) = json.loads(tuilab("runs", "n=1", "--json").stdout)["runs"]
    assert found["sweep"] == {"id": told, "point": {"n": "1"}}
    assert tuilab("runs", "sweep-last~1").stdout.splitlines()[:2] == lines[1:3]
    assert tuilab("runs", "!sweep-last~1", "sweep-last").stdout.splitlines()[:-1] == lines[:1]
    assert "0 of 3 runs match" in tuilab("runs", "sweep-last~2").stdout
    cells = [
        runline.line(read_entry.read_entry(run), Notes(), 120, 1.8e9, is_marked=False).plain
        for run in store.list_runs(root)
    ]
    assert ["rows=10" in cells[0], "n=1  sh" in cells[1], "n=0  sh" in cells[2]] == [True] * 3


def test_a_detached_sweep_is_followed_and_stopped(
    tuilab: Tuilab, root: Path, tmp_path: Path
) -> None:
    _queue(tuilab, tmp_path, "1,2,3")
    front = start(root, "attach", "sweep-last", "--quiet")
    done = json.loads(tuilab("stop", "sweep-last", "--json").stdout)

    said, _ = front.communicate(timeout=60)

    assert [one["done"].startswith("asked ") for one in checked_document(done)["runs"]] == [
        True
    ] * 3 and not done["is_ended"]
    assert front.returncode == 4 and "0 of 3 points" in said and "n=3: stopped" in said
    assert (
        "has no running points: 0 of 3 points done, 3 stopped"
        in tuilab("stop", "sweep-last").stdout
    )
    assert json.loads(tuilab("attach", "sweep-last", "--json").stdout)["exit_code"] == 4


def test_where_curves_end_along_the_values_is_drawn_in_text(tuilab: Tuilab) -> None:
    swept(tuilab, "--set", "n=1,2,400", "--metric", r"loss=loss (\S+)", "--", "echo", "loss {n}")

    assert "400┤" in tuilab("report", "sweep-last", "-o", "-", "--as", "md").stdout.replace(" ", "")


@pytest.mark.parametrize("now", [[], ["--now"]])
def test_a_sweep_that_is_stopped_from_another_terminal_begins_no_other_point(
    tuilab: Tuilab, root: Path, tmp_path: Path, now: list[str]
) -> None:
    front = start(root, "sweep", "--set", "n=1,2,3", "--", *_until(tmp_path / "gate"))
    until(lambda: "1 running" in tuilab("sweep").stdout or None)

    again = tuilab("sweep", "--resume", "last")
    assert (
        again.returncode == 2
        and "is still running: another `tuilab sweep` starts its points; tuilab attach sweep-"
        in again.stderr
    )
    done = tuilab("stop", "sweep-last", *now)
    told, said = front.communicate(timeout=60)

    assert (
        done.stdout.startswith("asked sweep-")
        and "no further point starts" in done.stdout
        and not done.stderr
    )
    assert (
        front.returncode == 130
        and "0 of 3 points" in told
        and "tuilab sweep --resume sweep-" in said
    )
    assert "n=3: no run found: not started, or deleted" in told
    assert "0 of 3 points done, 1 stopped, 2 not begun" in tuilab("sweep").stdout
    assert "has no running points" in tuilab("stop", "sweep-last").stdout


def test_who_ignores_ctrl_c_begins_the_next_point_and_is_named(
    tuilab: Tuilab, root: Path, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    front = start(
        root,
        "sweep",
        "--set",
        "n=1,2",
        "--",
        *_until(gate),
        preexec_fn=lambda: signal.signal(2, signal.SIG_IGN),
    )
    until(lambda: "1 running" in tuilab("sweep").stdout or None)

    done = tuilab("stop", "sweep-last")
    gate.touch()
    told, _ = front.communicate(timeout=60)

    assert (
        "asked" in done.stdout
        and "1 point not started: if its `tuilab sweep` is still running" in done.stderr
    )
    assert "1 of 2 points" in told


def _until(gate: Path) -> tuple[str, ...]:
    return "sh", "-c", f"until test -e {gate}; do sleep 0.02; done", "{n}"


def _queue(tuilab: Tuilab, folder: Path, values: str) -> None:
    """Have the points of a sweep wait for each other, and the first for a file."""
    assert (
        tuilab(
            "sweep", "--set", f"n={values}", "--detach", "--", *_until(folder / "gate")
        ).returncode
        == 0
    )


def _reads_a_run(pid: int) -> bool:
    with suppress(FileNotFoundError):  # a descriptor that has just been closed
        return any("/journal" in os.readlink(fd) for fd in Path(f"/proc/{pid}/fd").iterdir())
    return False


def test_who_leaves_a_sweep_leaves_it_going_on(tuilab: Tuilab, root: Path, tmp_path: Path) -> None:
    _queue(tuilab, tmp_path, "1,2")
    front = start(root, "attach", "sweep-last")
    assert front.stderr and "0 of 2 points done" in front.stderr.readline()
    until(lambda: _reads_a_run(front.pid))
    front.send_signal(signal.SIGINT)
    _, said = front.communicate(timeout=60)
    (tmp_path / "gate").touch()

    assert (
        front.returncode == 130
        and "continues in the background" in said
        and "stop it: tuilab stop sweep-" in said
    )
    assert "2 of 2 points" in tuilab("attach", "sweep-last").stdout


def test_a_sweep_that_goes_on_in_another_terminal_is_followed_from_point_to_point(
    tuilab: Tuilab, root: Path, tmp_path: Path
) -> None:
    front = start(root, "sweep", "--set", "n=1,2,3", "--", *_until(tmp_path / "gate"))
    until(lambda: list(root.glob("2*/journal")) or None)
    until(lambda: "0 of 3 points done, 1 running" in tuilab("sweep").stdout or None)
    beside = start(root, "attach", "sweep-last")
    assert beside.stderr and "0 of 3 points done" in beside.stderr.readline()
    until(lambda: _reads_a_run(beside.pid))
    (tmp_path / "gate").touch()

    told, said = beside.communicate(timeout=60)
    front.communicate(timeout=60)

    assert "3 of 3 points" in told and "without a result" not in said


def test_no_command_line_out_of_an_archive_is_run(tuilab: Tuilab, tmp_path: Path) -> None:
    """Who resumes a sweep does not see what it does."""
    left = (
        "sweep",
        "--set",
        "n=1,2",
        "--",
        "sh",
        "-c",
        f"echo x >>{tmp_path}/said; exit {{n}}",
        "{n}",
    )
    assert tuilab(*left).returncode == 4
    assert tuilab("export", "last", "-o", "run.tgz").returncode == 0
    assert tuilab("import", "run.tgz", "--root", "other").returncode == 0
    before = (tmp_path / "said").read_text()

    refused = tuilab("sweep", "--resume", "last", "--root", "other")

    assert refused.returncode == 2 and "comes from an archive" in refused.stderr
    assert (tmp_path / "said").read_text() == before


def test_a_record_of_more_points_than_a_sweep_can_have_is_of_none(root: Path) -> None:
    huge = Sweep(
        id="sweep-0a1b2c",
        values={name: [*range(1000)] for name in "abc"},
        point={"a": 1, "b": 1, "c": 1},
    )
    finished(root, {}, sweep=huge)

    with pytest.raises(UsageError, match="can no longer be read"):
        sweeps.find("sweep-0a1b2c", root)
    assert sweeps.newest(root, 9) == ([], 1)


def test_a_number_beyond_all_floats_is_no_place_along_a_setting() -> None:
    assert [number_of(value) for value in (10**400, "1e400", "nan", 3)] == [None, None, None, 3.0]


def test_records_line_by_line_are_those_of_a_run(tuilab: Tuilab, probe: str) -> None:
    swept(tuilab, probe, "--set", "rows=9")

    assert "--jsonl follows one run" in tuilab("attach", "sweep-last", "--jsonl").stderr


def test_a_point_whose_record_was_damaged_after_it_was_listed_is_run_again(
    tuilab: Tuilab, probe: str, root: Path
) -> None:
    told = swept(tuilab, probe, "--set", "rows=5,9")
    tuilab("runs")  # which remembers it as it was
    stream = Path(told["runs"][0]["path"]) / "journal" / "supervisor.jsonl"
    stream.write_bytes(b"nonsense\n" + b"".join(stream.read_bytes().splitlines(keepends=True)[1:]))

    assert [run["point"]["rows"] for run in swept(tuilab, "--resume", "last")["runs"]] == [9, 5]


# ---- how it is told


def test_a_sweep_of_which_one_point_ran_is_reported_as_one(tuilab: Tuilab, probe: str) -> None:
    swept(tuilab, probe, "--set", "rows=9,7", "--report", "at-its-end.md", code=4)
    shown = [tuilab("report", name, "-o", "-").stdout for name in ("sweep-last", "last~1")]

    assert ["along rows" in one for one in shown] == [True, False]


def test_the_table_of_a_report_has_the_values_of_points(
    tuilab: Tuilab, probe: str, root: Path
) -> None:
    swept(tuilab, "--set", "n=-1,=a", "--", "true", "{n}")
    swept(tuilab, probe, "--set", "rows=10")
    tuilab("run", probe, "--headless", "--quiet")

    rows = [
        *csv.DictReader(
            io.StringIO(
                tuilab(
                    "report", "sweep-last~1", "sweep-last", "last", "-o", "-", "--as", "csv"
                ).stdout
            )
        )
    ]

    assert {(row["point.n"], row["point.rows"]) for row in rows} == {
        ("-1", ""),
        ("'=a", ""),
        ("", "10"),
        ("", ""),
    }


LESSON = '''"""A probe.

A lesson.

## Look for
- [few] of 1,000 rows 100 are few
- [any] a claim of no number
- [seven] the 7 columns are narrow
- [one] 1 and 1 are 2
"""
from tuilab import Lab


def run(lab: Lab, rows: int = 1000, cols: int = 7, tied: int = 1) -> None:
    lab.claim("one", True)
    lab.claim("few", rows, at_most=100)
    lab.claim("any", True)
    lab.claim("seven", True)
'''


def test_a_claim_says_of_which_values_its_numbers_are(tuilab: Tuilab, tmp_path: Path) -> None:
    (tmp_path / "lesson.py").write_text(LESSON)

    settings = [
        word for setting in ("rows=5,1000", "cols=8", "tied=9") for word in ("--set", setting)
    ]
    claims = swept(tuilab, str(tmp_path / "lesson.py"), *settings, code=1)["claims"]
    few, any_, seven, one = claims

    assert (few["text"], few["about"]) == ("of 1,000 rows 100 are few", "as written for rows=1000")
    assert [each["about"] for each in (any_, seven, one)] == ["", "as written for cols=7", ""]
    for kind in ("md", "html"):
        assert (
            "as written for rows=1000"
            in tuilab("report", "sweep-last", "-o", "-", "--as", kind).stdout
        )


def test_each_verdict_is_told_with_what_it_rests_on(tuilab: Tuilab, probe: str) -> None:
    (claim,) = swept(tuilab, probe, "--set", "rows=10,1000", code=1)["claims"]

    assert [(one["verdict"], one["confidence"], one["measure"]) for one in claim["points"]] == [
        ("SUPPORTED", None, None), ("REFUTED", None, None)
    ]  # fmt: skip
    assert claim["points"][1]["why"] == "measured 1000, claimed at most 100"


def test_no_word_is_broken_and_nothing_is_wider_than_the_terminal(
    tuilab: Tuilab, tmp_path: Path
) -> None:
    text = " ".join(["remarkable"] * 20)
    (tmp_path / "lesson.py").write_text(LESSON.replace("a claim of no number", text))
    values = ",".join(map(str, range(1000, 1020)))
    tuilab("sweep", "lesson.py", "--set", f"rows={values}", "--quiet")

    for width in (40, 80, 120):
        lines = tuilab("attach", "sweep-last", env={"COLUMNS": str(width)}).stdout.splitlines()

        assert max(map(len, lines)) <= width
        assert {word for line in lines for word in line.split() if "remar" in word} == {
            "remarkable"
        }
        assert "…" not in "".join(lines)


def test_memory_of_a_command_is_told_with_our_own(tuilab: Tuilab, root: Path) -> None:
    tuilab("exec", "--headless", "--", "sleep", "0.1")

    assert "peak memory, with tuilab" in tuilab("attach", "last").stdout


def test_point_of_a_sweep_with_another_value_represents_no_scenario(root: Path) -> None:
    changed: dict[str, Any] = {"params": {"rows": 5}, "changed": ["rows"]}
    by_hand = finished(root, {}, at_s=1.5e9, end="aaaaaa", **changed)
    finished(
        root,
        {},
        at_s=1.6e9,
        end="bbbbbb",
        sweep=Sweep(id="sweep-1", values={"rows": [5]}, point={"rows": 5}),
        **changed,
    )

    assert representative_runs(Index(root)) == {"softmax": by_hand.name}
