"""Runs side by side on the command line."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess
from zlib import crc32

import pytest

from tests.made_runs import finished, make_run, started
from tests.report_aids import checked_document
from tuilab.record import events
from tuilab.runs.comparing.claim_pairs import ClaimPair, Shift, Side
from tuilab.runs.comparing.comparison import Comparison, regressions

Tuilab = Callable[..., "CompletedProcess[str]"]
JOURNALS = Path(__file__).parent / "journals"


def put(root: Path, name: str, end: str, **exchanged: str) -> Path:
    """Copy a recorded run into a folder of runs; words in its records may be exchanged."""
    run_dir = root / f"20270115T080000000Z-{name}-{end}"
    shutil.copytree(JOURNALS / name, run_dir)
    for path in (run_dir / "journal").glob("*.jsonl") if exchanged else ():
        bodies = [line.partition(" ")[2] for line in path.read_text().splitlines()]
        for old, new in exchanged.items():
            bodies = [body.replace(f'"{old}"', f'"{new}"') for body in bodies]
        path.write_text("".join(f"{crc32(body.encode()):08x} {body}\n" for body in bodies))
    return run_dir


def test_two_runs_that_came_out_alike_differ_in_nothing(tuilab: Tuilab, root: Path) -> None:
    for end in ("aaaaaa", "bbbbbb"):
        put(root, "tour", end)

    done = tuilab("compare", "aaaaaa", "bbbbbb", "--fail-on", "difference")
    assert (done.returncode, done.stderr) == (0, "")
    assert "The same: 5 claims" in done.stdout and "Different" not in done.stdout
    assert "all  SUPPORTED" in done.stdout and "┌" not in done.stdout


def test_a_claim_that_came_out_worse_is_a_regression_and_the_other_way_round_only_a_difference(
    tuilab: Tuilab, root: Path
) -> None:
    put(root, "tour", "aaaaaa")
    put(root, "tour", "bbbbbb", SUPPORTED="REFUTED")

    worse = tuilab("compare", "aaaaaa", "bbbbbb", "--fail-on", "regression")
    better = tuilab("compare", "bbbbbb", "aaaaaa", "--fail-on", "regression")
    other = tuilab("compare", "bbbbbb", "aaaaaa", "--fail-on", "difference")
    plain = tuilab("compare", "aaaaaa", "bbbbbb")
    assert [done.returncode for done in (worse, better, other, plain)] == [1, 0, 1, 0]
    assert (
        "regression: 2 runs of tour: run 2: the picture has a hole: REFUTED, was SUPPORTED"
        in worse.stdout
    )


def test_the_folders_of_two_boxes_are_compared_scenario_by_scenario(
    tuilab: Tuilab, tmp_path: Path
) -> None:
    for box in ("one", "two"):
        put(tmp_path / box, "tour", "aaaaaa", box=box)
        put(tmp_path / box, "not-a-number", "bbbbbb")
    put(tmp_path / "one", "outliers", "cccccc")

    told = checked_document(
        json.loads(tuilab("compare", str(tmp_path / "one"), str(tmp_path / "two"), "--json").stdout)
    )
    assert [one["scenarios"] for one in told["comparisons"]] == [
        ["tour", "tour"],
        ["not-a-number", "not-a-number"],
    ]
    assert told["not_in_all"] == ["outliers"]
    tour = told["comparisons"][0]
    assert {"part": "environment", "name": "host", "values": ["one", "two"]} in tour["differences"]
    assert [run["host"] for run in tour["runs"]] == ["one", "two"]


def test_runs_of_two_boxes_are_told_by_the_names_of_these(tuilab: Tuilab, root: Path) -> None:
    words = ["aaaaaa", "bbbbbb"]
    for box, name in zip(("one", "two"), words, strict=True):
        put(root, "tour", name, box=box)

    assert "in 2 runs on 2 machines" in tuilab("compare", *words).stdout
    assert "run 1, one | run 2, two |" in tuilab("report", *words, "-o", "-", "--as", "md").stdout
    assert (
        '<th scope="col">run 2, two</th>'
        in tuilab("report", *words, "-o", "-", "--as", "html").stdout
    )


def test_runs_of_several_boxes_are_found_with_several_roots(tuilab: Tuilab, tmp_path: Path) -> None:
    put(tmp_path / "one", "tour", "aaaaaa")
    put(tmp_path / "two", "tour", "bbbbbb")

    done = tuilab(
        "compare",
        "aaaaaa",
        "bbbbbb",
        "--root",
        str(tmp_path / "one"),
        "--root",
        str(tmp_path / "two"),
    )
    assert done.returncode == 0 and "aaaaaa" in done.stdout and "bbbbbb" in done.stdout


def test_the_run_before_the_last_has_a_name(tuilab: Tuilab, root: Path) -> None:
    put(root, "tour", "aaaaaa")
    put(root, "tour", "bbbbbb")

    shown = tuilab("compare", "last~1", "last").stdout.splitlines()
    assert [line.split()[1] for line in shown[1:3]] == ["aaaaaa", "bbbbbb"]
    assert "there are only 2 runs" in tuilab("compare", "last~2", "last").stderr


def test_curves_are_overlaid_and_plain_in_an_ascii_locale(tuilab: Tuilab, root: Path) -> None:
    for end in ("aaaaaa", "bbbbbb"):
        put(root, "tour", end)

    rich = tuilab("compare", "aaaaaa", "bbbbbb", "--plot", env={"LC_ALL": "C.UTF-8"})
    plain = tuilab("compare", "aaaaaa", "bbbbbb", "--plot", env={"LC_ALL": "C"})
    assert "┌" in rich.stdout and " 1" in rich.stdout
    assert plain.stdout.isascii() and "+----" in plain.stdout


@pytest.mark.parametrize(
    ("ending", "words"),
    [(".html", "side by side"), (".md", "| claim |"), (".json", "tuilab.compare/1")],
)
@pytest.mark.first(1)
def test_a_comparison_is_written_as_a_report(
    tuilab: Tuilab, root: Path, tmp_path: Path, ending: str, words: str
) -> None:
    for end in ("aaaaaa", "bbbbbb"):
        put(root, "tour", end)
    target = tmp_path / f"both{ending}"

    done = tuilab("compare", "aaaaaa", "bbbbbb", "-o", str(target), "--fail-on", "difference")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", f"1 comparison: {target}\n")
    assert words.lower() in target.read_text().lower()


def test_a_comparison_has_no_other_formats(tuilab: Tuilab, root: Path) -> None:
    assert (
        "a comparison cannot be written to x.csv; use the extension .html, .md or .json"
        in tuilab("compare", "a", "b", "-o", "x.csv").stderr
    )


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        (("aaaaaa",), 2, "name a second run, or tag a baseline"),
        (("aaaaaa", "nothing"), 2, "no run named nothing"),
        (("aaaaaa", "./nowhere"), 2, "./nowhere is not a folder"),
        (("aaaaaa", "/"), 2, "there are no runs in /"),
        (("aaaaaa", "aaaaaa", "--fail-on", "x"), 2, "--fail-on"),
        (("a\x1b]0;x\x07", "aaaaaa"), 2, "no run named a\ufffd"),
    ],
)
def test_a_mistake_is_one_sentence(
    tuilab: Tuilab, root: Path, words: tuple[str, ...], code: int, sentence: str
) -> None:
    put(root, "tour", "aaaaaa")

    done = tuilab("compare", *words)
    assert done.returncode == code and sentence in done.stderr and done.stderr.count("\n") == 1


def _compared(first: Side, other: Side, shift: Shift | None) -> Comparison:
    pair = ClaimPair("it is faster", "", (first, other), (shift,))
    return Comparison(("a", "a"), (), 0, (pair,), (), {}, (), (), ())


@pytest.mark.parametrize(
    ("op", "shift", "count"),
    [
        ("at_least", Shift(0.8, 0.7, 0.9), 1),
        ("at_least", Shift(1.2, 1.1, 1.3), 0),
        ("at_most", Shift(1.2, 1.1, 1.3), 1),
        ("at_least", Shift(0.8, 0.7, 1.1), 0),
        ("at_least", Shift(0.8, 0.7, 0.9, lone=2), 0),
        ("between", Shift(0.8, 0.7, 0.9), 0),
        ("at_least", None, 0),
    ],
)
def test_an_estimate_is_worse_only_beyond_its_interval_and_over_processes(
    op: str, shift: Shift | None, count: int
) -> None:
    side = Side("SUPPORTED", 2.0, 1.9, 2.1, op=op)

    assert len(regressions(_compared(side, side, shift))) == count


@pytest.mark.parametrize(
    ("verdict", "count"),
    [("REFUTED", 1), ("INVALID", 1), ("INCONCLUSIVE", 0), ("NOT TESTABLE HERE", 0)],
)
def test_what_could_not_be_told_is_no_regression(verdict: str, count: int) -> None:
    assert len(regressions(_compared(Side("SUPPORTED"), Side(verdict), None))) == count


def test_one_run_alone_is_compared_with_its_reference(tuilab: Tuilab, root: Path) -> None:
    put(root, "tour", "aaaaaa")
    put(root, "tour", "bbbbbb")
    put(root, "tour", "cccccc", SUPPORTED="REFUTED")
    without = tuilab("compare", "cccccc")
    tuilab("note", "aaaaaa", "--tag", "baseline")

    done = tuilab("compare", "cccccc", "--fail-on", "regression")
    sides = [
        [line.split()[:2] for line in printed.splitlines()[1:3]]
        for printed in (without.stdout, done.stdout)
    ]
    assert (without.returncode, done.returncode) == (0, 1)
    assert sides == [[["1", "bbbbbb"], ["2", "cccccc"]], [["1", "aaaaaa"], ["2", "cccccc"]]]


def test_a_claim_that_a_run_has_not_decided_yet_is_no_difference(
    tuilab: Tuilab, root: Path
) -> None:
    finished(root, {"it holds": "SUPPORTED"}, end="aaaaaa")
    open_claim = events.ClaimDeclared(
        text="it holds", over="a", under="b", op="at_least", bound=2.0
    )
    make_run(
        root, started(is_alive=True), open_claim, events.StateChanged(state="running"), end="bbbbbb"
    )
    ended = make_run(root, started(), open_claim, events.StateChanged(state="failed"), end="cccccc")

    going, over = (
        tuilab("compare", "aaaaaa", end, "--fail-on", "regression").stdout
        for end in ("bbbbbb", ended.name)
    )
    assert (
        "Not decided yet: 1 claim" in going
        and "2  not decided yet" in going
        and "different verdicts" not in going
    )
    assert "Different: 1 claim" in over and "2  not judged" in over and "different verdicts" in over
