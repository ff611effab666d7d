"""Runs as they were recorded when the format was 1: whatever comes later opens them, in every view.

tests/goldens has what the command line prints of them; a record's new fields and new kinds must not change any of this.
"""

import json
import shutil
from pathlib import Path

import pytest

from tests.transcripts import FORMAT_1
from tests.tui.screens import opened, press, text
from tuilab.judging.integrity import examine
from tuilab.record.live_run import read_run
from tuilab.record.summary import RunSummary
from tuilab.reports.reported_run import read_subject
from tuilab.reports.write_report import ENDINGS, write
from tuilab.runs import read_entry
from tuilab.runs.archive.pack import pack
from tuilab.runs.archive.unpack import unpack
from tuilab.runs.comparing.comparison import compare
from tuilab.tui.state.run_source import Replay

VERDICTS = {
    "20261121T223331195Z-softmax-5e129d": ["SUPPORTED"] * 9,
    "20261121T223335184Z-row-reduce-abbc91": ["SUPPORTED"] * 5 + ["INCONCLUSIVE", "SUPPORTED"],
    "20261121T223458225Z-fails-eec319": ["NOT TESTABLE HERE", "SUPPORTED", ""],
}
RUNS = [FORMAT_1 / name for name in VERDICTS]
of_each = pytest.mark.parametrize(
    "run_dir", RUNS, ids=lambda run_dir: run_dir.name.split("-", 1)[1]
)


def verdicts_of(summary: RunSummary) -> list[str]:
    return [claim.verdict.verdict if claim.verdict else "" for claim in summary.claims.values()]


@of_each
def test_it_is_whole_and_its_verdicts_follow(run_dir: Path) -> None:
    assert examine(run_dir).wrong == []
    assert verdicts_of(read_run(run_dir)) == VERDICTS[run_dir.name]


@of_each
def test_a_list_of_runs_tells_it(run_dir: Path) -> None:
    entry = read_entry.read_entry(run_dir)

    assert entry.state == ("failed" if entry.scenario == "fails" else "succeeded")
    assert [verdict for _, verdict in entry.claims] == VERDICTS[run_dir.name]


@of_each
def test_it_plays_again_to_its_end(run_dir: Path) -> None:
    playback = Replay(run_dir)
    while not playback.is_caught_up:
        playback.read()
    playback.seek(1)

    assert verdicts_of(playback.summary) == VERDICTS[run_dir.name]


@of_each
@pytest.mark.parametrize("ending", [ending for ending, kind in ENDINGS.items() if kind != "trace"])
@pytest.mark.first(8)
def test_every_report_is_written(run_dir: Path, ending: str, tmp_path: Path) -> None:
    write([read_subject(run_dir)], str(tmp_path / f"run{ending}"), ENDINGS[ending])

    found = [
        path for path in (tmp_path / f"run{ending}", *tmp_path.rglob("events.*")) if path.is_file()
    ]
    assert sum(path.stat().st_size for path in found) > 100


def test_its_blocks_are_written_as_a_trace(tmp_path: Path) -> None:
    write([read_subject(RUNS[1])], str(tmp_path / "run.trace.json"), "trace")

    shown = json.loads((tmp_path / "run.trace.json").read_text())["traceEvents"]
    assert {"index", "unbind", "sum"} <= {event["name"] for event in shown if event["ph"] == "X"}


@of_each
def test_it_is_compared_with_itself(run_dir: Path) -> None:
    found = compare([read_run(run_dir), read_run(run_dir)])

    assert [pair.has_other_verdicts for pair in found.claims] == [False] * len(
        VERDICTS[run_dir.name]
    )


@of_each
def test_it_is_packed_and_unpacked(run_dir: Path, tmp_path: Path) -> None:
    pack(run_dir, tmp_path / "run.tgz")
    unpacked = unpack(tmp_path / "run.tgz", tmp_path / "other")

    assert examine(unpacked.run_dir).wrong == []


@of_each
async def test_the_screens_show_it_and_play_it(run_dir: Path, tmp_path: Path) -> None:
    root = tmp_path / "runs"
    shutil.copytree(run_dir, root / run_dir.name)
    async with opened(root, "h", "enter", size=(120, 40)) as pilot:
        shown = text(pilot)
        await press(pilot, "space")
        replayed = text(pilot)

    title = read_run(run_dir).run
    assert title is not None and title.scenario in shown
    assert "playing" in replayed
