"""Runs on other boxes, as far as no cluster is needed: which nodes can be used, what travels, what is taken of what comes."""

import os
import socket
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from subprocess import CompletedProcess
from tempfile import TemporaryDirectory

import pytest

from tests.engine import read_stream, write_scenario
from tests.made_runs import started
from tests.test_archive import make_run
from tuilab import __version__
from tuilab.catalogue import catalog
from tuilab.engine import launch, messages
from tuilab.engine.messages import (
    ArmOrder,
    NodeSpread,
    Place,
    RankNode,
    Receipt,
    WorkerOrder,
    WorkerResult,
)
from tuilab.errors import BoxLacks, CannotRecord, ExitCode, UsageError
from tuilab.fleet.cluster import Node, NodeRequest, Remote, _unique_names
from tuilab.fleet.file_pieces import FilePiece, digest
from tuilab.fleet.host import RunNews
from tuilab.fleet.mirror import Mirror
from tuilab.fleet.node_run import NodeRun, Task
from tuilab.fleet.placement import FleetPlacement, chosen
from tuilab.fleet.rank_calls import Calls
from tuilab.fleet.rank_node_run import RankNodeRun
from tuilab.fleet.ship_sources import check_ranks, files_of
from tuilab.lab.arms import ArmFailed
from tuilab.lab.group import _prefixes
from tuilab.lab.ranks import _first_error
from tuilab.record import events, presence
from tuilab.record.finding_words import ranks_words, unmeasured
from tuilab.record.folding.fold import fold
from tuilab.record.journal.writer import Writer
from tuilab.record.live_run import Watch
from tuilab.record.origin import carried
from tuilab.record.origin.carried import Carrier
from tuilab.runs import read_entry, store

Tuilab = Callable[..., "CompletedProcess[str]"]


def node(name: str, **more: object) -> Node:
    facts = {
        "cpus": 2.0,
        "gpus": 1.0,
        "tuilab": __version__,
        "python": "3.11.7",
        "torch": "2.13.0",
        **more,
    }
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

    assert [one.name for one in chosen(nodes, FleetPlacement(gpus=1.0), told.append)] == ["good"]
    assert [words.partition(" ")[0] for words in told] == ["old", "bare", "mute", "small", "idle"]
    assert (
        "0.0.1" in told[0]
        and "tuilab is not installed" in told[1]
        and "did not answer" in told[2]
        and "--gpus 1" in told[3]
    )


def test_nodes_that_are_not_alike_are_told() -> None:
    told: list[str] = []

    chosen([node("a"), node("b", torch="2.9.0")], FleetPlacement(), told.append)

    assert told == [
        "the nodes have different software, so their results may differ: "
        "a Python 3.11.7, torch 2.13.0; b Python 3.11.7, torch 2.9.0"
    ]


def test_too_few_nodes_are_refused() -> None:
    with pytest.raises(UsageError, match="--count 2 is too many: 1 node "):
        chosen([node("a")], FleetPlacement(count=2), lambda _: None)
    with pytest.raises(BoxLacks):
        chosen([node("a", tuilab="")], FleetPlacement(), lambda _: None)


def test_what_a_scenario_imports_from_beside_it_travels(tmp_path: Path) -> None:
    (tmp_path / "one.py").write_text("import two, json\nfrom . import nothing\n")
    (tmp_path / "two.py").write_text("import one\n")
    (tmp_path / "three.py").write_text("")
    path = write_scenario(tmp_path, "import one")
    (scenario,) = catalog.find([], str(path))

    assert sorted(files_of(launch.order(scenario, {}, root=tmp_path))) == [
        "one.py",
        "probe.py",
        "two.py",
    ]
    path.unlink()
    with pytest.raises(UsageError, match="cannot read"):
        files_of(launch.order(scenario, {}, root=tmp_path))


@pytest.mark.parametrize(
    "name",
    [
        "../out",
        "/etc/x",
        "journal/../../x",
        "other/file",
        "journal/.hidden.jsonl",
        "journal/x.txt",
        "imported",
    ],
)
def test_no_file_of_a_node_lands_elsewhere_than_in_the_run(tmp_path: Path, name: str) -> None:
    mirror = Mirror(tmp_path / "runs" / "run", me())
    before = sorted(tmp_path.rglob("*"))

    mirror.take([FilePiece(name, 0, b"x")])

    assert sorted(tmp_path.rglob("*")) == before and mirror.known == {}


def test_pieces_make_the_file_and_what_is_wrong_is_brought_over_again(tmp_path: Path) -> None:
    there, mirror = tmp_path / "there.log", Mirror(tmp_path / "run", me())
    there.write_bytes(b"abcdef")
    pieces = [
        FilePiece("stdout.log", 0, b"abc"),
        FilePiece("stdout.log", 3, b"def"),
        FilePiece("stderr.log", 0, b""),
    ]
    mirror.take([*pieces, FilePiece("stdout.log", 3, b"again")])

    assert (tmp_path / "run" / "stdout.log").read_bytes() == b"abcdef" and mirror.known == {
        "stdout.log": 6,
        "stderr.log": 0,
    }
    of_empty = {"stderr.log": digest(tmp_path / "run" / "stderr.log")}
    assert mirror.forget_wrong({"stdout.log": digest(there), **of_empty})
    there.write_bytes(b"abcXYZ")
    assert not mirror.forget_wrong({"stdout.log": digest(there), **of_empty})
    mirror.take([FilePiece("stdout.log", 0, b"abcXYZ")])
    assert mirror.forget_wrong({"stdout.log": digest(there), **of_empty})
    assert not mirror.forget_wrong(
        {"stdout.log": digest(there)}
    )  # a node that is silent about a file has not said it is whole


def test_a_link_in_the_place_of_a_file_is_not_followed(tmp_path: Path) -> None:
    mirror = Mirror(tmp_path / "run", me())
    (tmp_path / "mine").write_text("mine")
    (tmp_path / "run" / "stdout.log").symlink_to(tmp_path / "mine")

    with pytest.raises(CannotRecord, match="cannot write"):
        mirror.take([FilePiece("stdout.log", 0, b"theirs")])
    assert (tmp_path / "mine").read_text() == "mine"


def test_a_run_lives_as_long_as_who_carries_it(root: Path) -> None:
    run_dir = make_run(
        root, "20260115T080000000Z-tour-aaaaaa", is_over=False, host="far-away", node="far"
    )
    before = Watch(run_dir)
    before.catch_up()
    assert before.supervisor_presence == "elsewhere"

    carried.write(run_dir, me())
    watch = Watch(run_dir)
    watch.catch_up()
    assert (watch.state(), read_entry.read_entry(run_dir).state) == ("running", "running")
    assert launch.stop(run_dir).startswith("asked ") and carried.asked_to_stop(run_dir) == ""
    launch.stop(run_dir, at_once=True)
    assert carried.asked_to_stop(run_dir) == carried.AT_ONCE

    carrier = me()
    carrier.is_over = True
    carried.write(run_dir, carrier)
    assert (watch.state(), read_entry.read_entry(run_dir).state) == ("lost", "lost")


@pytest.mark.parametrize("words", [["--per-node"], ["--count", "2"]])
def test_a_sweep_has_one_result_a_point(tuilab: Tuilab, root: Path, words: list[str]) -> None:
    done = tuilab("sweep", "operator-table", "--set", "length=1,2", "--engine", "ray", *words)

    assert done.returncode == 2 and f"no option {words[0]}" in done.stderr
    assert store.list_runs(root) == []
    assert f"{words[0]} " not in tuilab("sweep", "--help").stdout


@pytest.mark.parametrize(
    "words",
    [["--per-node"], ["--count", "2"], ["--nnodes", "2"], ["--gpus", "1"], ["--address", "x:1"]],
)
def test_what_is_for_a_cluster_is_refused_without_one(
    tuilab: Tuilab, root: Path, words: list[str]
) -> None:
    done = tuilab("run", "xyy", *words)

    assert done.returncode == 2 and f"{words[0]} works only with --engine ray" in done.stderr
    assert store.list_runs(root) == []


def test_without_ray_the_sentence_says_what_to_install(tuilab: Tuilab, tmp_path: Path) -> None:
    (tmp_path / "without").mkdir()
    (tmp_path / "without" / "ray.py").write_text("raise ImportError('no ray here')")
    paths = os.pathsep.join([str(tmp_path / "without"), os.environ["PYTHONPATH"]])

    done = tuilab("run", "xyy", "--engine", "ray", env={"PYTHONPATH": paths})

    assert (
        done.returncode == 3
        and "pip install 'tuilab[ray]'" in done.stderr
        and done.stderr.count("\n") == 1
    ), done.stderr
    assert "ray" not in sys.modules


@pytest.mark.parametrize(
    ("variable", "step"),
    [
        ("RAY_AUTH_MODE", "copy ~/.ray/auth_token"),
        ("RAY_AUTH_TOKEN", "set RAY_AUTH_TOKEN to its token"),
    ],
)
def test_a_refused_token_is_reported_in_one_sentence(
    tuilab: Tuilab, tmp_path: Path, variable: str, step: str
) -> None:
    refuses = (
        "import os\nfrom ray import exceptions\n"
        "def init(**given):\n    os.write(2, b'RPC error: InvalidAuthToken\\n' * 20)\n    raise ConnectionError('Failed')\n"
    )
    (tmp_path / "ray" / "_private").mkdir(parents=True)
    (tmp_path / "ray" / "__init__.py").write_text(refuses)
    (tmp_path / "ray" / "exceptions.py").write_text("class RayError(Exception): pass\n")
    (tmp_path / "ray" / "_private" / "utils.py").touch()
    paths = os.pathsep.join([str(tmp_path), os.environ["PYTHONPATH"]])

    done = tuilab("run", "xyy", "--engine", "ray", env={"PYTHONPATH": paths, variable: "token"})

    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    assert "did not accept the token" in done.stderr and step in done.stderr


class Asks(Remote):
    """A host on a node that is asked, and answers when the test does."""

    def __init__(self) -> None:
        self.questions: list[str] = []
        self.given: list[tuple[object, ...]] = []

    def ask(self, method: str, *args: object, **named: object) -> NodeRequest:
        self.questions.append(method)
        self.given.append(args)
        return NodeRequest(object())


def seated(root: Path, tmp_path: Path) -> tuple[NodeRun, Asks]:
    """Return a node that has been asked to start a run."""
    (scenario,) = catalog.find([], str(write_scenario(tmp_path, "pass")))
    remote = Asks()
    seat = NodeRun(node("far"), remote, me().process)
    seat.take(True)
    seat.begin(Task(launch.order(scenario, {}, root=root)))
    return seat, remote


@pytest.mark.parametrize("name", ["..", ".", "", "notes", "/", "a\0b"])
def test_a_run_that_is_called_like_none_is_not_taken(root: Path, tmp_path: Path, name: str) -> None:
    seat, _ = seated(root, tmp_path)

    assert seat.take(Receipt(run_dir=f"/there/{name}"))
    assert (
        "which is not the name of a run" in seat.problem
        and seat.mirror is None
        and not root.exists()
    )


def test_what_differs_at_the_end_is_brought_over_again_and_told_in_the_end(
    root: Path, tmp_path: Path
) -> None:
    seat, remote = seated(root, tmp_path)
    assert not seat.take(Receipt(run_dir="/there/20260115T080000000Z-probe-abcdef"))

    for _ in range(3):
        seat.heed()
        assert not seat.take(RunNews([FilePiece("stdout.log", 0, b"")], is_over=True))
        is_over = seat.take({"stdout.log": "another digest"})

    assert is_over and (seat.problem, seat.code) == (
        "its files could not be copied completely from the node",
        ExitCode.FAILED,
    )
    assert remote.questions == ["is_there", "start", *["read", "digests"] * 3]


def test_a_run_that_is_to_stop_is_told_so_once_and_then_at_once(root: Path, tmp_path: Path) -> None:
    seat, remote = seated(root, tmp_path)
    seat.take(Receipt(run_dir="/there/20260115T080000000Z-probe-abcdef"))
    assert seat.mirror
    carried.ask_to_stop(seat.mirror.run_dir, at_once=False)
    seat.heed()
    seat.heed()
    seat.wanted = carried.AT_ONCE
    seat.heed()

    assert remote.questions == ["is_there", "start", "stop", "read", "stop"]


NODES = [RankNode("near", "127.0.0.1"), RankNode("far", "127.0.0.2")]


def order_of_ranks(calls: Path) -> WorkerOrder:
    arm = ArmOrder(arm="2 ranks of body", function="body", has_group=True, elsewhere=[["torchrun"]])
    return WorkerOrder(
        run_dir="/there/run",
        writer="worker-1",
        source_dir="",
        arm=arm,
        spread=NodeSpread(nodes=NODES, line=str(calls)),
    )


def called(calls: Path, outputs: list[int]) -> socket.socket:
    """Ask for ranks as their launcher does."""
    line = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    line.connect(str(calls))
    socket.send_fds(line, [messages.pack_message(order_of_ranks(calls))], outputs)
    return line


@pytest.fixture
def short(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder whose name leaves room for that of a socket."""
    with TemporaryDirectory(prefix="fleet-") as folder:
        yield Path(folder)


def test_what_ranks_of_another_node_write_and_print_ends_in_the_run(
    tmp_path: Path, short: Path
) -> None:
    (tmp_path / "journal").mkdir()
    calls = Calls(str(short / "calls"))
    assert calls.heed() == 0
    read, write = os.pipe()
    with called(short / "calls", [write, write]) as line:
        number = calls.heed()
        assert messages.unpack(calls.order, WorkerOrder) == order_of_ranks(short / "calls")
        pieces = [
            FilePiece("journal/worker-1-rank-1.jsonl", 0, b"records\n"), FilePiece("stdout.log", 0, b"printed"),
            FilePiece("scenario.py", 0, b"other"), FilePiece("fault-worker-1-rank-1.log", 0, b""), FilePiece("../out", 0, b"x"),
        ]  # fmt: skip
        calls.pass_on(number - 1, tmp_path, [FilePiece("stdout.log", 0, b"of a call before")], None)
        calls.pass_on(number, tmp_path, pieces, WorkerResult(error="it broke", rank=1))

        assert messages.receive(line) == WorkerResult(error="it broke", rank=1)
        assert messages.receive(line) is None  # that was the last node
    assert os.read(read, 100) == b"printed"
    assert sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*")) == [
        "journal",
        "journal/worker-1-rank-1.jsonl",
    ]
    calls.close()
    for end in (read, write):
        os.close(end)


def test_a_launcher_that_hangs_up_wants_its_ranks_no_more(short: Path) -> None:
    calls = Calls(str(short / "calls"))
    with called(short / "calls", [1, 2]):
        first = calls.heed()
    assert first and calls.heed() == 0
    with called(short / "calls", [1, 2]):
        assert calls.heed() > first
    calls.close()


def test_ranks_that_nobody_waits_for_any_more_are_ended_once() -> None:
    first, other = Asks(), Asks()
    seat = RankNodeRun(node("far"), other, first, 1, Place("far"))
    for call in (7, 0, 0):
        seat.heed(call, b"order", {}, "x.py")
    seat.take(Receipt(run_dir="/there"))
    seat.heed(0, b"", {}, "x.py")
    seat.take(
        RunNews(
            [FilePiece("stdout.log", 0, b"late")],
            is_over=True,
            said=messages.pack(WorkerResult(rank=3)),
        )
    )
    seat.take(None)
    seat.heed(7, b"order", {}, "x.py")

    assert other.questions == ["start_ranks", "stop", "read"] and first.questions == ["pass_on"]
    assert first.given == [(7, [FilePiece("stdout.log", 0, b"late")], WorkerResult(rank=1))]


def test_a_node_that_is_lost_is_told_to_its_ranks_and_to_those_to_come() -> None:
    first = Asks()
    seat = RankNodeRun(node("far"), Asks(), first, 1, Place("far"))
    seat.heed(7, b"order", {}, "x.py")
    seat.lose()
    for call in (7, 8):
        seat.heed(call, b"order", {}, "x.py")
        seat.take(None)

    told = WorkerResult(error="the node far is lost with its ranks", rank=1)
    assert seat.is_lost and first.given == [(7, [], told), (8, [], told)]


def test_of_ranks_that_fail_the_first_is_told_and_before_them_what_is_lost() -> None:
    said = [
        WorkerResult(),
        WorkerResult(error="second", failed_ns=2),
        WorkerResult(error="first", failed_ns=1),
    ]

    assert _first_error(said[:1]) is None and _first_error(said) == said[2]
    assert _first_error([*said, lost := WorkerResult(error="lost")]) == lost


def test_ranks_are_dealt_to_nodes_one_after_another() -> None:
    prefixes = [prefix[1:] for prefix in _prefixes(3, NODES)]

    assert [prefix[prefix.index("--nproc-per-node") + 1] for prefix in prefixes] == ["2", "1"]
    assert [prefix[prefix.index("--local-addr") + 1] for prefix in prefixes] == [
        "127.0.0.1",
        "127.0.0.2",
    ]
    assert len({tuple(prefix[prefix.index("--master-addr") :][:4]) for prefix in prefixes}) == 1
    with pytest.raises(ArmFailed, match="1 rank cannot run on 2 nodes; use more ranks"):
        _prefixes(1, NODES)


def test_a_lesson_that_starts_no_ranks_is_not_divided(tmp_path: Path) -> None:
    (one,) = catalog.find(
        [], str(write_scenario(tmp_path, "lab.ranks(2, body)", "def body(lab): pass", name="one"))
    )
    (two,) = catalog.find([], str(write_scenario(tmp_path, "pass", name="two")))
    orders = [launch.order(scenario, {}, root=tmp_path) for scenario in (one, two)]

    check_ranks(orders[:1])
    with pytest.raises(UsageError, match=r"two does not start ranks with lab\.ranks"):
        check_ranks(orders)
    with pytest.raises(
        UsageError, match="--nnodes 3 is too many: 2 nodes can be used; use at most 2"
    ):
        chosen([node("a"), node("b")], FleetPlacement(nnodes=3), lambda _: None)


def test_the_clock_of_a_rank_is_made_that_of_its_run(tmp_path: Path) -> None:
    hour_ns = 3600 * 10**9
    writer = Writer(tmp_path / "worker-1-rank-1.jsonl", ahead_ns=hour_ns)
    before = time.monotonic_ns()
    writer.append(events.RankPlaced(rank=1, node="far", clock_error_ns=2_000_000))
    (record,) = read_stream(tmp_path / "worker-1-rank-1.jsonl")
    writer.close()

    assert (
        isinstance(record, events.RankPlaced)
        and before <= record.t - hour_ns <= time.monotonic_ns()
    )


def test_the_report_says_which_rank_was_where() -> None:
    start = started(nodes=["near", "far"])
    ranks = [
        events.RankPlaced(rank=at, node=one, clock_error_ns=at * 2_000_000)
        for at, one in enumerate(["near", "far"])
    ]
    found = fold([("supervisor", start), *((f"worker-1-rank-{one.rank}", one) for one in ranks)])

    assert ranks_words(found) == "0 on near, 1 on far; clock error between the nodes: at most 2 ms"
    assert ("processes on far", "only those of the first node are watched") in unmeasured(found)
    assert ranks_words(fold([("supervisor", start)])) == "none yet; they will run on near, far"


@pytest.mark.parametrize(
    ("names", "unique"),
    [
        (["a", "b"], ["a", "b"]),
        (["a", "a", "b"], ["a#1", "a#2", "b"]),
        (["a", "a", "a#1"], ["a#2", "a#3", "a#1"]),
        (["a", "a", "a#1", "a#1"], ["a#2", "a#3", "a#1#1", "a#1#2"]),
    ],
)
def test_each_node_has_a_name_of_its_own(names: list[str], unique: list[str]) -> None:
    assert _unique_names(names) == unique
