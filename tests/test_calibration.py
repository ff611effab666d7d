"""The calibration: what trials without a difference, and with a known one, say of this lab on this box."""

import math
import os
import random
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tests.engine import write_scenario
from tuilab.catalogue.source import read
from tuilab.cli.verbs import calibrate
from tuilab.engine import launch
from tuilab.engine.create_run import open_run
from tuilab.errors import CannotRecord
from tuilab.judging import calibration, calibration_file
from tuilab.judging.calibration_file import Calibration, Trials
from tuilab.record import events
from tuilab.record.folding.fold import fold
from tuilab.record.journal.lines import Item
from tuilab.record.live_run import read_run
from tuilab.record.summary import RunSummary
from tuilab.storage import files, places


def trials(
    ratio: float,
    processes: int = 12,
    races: int = 3,
    rounds: int = 8,
    luck: float = 0.0,
    more: float = 0.0,
) -> RunSummary:
    """Return the summary of a calibration run in which `left` takes `ratio` times as long as `right`, give or take luck.

    With more luck than that, the first race is of another kind.
    """
    generator = random.Random(1)
    items: list[tuple[str, Item]] = []
    for process in range(processes):
        writer = f"worker-{process}"
        items.append(
            ("supervisor", events.WorkerStarted(writer=writer, pid=1, start=1, repeat=process))
        )
        for race in range(races):
            lucky = ratio * math.exp(generator.gauss(0, luck if race else luck + more))
            left, right = (
                f"{side} {'loop' if race or not more else 'memory'} {race}"
                for side in ("left", "right")
            )
            started = events.RaceStarted(
                arms=[left, right], threads=1, device="cpu", loops={}, base=right, delay=0.05
            )
            items.append((writer, started))
            slots: list[tuple[str, events.Control, float]] = [
                (left, "", lucky), (right, "", 1), (right, "same", 1), (right, "delayed", 1.05),
            ]  # fmt: skip
            for number in range(rounds):
                for arm, control, factor in slots:
                    wall_ns = int(1e7 * factor * math.exp(generator.gauss(0, 0.005)))
                    block = events.BlockTimed(
                        arm=arm, round=number, slot=0, loops=1, wall_ns=wall_ns, cpu_ns=1
                    )
                    block.control = control
                    items.append((writer, block))
            items.append((writer, events.RaceFinished(arms=[left, right])))
    return fold(items)


def test_calibrations_that_end_at_once_lose_none(tmp_path: Path) -> None:
    """Forks, so that they meet: without a lock hardly half of them are kept."""
    gpus = [f"gpu-{number}" for number in range(40)]
    parts = [gpus[start::4] for start in range(4)]
    children = [_keep_in_fork(part) for part in parts]
    ends = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]

    assert ends == [0] * 4
    assert sorted(calibration_file.load_gpus()) == sorted(gpus)


def _keep_in_fork(gpus: list[str]) -> int:
    if child := os.fork():
        return child
    try:
        for gpu in gpus:
            calibration_file.save(
                {"over 6 processes": Trials(1, 0, 1, 1, 0.01)}, 0.02, gpu, "Fake GPU"
            )
    except BaseException:
        os._exit(1)
    os._exit(0)


def test_calibration_is_not_saved_while_another_process_has_the_lock(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Without the lock, one of the two would overwrite the entry of the other."""
    monkeypatch.setenv("TUILAB_ROOT", str(tmp_path / "runs"))
    monkeypatch.setattr(calibration_file, "_LOCK_TIMEOUT_S", 0.0)
    calibration_file.save({"over 6 processes": Trials(1, 0, 1, 1, 0.01)}, 0.02)
    path = Path(places.calibration_file())
    before = path.read_bytes()

    with files.locked(path.parent, 0.0) as has_lock:
        assert has_lock
        with pytest.raises(CannotRecord) as refused:
            calibration_file.save({"over 6 processes": Trials(9, 0, 9, 9, 0.01)}, 0.05)

    assert "another process has locked the folder" in str(refused.value)
    assert "then calibrate again" in str(refused.value)
    assert path.read_bytes() == before
    calibration_file.save({"over 6 processes": Trials(9, 0, 9, 9, 0.01)}, 0.05)
    assert calibration_file.load().process_sd == 0.05


def test_without_a_difference_there_are_no_false_verdicts_and_the_delay_is_seen() -> None:
    found = calibration.assess(trials(ratio=1.0)).trials_of_method

    within, over = found["within one process"], found["over 6 processes"]
    assert (within.trials, within.false) == (36, 0)
    assert (over.trials, over.false, over.seen) == (6, 0, 6)
    assert over.smallest_effect is not None and 0.001 < over.smallest_effect < 0.02


def test_a_lab_that_finds_differences_everywhere_is_told_so() -> None:
    found = calibration.assess(trials(ratio=1.1)).trials_of_method

    assert found["over 6 processes"].false == 6


@pytest.mark.parametrize("ratio", [1.03, 1.1, 1 / 1.03])
def test_a_small_false_difference_is_found_in_either_direction(ratio: float) -> None:
    """3 % is the margin itself: only the claim of a bound of 1 is wrong then."""
    assert calibration.assess(trials(ratio=ratio)).trials_of_method["over 6 processes"].false == 6


def test_trials_on_a_disturbed_box_are_as_inconclusive_as_its_verdicts() -> None:
    summary = trials(ratio=1.1)
    for blocks in summary.blocks.values():
        for block in blocks[::2]:
            block.is_disturbed = True
    found = calibration.assess(summary).trials_of_method["over 6 processes"]

    assert (found.trials, found.false, found.seen) == (6, 0, 0)


def test_the_luck_of_a_process_is_measured_and_kept(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Each process is off by 2 % at random: what --quick cannot see of itself."""
    monkeypatch.setenv("TUILAB_ROOT", str(tmp_path / "runs"))
    found = calibration.assess(trials(ratio=1.0, processes=30, luck=0.02))
    calibration_file.save(found.trials_of_method, found.process_sd)

    assert found.process_sd == pytest.approx(0.02, rel=0.3)
    assert calibration_file.load().process_sd == found.process_sd
    assert (
        found.trials_of_method["within one process"].false
        <= 0.05 * found.trials_of_method["within one process"].trials + 4
    )


@pytest.mark.slow
def test_the_luck_is_that_of_the_kind_of_work_which_has_most() -> None:
    found = calibration.assess(trials(ratio=1.0, processes=40, races=7, luck=0.01, more=0.05))

    assert found.process_sd == pytest.approx(0.06, rel=0.3)


def test_a_calibration_too_short_to_tell_the_luck_of_a_process_leaves_it_as_it_was_measured(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TUILAB_ROOT", str(tmp_path / "runs"))

    calibration_file.save({"over 6 processes": Trials(60, 0, 60, 60)}, 0.02)
    calibration_file.save({"over 6 processes": Trials(6, 0, 6, 6)}, None)

    kept = calibration_file.load()
    assert (kept.process_sd, kept.trials_of_method["over 6 processes"].trials) == (0.02, 6)


def test_a_few_processes_tell_no_luck() -> None:
    assert calibration.assess(trials(ratio=1.0, processes=3)).process_sd is None


def test_trials_that_share_their_processes_say_so() -> None:
    lines = calibration.describe_trials(calibration.assess(trials(ratio=1.0)).trials_of_method)

    assert lines[0].startswith(
        "within one process: 0 false verdicts in 36 trials of 12 processes without a difference; "
    )
    assert lines[1].startswith(
        "over 6 processes: 0 false verdicts in 6 trials of 12 processes without a difference; "
    )


def test_what_was_counted_once_is_told_in_the_singular() -> None:
    (line,) = calibration.describe_trials(
        {"over 6 processes": Trials(1, 1, 1, 1, 0.01, processes=6)}
    )

    assert line.startswith(
        "over 6 processes: 1 false verdict in 1 trial of 6 processes without a difference; "
    )


def test_the_luck_by_which_quick_widens_is_told_with_the_calibration(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TUILAB_ROOT", str(tmp_path / "runs"))
    monkeypatch.setenv("COLUMNS", "200")
    calibration_file.save({"over 6 processes": Trials(1, 0, 1, 1, 0.01)}, 0.039)
    shown = CliRunner().invoke(calibrate.command, ["--show"]).output

    assert shown.endswith(
        "variation between processes, by which --quick widens its intervals: about 3.9 %\n"
    )
    assert calibration.describe_process_sd(None).endswith(
        "widens its intervals: n/a (too few processes), 5 % is assumed"
    )


def test_each_box_has_its_own_calibration(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TUILAB_ROOT", str(tmp_path / "runs"))
    monkeypatch.setattr("socket.gethostname", lambda: "one")
    calibration_file.save({"over 6 processes": Trials(1, 0, 1, 1, 0.01)})
    monkeypatch.setattr("socket.gethostname", lambda: "two")
    before = calibration_file.load()
    calibration_file.save({"over 6 processes": Trials(2, 0, 2, 2, 0.02)})

    assert before.trials_of_method == {}
    monkeypatch.setattr("socket.gethostname", lambda: "one")
    assert calibration_file.load().trials_of_method == {
        "over 6 processes": Trials(1, 0, 1, 1, 0.01)
    }


def test_a_damaged_calibration_is_none(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TUILAB_ROOT", str(tmp_path / "runs"))
    (tmp_path / "calibration.json").write_text('{"vm": ')

    assert calibration_file.load() == Calibration()


def test_a_box_whose_part_is_damaged_hurts_no_other(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TUILAB_ROOT", str(tmp_path / "runs"))
    monkeypatch.setattr("socket.gethostname", lambda: "one")
    kept = '{"over 6 processes": {"trials": 1, "false": 0, "delays": 1, "seen": 1, "smallest_effect": 0.01}, "wall_s": 5}'
    (tmp_path / "calibration.json").write_text(
        f'{{"one": {kept}, "two": {{"over 6 processes": {{"trials": 5}}}}}}'
    )

    assert calibration_file.load() == Calibration(
        {"over 6 processes": Trials(1, 0, 1, 1, 0.01)}, 5.0
    )
    monkeypatch.setattr("socket.gethostname", lambda: "two")
    assert calibration_file.load() == Calibration()


def test_trials_that_were_too_short_to_tell_have_no_smallest_difference() -> None:
    (line,) = calibration.describe_trials({"over 6 processes": Trials(1, 0, 0, 0)})

    assert line.endswith("; smallest detectable difference: n/a")


@pytest.mark.parametrize(
    ("options", "expected"),
    [({"is_quick": True}, 0.012), ({"repeats": 1}, 0.012), ({"repeats": 6}, None)],
    ids=str,
)
def test_a_run_of_one_process_keeps_how_far_off_that_may_be(
    options: dict[str, Any], expected: float | None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TUILAB_ROOT", str(tmp_path / "runs"))
    calibration_file.save({"over 6 processes": Trials(1, 0, 1, 1, 0.01)}, process_sd=0.012)
    scenario = read(write_scenario(tmp_path, 'lab.claim("one-is-one", True)'))
    opened = open_run(launch.order(scenario, {}, root=tmp_path / "runs", **options))

    summary = read_run(opened.run_dir)
    assert summary.run is not None and summary.run.luck == expected
