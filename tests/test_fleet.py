"""Runs on other boxes, as far as no cluster is needed: which nodes can be used, what travels, what is taken of what comes."""

import os
import sys
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from tests.engine import write_scenario
from tests.test_archive import make_run
from tuilab import __version__
from tuilab.catalogue import catalog
from tuilab.engine import launch
from tuilab.engine.messages import Receipt
from tuilab.errors import BoxLacks, CannotRecord, UsageError
from tuilab.fleet.cluster import Asked, Node, Remote
from tuilab.fleet.host import Reading
from tuilab.fleet.mirror import Mirror
from tuilab.fleet.pieces import Piece, digest
from tuilab.fleet.seat import Seat, Task
from tuilab.fleet.travel import files_of
from tuilab.fleet.wanted import Wanted, chosen
from tuilab.record import presence
from tuilab.record.live_run import Watch
from tuilab.record.origin import carried
from tuilab.record.origin.carried import Carrier
from tuilab.runs import ledger, store

Tuilab = Callable[..., "CompletedProcess[str]"]


def node(name: str, **more: object) -> Node:
    facts = {"cpus": 2.0, "gpus": 1.0, "tuilab": __version__, "python": "3.11.7", "torch": "2.13.0", **more}
    return Node(name, name, **facts)  # type: ignore[arg-type]


def me() -> Carrier:
    identity = presence.identify(os.getpid())
    assert identity
    return Carrier(identity, "far")


def test_nodes_that_cannot_be_used_are_left_out_with_the_reason() -> None:
    told: list[str] = []
    nodes = [
        node("good"), node("old", tuilab="0.0.1"), node("bare", tuilab=""), node("mute", lacks="it did not answer"),
        node("small", gpus=0.0), node("idle", cpus=0.0),
    ]  # fmt: skip

    assert [one.name for one in chosen(nodes, Wanted(gpus=1.0), told.append)] == ["good"]
    assert [words.partition(" ")[0] for words in told] == ["old", "bare", "mute", "small", "idle"]
    assert "0.0.1" in told[0] and "no tuilab" in told[1] and "did not answer" in told[2] and "--gpus 1" in told[3]


def test_nodes_that_are_not_alike_are_told() -> None:
    told: list[str] = []

    chosen([node("a"), node("b", torch="2.9.0")], Wanted(), told.append)

    assert told == [
        "the nodes are not alike, and what they measure may differ for that: "
        "a Python 3.11.7, torch 2.13.0; b Python 3.11.7, torch 2.9.0"
    ]


def test_too_few_nodes_are_refused() -> None:
    with pytest.raises(UsageError, match="more than the 1 node "):
        chosen([node("a")], Wanted(count=2), lambda _: None)
    with pytest.raises(BoxLacks):
        chosen([node("a", tuilab="")], Wanted(), lambda _: None)


def test_what_a_scenario_imports_from_beside_it_travels(tmp_path: Path) -> None:
    (tmp_path / "one.py").write_text("import two, json\nfrom . import nothing\n")
    (tmp_path / "two.py").write_text("import one\n")
    (tmp_path / "three.py").write_text("")
    path = write_scenario(tmp_path, "import one")
    (scenario,) = catalog.find([], str(path))

    assert sorted(files_of(launch.order(scenario, {}, root=tmp_path))) == ["one.py", "probe.py", "two.py"]
    path.unlink()
    with pytest.raises(UsageError, match="cannot read"):
        files_of(launch.order(scenario, {}, root=tmp_path))


@pytest.mark.parametrize(
    "name", ["../out", "/etc/x", "journal/../../x", "other/file", "journal/.hidden.jsonl", "journal/x.txt", "imported"]
)
def test_no_file_of_a_node_lands_elsewhere_than_in_the_run(tmp_path: Path, name: str) -> None:
    mirror = Mirror(tmp_path / "runs" / "run", me())
    before = sorted(tmp_path.rglob("*"))

    mirror.take([Piece(name, 0, b"x")])

    assert sorted(tmp_path.rglob("*")) == before and mirror.known == {}


def test_pieces_make_the_file_and_what_is_wrong_is_brought_over_again(tmp_path: Path) -> None:
    there, mirror = tmp_path / "there.log", Mirror(tmp_path / "run", me())
    there.write_bytes(b"abcdef")
    pieces = [Piece("stdout.log", 0, b"abc"), Piece("stdout.log", 3, b"def"), Piece("stderr.log", 0, b"")]
    mirror.take([*pieces, Piece("stdout.log", 3, b"again")])

    assert (tmp_path / "run" / "stdout.log").read_bytes() == b"abcdef" and mirror.known == {"stdout.log": 6, "stderr.log": 0}
    assert mirror.forget_wrong({"stdout.log": digest(there)})
    there.write_bytes(b"abcXYZ")
    assert not mirror.forget_wrong({"stdout.log": digest(there)})
    mirror.take([Piece("stdout.log", 0, b"abcXYZ")])
    assert mirror.forget_wrong({"stdout.log": digest(there)})


def test_a_link_in_the_place_of_a_file_is_not_followed(tmp_path: Path) -> None:
    mirror = Mirror(tmp_path / "run", me())
    (tmp_path / "mine").write_text("mine")
    (tmp_path / "run" / "stdout.log").symlink_to(tmp_path / "mine")

    with pytest.raises(CannotRecord, match="cannot write"):
        mirror.take([Piece("stdout.log", 0, b"theirs")])
    assert (tmp_path / "mine").read_text() == "mine"


def test_a_run_lives_as_long_as_who_carries_it(root: Path) -> None:
    run_dir = make_run(root, "20270115T080000000Z-tour-aaaaaa", is_over=False, host="far-away", node="far")
    before = Watch(run_dir)
    before.catch_up()
    assert before.supervisor_presence == "elsewhere"

    carried.write(run_dir, me())
    watch = Watch(run_dir)
    watch.catch_up()
    assert (watch.state(), ledger.read(run_dir).state) == ("running", "running")
    assert launch.stop(run_dir).startswith("asked ") and carried.asked_to_stop(run_dir) == ""
    launch.stop(run_dir, at_once=True)
    assert carried.asked_to_stop(run_dir) == carried.AT_ONCE

    carrier = me()
    carrier.is_over = True
    carried.write(run_dir, carrier)
    assert (watch.state(), ledger.read(run_dir).state) == ("lost", "lost")


@pytest.mark.parametrize("words", [["--per-node"], ["--count", "2"], ["--gpus", "1"], ["--address", "x:1"]])
def test_what_is_for_a_cluster_is_refused_without_one(tuilab: Tuilab, root: Path, words: list[str]) -> None:
    done = tuilab("run", "xyy", *words)

    assert done.returncode == 2 and f"{words[0]} is for --engine ray" in done.stderr
    assert store.list_runs(root) == []


def test_without_ray_the_sentence_says_what_to_install(tuilab: Tuilab, tmp_path: Path) -> None:
    (tmp_path / "without").mkdir()
    (tmp_path / "without" / "ray.py").write_text("raise ImportError('no ray here')")
    paths = os.pathsep.join([str(tmp_path / "without"), os.environ["PYTHONPATH"]])

    done = tuilab("run", "xyy", "--engine", "ray", env={"PYTHONPATH": paths})

    assert done.returncode == 3 and "pip install 'tuilab[ray]'" in done.stderr and done.stderr.count("\n") == 1, done.stderr
    assert "ray" not in sys.modules


class Asks(Remote):
    """A host on a node that is asked, and answers when the test does."""

    def __init__(self) -> None:
        self.questions: list[str] = []

    def ask(self, what: str, *given: object, **named: object) -> Asked:
        self.questions.append(what)
        return Asked(object())


def seated(root: Path, tmp_path: Path) -> tuple[Seat, Asks]:
    """Return a node that has been asked to start a run."""
    (scenario,) = catalog.find([], str(write_scenario(tmp_path, "pass")))
    remote = Asks()
    seat = Seat(node("far"), remote, me().process)
    seat.take(True)
    seat.begin(Task(launch.order(scenario, {}, root=root)))
    return seat, remote


@pytest.mark.parametrize("name", ["..", ".", "", "notes", "/", "a\0b"])
def test_a_run_that_is_called_like_none_is_not_taken(root: Path, tmp_path: Path, name: str) -> None:
    seat, _ = seated(root, tmp_path)

    assert seat.take(Receipt(run_dir=f"/there/{name}"))
    assert "which is no name of one" in seat.problem and seat.mirror is None and not root.exists()


def test_what_differs_at_the_end_is_brought_over_again_and_told_in_the_end(root: Path, tmp_path: Path) -> None:
    seat, remote = seated(root, tmp_path)
    assert not seat.take(Receipt(run_dir="/there/20270115T080000000Z-probe-abcdef"))

    for _ in range(3):
        seat.heed()
        assert not seat.take(Reading([Piece("stdout.log", 0, b"")], is_over=True))
        is_over = seat.take({"stdout.log": "another digest"})

    assert is_over and seat.problem == "not all of its files are here as they are there"
    assert remote.questions == ["is_there", "start", *["read", "digests"] * 3]


def test_a_run_that_is_to_stop_is_told_so_once_and_then_at_once(root: Path, tmp_path: Path) -> None:
    seat, remote = seated(root, tmp_path)
    seat.take(Receipt(run_dir="/there/20270115T080000000Z-probe-abcdef"))
    assert seat.mirror
    carried.ask_to_stop(seat.mirror.run_dir, at_once=False)
    seat.heed()
    seat.heed()
    seat.wanted = carried.AT_ONCE
    seat.heed()

    assert remote.questions == ["is_there", "start", "stop", "read", "stop"]
