"""What is kept for people, where an older and a newer tuilab keep it in one place: neither does harm to the other."""

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.made_runs import identity, make_run, started
from tuilab.doctor import Box, lab
from tuilab.engine.requeue import queue_again
from tuilab.errors import CannotRecord, UsageError
from tuilab.judging import calibration_file
from tuilab.judging.calibration_file import Trials
from tuilab.record import presence
from tuilab.record.events import StateChanged
from tuilab.runs import lesson_score, notes, queue
from tuilab.runs.lesson_score import LearnedLesson
from tuilab.runs.queue import Ticket
from tuilab.storage import places, user_data
from tuilab.tui.state import settings
from tuilab.tui.state.settings import Settings

TRIALS = {"over 6 processes": Trials(9, 0, 9, 9)}
NEWER = "it was written by a newer tuilab (format 2); upgrade tuilab"


@pytest.fixture(autouse=True)
def own_root(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TUILAB_ROOT", str(root))
    monkeypatch.setattr("socket.gethostname", lambda: "HOST")
    user_data.complaints()


def rewrite(path: str | Path, **more: Any) -> None:
    """Do as a newer tuilab that has more to say."""
    Path(path).write_text(json.dumps({**json.loads(Path(path).read_text()), **more}))


def ticket(run_dir: Path, place: float = 1.0, **more: Any) -> Ticket:
    me = identity(is_alive=True)
    return Ticket(
        run=run_dir.name,
        name="a/b",
        devices=["cores"],
        supervisor=me,
        place=place,
        since_ns=1,
        **more,
    )


def waiting_run(root: Path, end: str, state: str = "queued", **more: Any) -> Path:
    return make_run(root, started(is_alive=True, **more), StateChanged(state=state), end=end)


def test_choices_that_a_newer_tuilab_added_stay_when_an_older_one_keeps_its_own() -> None:
    settings.save(Settings(theme="nord"))
    rewrite(places.settings_file(), mood="bright")

    settings.save(Settings(theme="dracula"))

    found = json.loads(Path(places.settings_file()).read_text())
    assert (found["theme"], found["mood"]) == ("dracula", "bright")
    assert settings.load() == Settings(theme="dracula")


def test_a_calibration_leaves_those_of_other_boxes_and_what_a_newer_tuilab_says_of_this_one_hurts_nothing() -> (
    None
):
    calibration_file.save(TRIALS, process_sd=0.01)
    ours = json.loads(Path(places.calibration_file()).read_text())["HOST"]
    rewrite(places.calibration_file(), OTHER=[1], HOST={**ours, "kinds": ["new"], "seen": None})

    assert calibration_file.load().trials_of_method == TRIALS
    calibration_file.save(TRIALS)

    assert calibration_file.load().process_sd == 0.01
    assert json.loads(Path(places.calibration_file()).read_text())["OTHER"] == [1]
    assert user_data.complaints() == []


def test_a_note_and_a_lesson_of_a_newer_tuilab_are_read_as_far_as_they_are_known(
    tmp_path: Path,
) -> None:
    user_data.append_line(
        tmp_path / notes.FILE, {"wall_s": 1.0, "text": "hm", "tags": ["good"], "by": "ann"}, 1000
    )
    os.makedirs(os.path.dirname(places.score_file()))
    user_data.append_line(
        places.score_file(), {**vars(LearnedLesson("mul", "a")), "mood": "new"}, 1000
    )

    assert notes.read(tmp_path) == notes.Notes([(1.0, "hm")], ["good"])
    assert lesson_score.read() == {"mul": LearnedLesson("mul", "a")}
    assert user_data.complaints() == []


KINDS: dict[str, tuple[Callable[[], str], Callable[[Path], object]]] = {
    "settings": (places.settings_file, lambda run_dir: settings.load()),
    "calibration": (places.calibration_file, lambda run_dir: calibration_file.load()),
    "notes": (lambda: f"{places.runs_folder()}/RUN/{notes.FILE}", notes.read),
    "lessons": (places.score_file, lambda run_dir: lesson_score.read()),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_newer_format_is_told_and_left_as_it_is(root: Path, kind: str) -> None:
    run_dir = make_run(root, started())
    path, ask = KINDS[kind]
    place = Path(str(path()).replace("RUN", run_dir.name))
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text('{"format": 2, "text": {}}\n')

    ask(run_dir)
    told = user_data.complaints()
    settings.save(Settings())
    if kind == "calibration":
        with pytest.raises(CannotRecord, match="newer tuilab"):
            calibration_file.save(TRIALS)
    notes.add(run_dir, "more")

    assert told == [f"{place} cannot be used: {NEWER}"]
    assert place.read_text().startswith('{"format": 2, "text": {}}\n')


def test_what_cannot_be_read_is_set_aside_and_told_once(root: Path) -> None:
    calibration_file.save(TRIALS)
    path = Path(places.calibration_file())
    path.write_text("{broken")

    assert lab.calibrated(Box()).found.startswith(f"{path} cannot be used: ")
    calibration_file.save(TRIALS)

    (told,) = user_data.complaints()
    (aside,) = path.parent.glob("calibration.json.unusable-*")
    assert aside.read_text() == "{broken" and aside.name in told
    assert user_data.complaints() == []


def test_a_note_behind_a_torn_line_is_a_line_of_its_own(tmp_path: Path) -> None:
    (tmp_path / notes.FILE).write_text('{"wall_s": 1.0, "text": "to')

    notes.add(tmp_path, "whole")

    assert [text for _, text in notes.read(tmp_path).texts] == ["whole"]
    assert user_data.complaints() == [
        f"{tmp_path / notes.FILE} cannot be used: 1 line of it cannot be read"
    ]


def test_note_that_finds_no_room_in_its_file_names_the_limit(tmp_path: Path) -> None:
    (tmp_path / notes.FILE).write_text("\n" * 256 * 1024)

    with pytest.raises(UsageError, match="note: the file has reached its limit of 256 KiB"):
        notes.add(tmp_path, "one more")


# ---- the queue


def test_what_a_newer_tuilab_put_into_its_ticket_stays_when_an_older_one_moves_it(
    root: Path,
) -> None:
    first, second = (waiting_run(root, end) for end in ("aaaaaa", "bbbbbb"))
    for run_dir in (first, second):
        queue.enter(root, ticket(run_dir))
        rewrite(root / queue.FOLDER / f"{run_dir.name}.json", mood="calm")

    queue.move(root, second.name, 1)

    assert [one.run for one in queue.waiting(root)] == [second.name, first.name]
    moved = [json.loads(path.read_text()) for path in sorted((root / queue.FOLDER).iterdir())]
    assert [(one["place"], one["mood"]) for one in moved] == [(2.0, "calm"), (1.0, "calm")]


@pytest.mark.parametrize(
    "content", ['{"format": 2, "devices": {"cores": 1}}', "{", '{"run": "another"}']
)
@pytest.mark.parametrize(
    ("state", "came_first", "may_begin"),
    [
        ("running", False, False),
        ("queued", True, False),
        ("queued", False, True),
        ("succeeded", True, True),
    ],
)
def test_a_run_whose_ticket_cannot_be_read_is_waited_for_while_it_goes_on(
    root: Path, content: str, state: str, came_first: bool, may_begin: bool
) -> None:
    other, own = waiting_run(root, "aaaaaa", state), waiting_run(root, "bbbbbb")
    for run_dir in (other, own) if came_first else (own, other):
        queue.enter(root, ticket(run_dir))
        if run_dir == other:
            (root / queue.FOLDER / f"{other.name}.json").write_text(content)

    assert queue.begin(root, own.name) is may_begin
    assert f"{other.name}.json cannot be used: " in user_data.complaints()[0]


def test_where_its_record_is_of_a_newer_tuilab_too_its_processes_are_waited_for(root: Path) -> None:
    other, own = waiting_run(root, "aaaaaa", format=99), waiting_run(root, "bbbbbb")
    (root / queue.FOLDER).mkdir()
    (root / queue.FOLDER / f"{other.name}.json").write_text('{"format": 2}')
    queue.enter(root, ticket(own))

    marked = {**os.environ, presence.MARK: other.name}
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE, env=marked):
        assert not queue.begin(root, own.name)
    assert queue.begin(root, own.name)


def test_a_run_whose_own_ticket_is_garbled_waits_for_others_all_the_same(root: Path) -> None:
    first, own = waiting_run(root, "aaaaaa", "running"), waiting_run(root, "bbbbbb")
    queue.enter(root, ticket(first, has_begun=True))
    queue.enter(root, ticket(own))
    (root / queue.FOLDER / f"{own.name}.json").write_text("garbled")

    assert not queue.begin(root, own.name)
    queue.leave(root, first.name)
    assert queue.begin(root, own.name)


@pytest.mark.parametrize("order", [{"mood": "calm"}, {"root": 3}])
def test_an_order_of_a_newer_tuilab_is_not_carried_out_in_part(
    root: Path, order: dict[str, Any]
) -> None:
    run_dir = waiting_run(root, "aaaaaa")
    lost = ticket(run_dir, order=order)
    lost.supervisor = identity(is_alive=False)
    queue.enter(root, lost)

    with pytest.raises(UsageError, match=r"aaaaaa cannot be queued again: .*; run it again"):
        list(queue_again(root))


def test_who_tells_of_one_file_takes_no_other_complaint_away() -> None:
    user_data.complain("/box/notes", "a line of it is torn")
    user_data.complain("/box/calibration", "it is empty")

    assert (
        user_data.complaint_about("/box/calibration")
        == "/box/calibration cannot be used: it is empty"
    )
    assert user_data.complaint_about("/box/settings") == ""
    assert user_data.complaints() == ["/box/notes cannot be used: a line of it is torn"]
