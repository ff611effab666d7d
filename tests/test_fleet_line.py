"""Runs that are carried out on several nodes, as far as no cluster is needed: what one node does ends no run of another."""

import json
import os
import shutil
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest

from tests.engine import write_scenario
from tests.test_fleet import node
from tuilab.catalogue import catalog
from tuilab.cli import options
from tuilab.engine import launch
from tuilab.engine.engines import RemoteEnd
from tuilab.engine.messages import Receipt, RunOrder
from tuilab.errors import ExitCode
from tuilab.fleet.cluster import Cluster, HeadLost, Node, NodeFailed, NodeLost, NodeRequest, Remote
from tuilab.fleet.file_pieces import FilePiece
from tuilab.fleet.fleet_queue import FleetQueue
from tuilab.fleet.host import RunNews
from tuilab.fleet.node_run import Task
from tuilab.fleet.placement import FleetPlacement
from tuilab.record.origin import carried

RUN = "20260115T080000000Z-probe-{}"


class MadeUpRemote(Remote):
    """A host on a node that answers what the test says, by what it is asked."""

    def __init__(self, answers: dict[str, Any]) -> None:
        self.answers = {"is_there": "", "read": RunNews([], is_over=True), "digests": {}, **answers}
        self.is_dropped = False

    def ask(self, method: str, *args: object, **named: object) -> NodeRequest:
        return NodeRequest((self, method, object()))

    def drop(self) -> None:
        self.is_dropped = True


class MadeUpCluster(Cluster):
    def __init__(self, **answers: dict[str, Any]) -> None:
        self.answers, self.remotes = answers, list[MadeUpRemote]()

    def host(self, node: Node, cpus: float, gpus: float) -> Remote:
        self.remotes.append(MadeUpRemote(self.answers[node.name]))
        return self.remotes[-1]

    def answered(
        self, asked: Sequence[NodeRequest], patience_s: float
    ) -> Iterator[tuple[NodeRequest, Any]]:
        for one in asked:
            remote, what, _ = one.ref
            if isinstance(answer := remote.answers[what], HeadLost | KeyboardInterrupt):
                raise answer
            if answer is not ...:  # which is no answer
                yield one, answer


@pytest.fixture
def order(root: Path, tmp_path: Path) -> RunOrder:
    (scenario,) = catalog.find([], str(write_scenario(tmp_path, "pass")))
    return launch.order(scenario, {}, root=root)


def good(id: str) -> dict[str, Any]:
    return {"start": Receipt(run_dir=f"/there/{RUN.format(id)}")}


def carried_out(
    cluster: MadeUpCluster, order: RunOrder, *, is_per_node: bool = True
) -> tuple[list[RemoteEnd], list[str]]:
    """Have an order carried out on each node, or once; return what is over, and what was told."""
    done, told = list[RemoteEnd](), list[str]()
    nodes = [node(name) for name in cluster.answers]
    tasks = deque([Task(order, node=one.id) for one in nodes] if is_per_node else [Task(order)])
    line = FleetQueue(
        cluster, nodes, FleetPlacement(is_per_node=is_per_node), tasks, told.append, done.append
    )
    line.run()
    line.close()
    return done, told


OF_NO_USE = {
    "no answer": ("start", None, "an invalid answer"),
    "a failure": (
        "start",
        NodeFailed("OSError: No space left on device"),
        "failed on the node: OSError: No space left",
    ),
    "a name of next year": (
        "start",
        Receipt(run_dir="/there/99990115T080000000Z-probe-abcdef"),
        "the clock of the node is wrong",
    ),
    "an error that is none": ("start", Receipt(error="nothing", exit_code=99), "nothing"),
    "no reading": ("read", {"pieces": 1}, "an invalid answer"),
    "a file of no name": (
        "read",
        RunNews([("artifacts/\0x", 0, b"x", 1)], is_over=True),  # type: ignore[list-item]
        "an invalid answer",
    ),
    "no digests": ("digests", [1], "an invalid answer"),
}


@pytest.mark.parametrize("kind", OF_NO_USE)
def test_what_is_of_no_use_from_one_node_ends_its_run_and_no_other(
    order: RunOrder, kind: str
) -> None:
    what, answer, words = OF_NO_USE[kind]
    cluster = MadeUpCluster(bad={**good("aaaaaa"), what: answer}, well=good("bbbbbb"))

    done, _ = carried_out(cluster, order)

    by_node = {one.node: one for one in done}
    assert words in by_node["bad"].problem and by_node["bad"].code == ExitCode.FAILED
    assert by_node["well"].problem == "" and by_node["well"].run_dir
    for one in filter(None, (each.run_dir for each in done)):
        carrier = carried.read(one)
        assert carrier and carrier.is_over
    assert all(remote.is_dropped for remote in cluster.remotes)


def test_a_folder_that_is_there_already_is_told_of_that_run(order: RunOrder, root: Path) -> None:
    done, _ = carried_out(MadeUpCluster(one=good("aaaaaa"), two=good("aaaaaa")), order)

    assert [(bool(one.problem), one.code) for one in done] in (
        [(False, 0), (True, 5)],
        [(True, 5), (False, 0)],
    )


def test_a_run_that_is_tried_again_counts_by_what_comes_of_that(order: RunOrder) -> None:
    cluster = MadeUpCluster(
        bad={**good("aaaaaa"), "read": NodeLost("its power failed")}, well=good("bbbbbb")
    )

    done, told = carried_out(cluster, order, is_per_node=False)

    assert [(one.node, one.is_tried_again, one.problem) for one in done] == [
        ("bad", True, ""),
        ("well", False, ""),
    ]
    assert any("its power failed" in words for words in told)


def test_a_run_that_is_lost_before_it_began_is_told_and_counts(order: RunOrder) -> None:
    done, _ = carried_out(
        MadeUpCluster(bad={"start": NodeLost("its power failed")}, well=good("bbbbbb")), order
    )

    by_node = {one.node: one for one in done}
    assert (
        by_node["bad"].problem == "probe is lost: its power failed"
        and by_node["bad"].code == ExitCode.FAILED
    )
    assert by_node["well"].problem == ""


NO_ROOM = {
    "failed": NodeFailed("OSError: No space left"),
    "refused": Receipt(error="cannot write in /tmp", exit_code=5),
}


@pytest.mark.parametrize("kind", NO_ROOM)
def test_a_node_that_can_begin_no_run_gives_it_back(order: RunOrder, kind: str) -> None:
    done, told = carried_out(
        MadeUpCluster(full={"start": NO_ROOM[kind]}, well=good("bbbbbb")), order, is_per_node=False
    )

    assert [(one.node, one.problem) for one in done] == [("well", "")]
    assert "probe is restarted on another node" in told


def test_a_folder_that_is_removed_meanwhile_ends_no_other_run(order: RunOrder, root: Path) -> None:
    cluster = MadeUpCluster(
        one={**good("aaaaaa"), "read": RunNews([FilePiece("stdout.log", 0, b"x")], is_over=True)},
        two=good("bbbbbb"),
    )
    nodes = [node(name) for name in cluster.answers]
    done = list[RemoteEnd]()
    tasks = deque([Task(order, node=one.id) for one in nodes])
    line = FleetQueue(
        cluster,
        nodes,
        FleetPlacement(is_per_node=True),
        tasks,
        lambda words: _remove(root, words),
        done.append,
    )
    line.run()

    assert {one.node: bool(one.problem) for one in done} == {"one": True, "two": False}


def _remove(root: Path, words: str) -> None:
    if words.startswith("one: started "):
        shutil.rmtree(root / RUN.format("aaaaaa"))


def test_with_the_head_of_the_cluster_all_of_it_is_gone(order: RunOrder) -> None:
    lost = HeadLost("the head of the cluster is gone")
    done, told = carried_out(
        MadeUpCluster(one={**good("aaaaaa"), "read": lost}, two={**good("bbbbbb"), "read": ...}),
        order,
    )

    assert {one.node for one in done} == {"one", "two"} and all(one.run_dir for one in done)
    assert len([words for words in told if "the head of the cluster is gone" in words]) == 2


def test_a_node_that_does_not_stop_is_given_up_after_the_third_interrupt(order: RunOrder) -> None:
    cluster = MadeUpCluster(frozen={**good("aaaaaa"), "read": ...})
    interrupts = iter(range(4))

    def answered(
        asked: Sequence[NodeRequest], patience_s: float
    ) -> Iterator[tuple[NodeRequest, Any]]:
        found = list(MadeUpCluster.answered(cluster, asked, patience_s))
        if not found and next(interrupts, 3) < 3:
            raise KeyboardInterrupt
        return iter(found)

    cluster.answered = answered  # type: ignore[method-assign]
    done, told = carried_out(cluster, order)

    assert told[-3:] == [
        "stopping frozen; Ctrl-C again stops at once",
        "stopping at once",
        "stopping at once",
    ]
    assert [one.problem for one in done] == [
        "it did not stop in time; Ray ends it"
    ] and cluster.remotes[0].is_dropped


def test_what_ray_gives_to_processes_of_its_own_is_no_part_of_a_run() -> None:
    """The parent stands for the process of Ray on a node, whose environment is looked at."""
    told = (
        "import json; from tuilab.fleet.host import environment; print(json.dumps(environment()))"
    )
    parent = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {told!r}], check=True)"
    given = {
        **os.environ,
        "RAY_CLIENT_MODE": "0",
        "KEPT": "yes",
        "LD_PRELOAD": "/none/ray/core/libjemalloc.so:libm.so.6",
    }

    done = subprocess.run(
        [sys.executable, "-c", parent], capture_output=True, text=True, check=True, env=given
    )

    found = json.loads(done.stdout)
    assert found["KEPT"] == "yes" and found["LD_PRELOAD"] == "libm.so.6"
    assert not [name for name in found if name.startswith("RAY_")]


def test_what_is_given_when_a_sweep_goes_on_takes_the_place_of_what_was(
    tuilab: Callable[..., "CompletedProcess[str]"],
) -> None:
    begun = {"engine": "ray", "address": "a:1", "nnodes": 2, "gpus": 1.0}
    given: dict[str, Any] = {"engine": None, "address": None, "nnodes": None, "gpus": 0.0}
    here = {**given, "engine": "local"}

    options.continue_on_engine(given, begun)
    options.continue_on_engine(here, begun)

    assert given == {"engine": "ray", "address": "a:1", "nnodes": 2, "gpus": 0.0}
    assert here == {"engine": "local", "address": None, "nnodes": None, "gpus": 0.0}
    for words, said in (
        ("--gpus 0", "--gpus works only with --engine ray"),
        ("--engine ray --gpus 1.5", "is not possible with Ray"),
    ):
        refused = tuilab("run", "softmax", *words.split())
        assert refused.returncode == 2 and said in refused.stderr
