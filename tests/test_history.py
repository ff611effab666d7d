"""The list of runs on the command line: choosing among them, notes and tags, deleting many."""

import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import msgspec
import pytest
from click.testing import CliRunner

from tests.engine import newest, until, write_scenario
from tests.file_damage import obeying_permissions
from tests.made_runs import make_run as records_of
from tests.made_runs import started
from tests.test_archive import make_run
from tuilab.cli import subcommands
from tuilab.errors import CannotRecord
from tuilab.record.events import Identity, RunDescribed, StateChanged, VerdictReached
from tuilab.record.finding_words import for_how_long
from tuilab.record.folding.fold import fold
from tuilab.record.origin.imported import mark_imported
from tuilab.runs import notes, read_entry
from tuilab.runs.index import Index
from tuilab.tui.widgets.history import runline

Tuilab = Callable[..., "CompletedProcess[str]"]


def name_of(age_s: float, end: str, scenario: str = "tour") -> str:
    return (
        time.strftime("%Y%m%dT%H%M%S000Z", time.gmtime(time.time() - age_s)) + f"-{scenario}-{end}"
    )


@pytest.fixture
def three(root: Path) -> Path:
    """Three runs: of an hour, a day and a month ago; that of yesterday is lost."""
    make_run(root, name_of(3600, "aaaaaa"))
    make_run(root, name_of(86400, "bbbbbb"), is_over=False, host=os.uname().nodename)
    make_run(root, name_of(30 * 86400, "cccccc"))
    return root


def ids(done: "CompletedProcess[str]") -> list[str]:
    assert done.returncode == 0, done.stderr
    return [run["run"][-6:] for run in json.loads(done.stdout)["runs"]]


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ((), ["aaaaaa", "bbbbbb", "cccccc"]),
        (("--limit", "2"), ["aaaaaa", "bbbbbb"]),
        (("--since", "2d"), ["aaaaaa", "bbbbbb"]),
        (("--since", "1990-01-01"), ["aaaaaa", "bbbbbb", "cccccc"]),
        (("--state", "lost"), ["bbbbbb"]),
        (("--state", "lost", "--state", "succeeded", "--since", "2w"), ["aaaaaa", "bbbbbb"]),
        (("--verdict", "refuted"), ["aaaaaa", "bbbbbb", "cccccc"]),
        (("--verdict", "invalid"), []),
        (("--scenario", "tour"), ["aaaaaa", "bbbbbb", "cccccc"]),
        (("--scenario", "journals/tour", "--limit", "1"), ["aaaaaa"]),
        (("--scenario", "softmax"), []),
        (("--tag", "good"), []),
    ],
)
@pytest.mark.first(6)
def test_options_choose_among_the_runs(
    tuilab: Tuilab, three: Path, words: tuple[str, ...], found: list[str]
) -> None:
    assert ids(tuilab("runs", "--json", *words)) == found


def test_runs_of_several_boxes_stand_in_one_list(
    tuilab: Tuilab, three: Path, tmp_path: Path
) -> None:
    make_run(tmp_path / "other", name_of(60, "dddddd"))

    done = tuilab("runs", "--json", "--root", str(three), "--root", str(tmp_path / "other"))
    assert ids(done) == ["dddddd", "aaaaaa", "bbbbbb", "cccccc"]


def test_runs_of_several_machines_in_one_folder_are_listed_with_their_machine(
    tuilab: Tuilab, root: Path
) -> None:
    over = StateChanged(state="succeeded")
    own = started(supervisor=Identity(host=os.uname().nodename, boot="b", pid=1, start=1))
    records_of(root, own, over, at_s=1.5e9, end="aaaaaa")
    alone = tuilab("runs").stdout
    records_of(
        root,
        started(supervisor=Identity(host="gpu1", boot="b", pid=1, start=1)),
        over,
        at_s=1.6e9,
        end="bbbbbb",
    )
    imported = records_of(
        root,
        started(supervisor=Identity(host="gpu2", boot="b", pid=1, start=1)),
        over,
        end="cccccc",
    )
    mark_imported(imported)

    lines = tuilab("runs").stdout.splitlines()
    assert "@" not in alone
    assert [line.partition("@")[2] for line in lines[:3]] == ["", "gpu1", os.uname().nodename]
    assert [run["host"] for run in json.loads(tuilab("runs", "--json").stdout)["runs"]] == [
        None,
        "gpu1",
        os.uname().nodename,
    ]
    assert tuilab("runs", "@gpu1").stdout.startswith("bbbbbb")


def test_a_note_and_its_tags_are_shown_found_and_taken_off(tuilab: Tuilab, three: Path) -> None:
    tuilab("note", "aaaaaa", "the", "good", "one", "--tag", "good", "--tag", "h100")
    tuilab("note", "aaaaaa", "--untag", "h100")

    shown = tuilab("note", "aaaaaa").stdout.splitlines()
    assert shown[0] == "aaaaaa  #good" and shown[1].endswith("Z  the good one") and len(shown) == 2
    assert ids(tuilab("runs", "--json", "--tag", "good")) == ["aaaaaa"]
    assert "#good  the good one" in tuilab("runs").stdout
    assert tuilab("verify", "aaaaaa").stdout.count("problem") == tuilab(
        "verify", "cccccc"
    ).stdout.count("problem")


def test_a_note_that_steers_a_terminal_does_not(tuilab: Tuilab, three: Path) -> None:
    tuilab("note", "aaaaaa", "\x1b]0;evil\x07")
    with open(three / newest_name(three) / notes.FILE, "ab") as file:
        file.write(b'{"text": "\\u001b[2J"}\n\xff\xfe\n[1]\n{"tags": [1, "../x"]}\n')

    shown = tuilab("note", "aaaaaa").stdout + tuilab("runs").stdout
    assert "\x1b" not in shown and "n/a" in shown


def newest_name(root: Path) -> str:
    run_dir = newest(root)
    assert run_dir is not None
    return run_dir.name


@pytest.mark.parametrize(
    "words", [("--tag", "two words"), ("--tag", "../x"), ("--tag", ""), ("x" * 2001,)]
)
def test_a_note_that_cannot_be_is_one_sentence(
    tuilab: Tuilab, three: Path, words: tuple[str, ...]
) -> None:
    done = tuilab("note", "aaaaaa", *words)

    assert done.returncode == 2 and done.stderr.count("\n") == 1
    assert notes.read(three / newest_name(three)) == notes.Notes()


def test_a_planted_link_is_not_written_through(tuilab: Tuilab, three: Path, tmp_path: Path) -> None:
    (three / newest_name(three) / notes.FILE).symlink_to(tmp_path / "elsewhere")

    assert tuilab("note", "aaaaaa", "text").returncode == 5
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.parametrize(
    ("words", "left"),
    [
        (("--older-than", "7d"), ["aaaaaa", "bbbbbb"]),
        (("--keep", "1"), ["aaaaaa"]),
        (("--older-than", "2h", "--keep", "2"), ["aaaaaa", "bbbbbb"]),
        (("--keep", "0"), []),
        (("--older-than", "52w"), ["aaaaaa", "bbbbbb", "cccccc"]),
    ],
)
@pytest.mark.first(1)
def test_many_runs_are_deleted_only_when_that_is_meant(
    tuilab: Tuilab, three: Path, words: tuple[str, ...], left: list[str]
) -> None:
    asked = tuilab("rm", *words)

    assert ids(tuilab("runs", "--json")) == ["aaaaaa", "bbbbbb", "cccccc"]
    assert f"would delete {3 - len(left)} run" in asked.stdout
    assert f"deleted {3 - len(left)} run" in tuilab("rm", *words, "--yes").stdout
    assert ids(tuilab("runs", "--json")) == left


def test_a_run_that_cannot_be_deleted_keeps_no_other_from_it(three: Path) -> None:
    (_, middle, _) = sorted(three.glob("*-*"))
    (middle / "artifacts" / "closed" / "x").mkdir(parents=True)
    (middle / "artifacts" / "closed").chmod(0o500)
    with obeying_permissions():
        done = CliRunner().invoke(
            subcommands.tuilab, ["rm", "--keep", "0", "--yes", "--root", str(three)]
        )
    (middle / "artifacts" / "closed").chmod(0o700)

    assert isinstance(done.exception, CannotRecord)
    assert "deleted 2 runs" in done.stdout and "kept: cannot delete" in done.stdout
    assert [run_dir.name for run_dir in three.glob("*-*")] == [middle.name]


def test_a_run_that_goes_on_survives_every_sweep(
    tuilab: Tuilab, three: Path, tmp_path: Path
) -> None:
    tuilab("run", str(write_scenario(tmp_path, "time.sleep(600)")), "--detach")
    going = newest_name(three)

    done = tuilab("rm", "--keep", "0", "--yes")
    assert "deleted 3 runs" in done.stdout and "stop it first" in done.stdout
    assert newest_name(three) == going
    tuilab("stop", "last", "--now")
    until(lambda: "deleted" in tuilab("rm", "last").stdout)


def test_what_is_remembered_of_a_run_deletes_none(tuilab: Tuilab, root: Path) -> None:
    """The memory says that it succeeded; its record, that it goes on."""
    run_dir = records_of(root, started(), StateChanged(state="succeeded"))
    index = Index(root)
    index.read(run_dir.name)
    index.save()
    going = records_of(root / "elsewhere", started(is_alive=True), StateChanged(state="running"))
    (going / "journal" / "supervisor.jsonl").replace(run_dir / "journal" / "supervisor.jsonl")

    done = tuilab("rm", "--keep", "0", "--yes")
    assert done.stdout.splitlines()[0].startswith("deleted 0 runs")
    assert "kept: abcdef is running; stop it first: tuilab stop abcdef" in done.stdout
    assert run_dir.is_dir()


@pytest.mark.parametrize(
    "words",
    [(), ("aaaaaa", "--keep", "1"), ("--older-than", "x"), ("--older-than", "5"), ("--keep", "-1")],
)
def test_deleting_needs_to_know_what(tuilab: Tuilab, three: Path, words: tuple[str, ...]) -> None:
    done = tuilab("rm", *words)

    assert done.returncode == 2 and done.stderr.count("\n") == 1
    assert len(os.listdir(three)) >= 3


def test_the_shell_is_offered_runs_with_what_they_are(tuilab: Tuilab, three: Path) -> None:
    done = tuilab(
        env={
            "_TUILAB_COMPLETE": "bash_complete",
            "COMP_WORDS": "tuilab compare ",
            "COMP_CWORD": "2",
        }
    )

    assert [line.partition(",")[2] for line in done.stdout.splitlines()] == [
        "last",
        "last~1",
        "aaaaaa",
        "bbbbbb",
        "cccccc",
    ]


def test_a_run_with_much_to_say_about_its_claims_is_listed_to_its_end(root: Path) -> None:
    """Its supervisor's stream, and its judge's, are megabytes long."""
    texts = [f"{number} {'x' * 3900}" for number in range(600)]
    described = [RunDescribed(claims=texts[at : at + 10]) for at in range(0, 600, 10)]
    reached = [VerdictReached(text=text, verdict="SUPPORTED", rule="r") for text in texts]

    run_dir = records_of(root, started(), *described, *reached, StateChanged(state="succeeded"))

    entry = read_entry.read_entry(run_dir)
    assert (run_dir / "journal" / "supervisor.jsonl").stat().st_size > 4_000_000
    assert entry.state == "succeeded" and {verdict for _, verdict in entry.claims} == {"SUPPORTED"}


@pytest.mark.parametrize(
    ("states", "took", "told", "in_words"),
    [
        (["queued"], None, " waits", ""),
        (["queued", "starting"], 30, " s", "for 1 s"),
        (["queued", "stopped"], 0, " 0.0 s", "in 1 s"),
    ],
)
def test_how_long_a_run_waited_in_the_queue_is_not_how_long_it_took(
    root: Path, states: list[str], took: float | None, told: str, in_words: str
) -> None:
    changes = [StateChanged(state=state) for state in states]
    run_dir = records_of(root, started(is_alive=True), *changes, at_s=time.time() - 3630)
    hour = [
        msgspec.structs.replace(change, t=1 + at * 3600 * 10**9)
        for at, change in enumerate(changes)
    ]
    summary = fold([("supervisor", started(t=1)), *(("supervisor", change) for change in hour)])
    entry = read_entry.entry_of(run_dir, summary, summary.state)

    assert entry.elapsed_at(time.time()) == (None if took is None else pytest.approx(took, abs=5))
    assert told in runline.line(entry, notes.Notes(), 80, time.time(), is_marked=False).plain
    assert told in CliRunner().invoke(subcommands.tuilab, ["runs", "--root", str(root)]).output
    assert for_how_long("1 s", entry.state) == in_words
