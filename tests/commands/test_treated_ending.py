"""A treated process ends after its last step: at once, with its marks, and with nothing left behind."""

from pathlib import Path

import pytest

from tests.commands.treated_script import Treat, run_treated, treating
from tuilab.commands.watcher._tuilab_watch import layout

pytestmark = pytest.mark.real_torch


def test_process_ends_after_its_last_step_without_its_endings(treat: Treat) -> None:
    treated = treat(
        "",
        """
        import atexit, threading
        atexit.register(lambda: print("an ending"))
        print("begins", end="")
        try: train(DataLoader(data, 16), sgd(), epochs=100)
        finally: print("the end")
        """,
        steps=7,
    )

    assert treated.seen.done.stdout == "begins" and treated.seen.done.stderr == ""
    assert len(treated.losses) == len(treated.seen.steps) == 7
    assert treated.seen.marks[-1].kind == layout.SCRIPT_ENDED
    assert sum(mark.kind == layout.SCRIPT_ENDED for mark in treated.seen.marks) == 1


def test_process_with_fewer_steps_ends_by_itself(treat: Treat) -> None:
    treated = treat("", "train(DataLoader(data, 16), sgd())\nprint('the end')", steps=13)

    assert treated.printed == ["the end"] and len(treated.losses) == 12


def test_first_optimizer_that_reaches_the_step_ends_the_process(treat: Treat) -> None:
    treated = treat(
        "",
        """
        often, seldom = sgd(), sgd()
        for number in range(100):
            model(torch.ones(2, 4)).sum().backward()
            often.step()
            if number % 2: seldom.step()
        """,
        steps=6,
    )

    assert treated.seen.kinds.count("step") == 6 + 2


def test_step_within_a_step_counts_once(treat: Treat) -> None:
    treated = treat(
        "",
        """
        class Twice(torch.optim.SGD):
            def step(self, closure=None): return super().step(closure)
        train(DataLoader(data, 16), Twice(model.parameters(), lr=0.1), epochs=100)
        """,
        steps=5,
    )

    assert len(treated.losses) == 5


def test_step_that_a_scaler_skips_counts(treat: Treat) -> None:
    treated = treat(
        "",
        """
        optimizer = sgd()
        scaler = torch.amp.GradScaler("cpu")
        for number in range(100):
            optimizer.zero_grad()
            bad = float("inf") if number in (1, 2) else 1.0
            scaler.scale(model(torch.ones(2, 4)).sum() * bad).backward()
            scaler.step(optimizer)
            scaler.update()
        """,
        steps=5,
    )

    assert treated.seen.kinds.split().count("skip") == 2
    assert treated.seen.kinds.split().count("step") == 3


def test_workers_and_other_children_end_with_the_process(treat: Treat, tmp_path: Path) -> None:
    treated = treat(
        "workers=2",
        """
        import multiprocessing, subprocess
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(1000)"])
        optimizer = sgd()
        for x, y in DataLoader(data, 1):
            if not optimizer.state:
                pids = [child.pid for child in multiprocessing.active_children()]
                print(child.pid, *pids, flush=True)
            optimizer.zero_grad()
            (model(x) - y).pow(2).mean().backward()
            optimizer.step()
        """,
        steps=4,
    )

    pids = [int(pid) for pid in treated.printed[0].split()]
    assert len(set(pids)) == 3
    assert [pid for pid in pids if is_running(pid)] == []


def is_running(pid: int) -> bool:
    """Return whether a process is there, and no zombie that nobody has reaped yet."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] not in "ZX"


def test_interpreter_of_its_own_ends_at_its_step(tmp_path: Path) -> None:
    treated = run_treated(
        tmp_path, "train(DataLoader(data, 16), sgd(), epochs=100)", treating("fused", 9)
    )

    assert (treated.seen.done.returncode, treated.seen.done.stderr) == (0, "")
    assert len(treated.losses) == 9
    assert treated.did("fused") == ["SGD(fused=True)"]


RANKS = """
import os, torch.distributed as dist
dist.init_process_group("gloo")
from torch.nn.parallel import DistributedDataParallel
model = DistributedDataParallel(net())
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for number in range(1000):
    optimizer.zero_grad()
    model(torch.ones(4, 4) * (number + dist.get_rank())).pow(2).mean().backward()
    optimizer.step()
raise SystemExit("the end of the script")
"""
TORCHRUN = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")


def test_ranks_end_at_the_same_step_and_are_treated(tmp_path: Path) -> None:
    treatments = "ddp-view,ddp-static,ddp-bucket=1,fused,bf16"
    treated = run_treated(tmp_path, RANKS, treating(treatments, 8, facts=True), TORCHRUN)

    assert treated.seen.done.returncode == 0, treated.seen.done.stderr
    counts = []
    for marks in treated.seen.by_process:
        kinds = [mark.kind for mark in marks]
        counts.append(kinds.count(layout.STEPPED))
    assert sorted(counts)[-2:] == [8, 8]
    assert not any(sorted(counts)[:-2])
    assert treated.did("ddp-view") == ["DistributedDataParallel(gradient_as_bucket_view=True)"]
    assert treated.did("ddp-static") == ["DistributedDataParallel(static_graph=True)"]
    assert treated.did("ddp-bucket=1") == ["DistributedDataParallel(bucket_cap_mb=1)"]
    assert treated.places("ddp-view") == {"model = DistributedDataParallel(net())"}
    assert {report.count for report in treated.reports} == {2}  # both ranks
    assert (treated.facts.settings.world, len(treated.facts.ddp)) == (2, 1)


def test_arguments_of_ddp_that_the_script_gives_are_already_set(tmp_path: Path) -> None:
    script = RANKS.replace(
        "net())\noptimizer", "net(), gradient_as_bucket_view=True, static_graph=True)\noptimizer"
    )
    variables = treating("ddp-view,ddp-static,ddp-bucket=25", 4)
    alone = {"RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "localhost", "MASTER_PORT": "0"}
    treated = run_treated(tmp_path, script, {**variables, **alone})

    assert treated.seen.done.returncode == 0, treated.seen.done.stderr
    for name in ("ddp-view", "ddp-static", "ddp-bucket=25"):
        assert treated.is_set(name) and treated.did(name) == []


def test_script_without_ddp_says_so(treat: Treat) -> None:
    treated = treat("ddp-view", "train(DataLoader(data, 16), sgd())")

    assert treated.why("ddp-view") == ["the script made no DistributedDataParallel"]
