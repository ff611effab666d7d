"""Ranks of one run on several nodes: divided, recorded in one place, and ended together."""

import os
import re
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import TUILAB
from tests.engine import look, start, until, write_scenario
from tests.fleet.conftest import NAMES, Cluster, cluster_of, paths_to_torch
from tests.fleet.test_carried import left_on_nodes
from tuilab.record import presence
from tuilab.runs import store

Tuilab = Callable[..., "subprocess.CompletedProcess[str]"]

BODY = """
import torch, torch.distributed as dist
def body(lab, given):
    rank = dist.get_rank()
    total = torch.tensor([rank + 1.0])
    dist.all_reduce(total)
    for step in range(20):
        lab.log(step, arm=f"rank {rank}", value=step * rank)
    lab.artifact(f"of-{rank}.txt", "kept " * 50_000)
    print("printed " * 20_000 + f"by {rank}")
    return rank, total.item(), given, os.environ["MASTER_ADDR"]
"""
ENDS = """
import torch.distributed as dist
def body(lab, gate):
    lab.log(0, arm=f"rank {dist.get_rank()}", value=1)
    while dist.get_rank() and not os.path.exists(gate): time.sleep(0.05)
    dist.barrier()
"""
FAILS = """
import torch.distributed as dist
def body(lab):
    if dist.get_rank(): raise ValueError("it broke")
    dist.barrier()
"""
DIES = FAILS.replace('raise ValueError("it broke")', "os.kill(os.getpid(), 9)")


@pytest.fixture
def over(real_cluster: Cluster, root: Path) -> Tuilab:
    """Run `tuilab ... --engine ray --nnodes N` as a user does."""

    def run(*words: str, nodes: int = 2) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [TUILAB, *words, "--engine", "ray", "--address", real_cluster.address, "--nnodes", str(nodes)],
            capture_output=True, text=True, timeout=180, env={**os.environ, "TUILAB_ROOT": str(root)}, stdin=subprocess.DEVNULL,
        )  # fmt: skip

    return run


def test_ranks_on_two_nodes_make_one_run(
    over: Tuilab, tuilab: Tuilab, root: Path, tmp_path: Path
) -> None:
    path = write_scenario(
        tmp_path,
        'lab.claim("all", [list(one) for one in lab.ranks(3, body, "word")], equals=0)',
        BODY,
    )

    done = over("run", str(path))

    (run_dir,) = store.list_runs(root)
    summary = look(run_dir).summary
    got = summary.claims["all"].measured[0].got.value
    assert summary.run and len(summary.run.nodes) == 2, done.stderr
    first, second = summary.run.nodes  # Ray has chosen
    master = f"127.0.0.{2 + NAMES.index(first)}"
    assert got == [[rank, 6.0, "word", master] for rank in range(3)]
    assert {one.rank: one.node for one in summary.ranks.values()} == {0: first, 1: first, 2: second}
    assert f"0 on {first}, 1 on {first}, 2 on {second}" in done.stdout
    assert {arm: series.count for (_, arm, _), series in summary.series.items()} == {
        f"rank {rank}": 20 for rank in range(3)
    }
    assert [len((run_dir / "artifacts" / f"of-{rank}.txt").read_text()) for rank in range(3)] == [
        250_000
    ] * 3
    assert sorted(re.findall(r"by (\d)", (run_dir / "stdout.log").read_text())) == ["0", "1", "2"]
    assert tuilab("verify", "last").returncode == 0 and not summary.damage.is_any
    assert all(summary.first_t <= one.t <= summary.last_t for one in summary.ranks.values())
    until(lambda: left_on_nodes() == [] or None)


def test_a_rank_that_fails_elsewhere_is_named_with_its_node(
    over: Tuilab, root: Path, tmp_path: Path
) -> None:
    done = over("run", str(write_scenario(tmp_path, "lab.ranks(2, body)", FAILS)))

    (run_dir,) = store.list_runs(root)
    summary = look(run_dir).summary
    assert done.returncode == 4 and summary.state == "failed"
    assert (
        summary.run
        and f"rank 1: ValueError: it broke (on {summary.run.nodes[1]})" in summary.reason
    )
    assert summary.failure and (summary.failure.type, summary.failure.message) == (
        "ValueError",
        "it broke",
    )


def test_a_rank_that_a_signal_ends_elsewhere_is_named_with_it_and_its_node(
    over: Tuilab, root: Path, tmp_path: Path
) -> None:
    done = over("run", str(write_scenario(tmp_path, "lab.ranks(2, body)", DIES)))

    (run_dir,) = store.list_runs(root)
    summary = look(run_dir).summary
    told = "rank 1 was ended by SIGKILL; nobody asked for that: out of memory?"
    assert done.returncode == 4 and summary.state == "failed"
    assert (
        summary.run
        and summary.reason == f"ArmFailed: 2 ranks of body: {told} (on {summary.run.nodes[1]})"
    )


def test_fewer_ranks_than_nodes_are_refused_by_the_run(
    over: Tuilab, root: Path, tmp_path: Path
) -> None:
    over("run", str(write_scenario(tmp_path, "lab.ranks(1, body)", FAILS)))

    (run_dir,) = store.list_runs(root)
    assert "1 rank cannot run on 2 nodes" in look(run_dir).summary.reason


def test_ctrl_c_ends_the_ranks_of_all_nodes(
    real_cluster: Cluster, root: Path, tmp_path: Path
) -> None:
    run_dir, front = begin(real_cluster, root, tmp_path)

    front.send_signal(signal.SIGINT)
    _, said = front.communicate(timeout=100)

    assert front.returncode == 130 and look(run_dir).state == "stopped", said
    until(lambda: (left_on_nodes() + presence.marked(run_dir.name)) == [] or None)


def test_a_node_that_dies_with_its_ranks_fails_the_run_by_name(root: Path, tmp_path: Path) -> None:
    with cluster_of(("head", "other"), paths_to_torch()) as cluster:
        run_dir, front = begin(cluster, root, tmp_path)

        cluster.boxes[1].kill()
        _, said = front.communicate(timeout=170)

        summary = look(run_dir).summary
        assert front.returncode == 4 and summary.state == "failed", said
        assert "the node other is lost with its ranks" in summary.reason and "other is lost" in said
        until(lambda: (left_on_nodes() + presence.marked(run_dir.name)) == [] or None)


def begin(cluster: Cluster, root: Path, tmp_path: Path) -> tuple[Path, "subprocess.Popen[str]"]:
    """Start a run and return it when a rank on the second node waits for a gate that never opens."""
    path = write_scenario(tmp_path, f"lab.ranks(2, body, {str(tmp_path / 'gate')!r})", ENDS)
    front = start(
        root, "run", str(path), "--engine", "ray", "--address", cluster.address, "--nnodes", "2"
    )

    def is_there() -> Path | None:
        return next(
            (one for one in store.list_runs(root) if ("value", "rank 1") in [*_series(one)]), None
        )

    return until(is_there, 100), front


def _series(run_dir: Path) -> list[tuple[str, str]]:
    return [(name, arm) for name, arm, _ in look(run_dir).summary.series]


@pytest.mark.parametrize(
    ("words", "nodes", "said"),
    [
        ([], 4, "--nnodes 4 is too many: 3 nodes"),
        (
            ["--per-node"],
            2,
            "--nnodes divides one run over nodes, --per-node starts a run on each node; use only one of them",
        ),
        (["--count", "2"], 2, "--count starts a run on each node; use only one of them"),
    ],
)
def test_what_cannot_be_divided_is_told_and_nothing_begins(
    over: Tuilab, root: Path, tmp_path: Path, words: list[str], nodes: int, said: str
) -> None:
    done = over(
        "run", str(write_scenario(tmp_path, "lab.ranks(2, body)", FAILS)), *words, nodes=nodes
    )

    assert done.returncode == 2 and said in done.stderr and "Traceback" not in done.stderr, (
        done.stderr
    )
    assert store.list_runs(root) == []


def test_a_lesson_without_ranks_is_told_so(over: Tuilab, root: Path, tmp_path: Path) -> None:
    done = over("run", str(write_scenario(tmp_path, "pass")))

    assert done.returncode == 2 and "probe does not start ranks with lab.ranks" in done.stderr
    assert store.list_runs(root) == []
