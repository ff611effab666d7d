"""What is seen of waiting for data, and of the processes that load it."""

import os
from pathlib import Path

import pytest

from tests.commands.watched_script import KINDS, Watch, run_afresh
from tuilab.commands.watcher._tuilab_watch import layout

pytestmark = pytest.mark.real_torch

LOOP = """
class Own(torch.utils.data.Dataset):
    def __len__(self): return 6
    def __getitem__(self, at): return torch.full((4,), float(at))
def train(**more):
    o = sgd()
    for x in torch.utils.data.DataLoader(Own(), batch_size=2, **more): model(x).mean().backward(); o.step()
"""


def test_each_batch_is_waited_for_and_so_is_the_start_and_the_end(watch: Watch) -> None:
    seen = watch(LOOP + "train()")

    assert seen.kinds == "wait wait back step wait back step wait back step wait"


def test_loaders_are_told_with_their_workers_those_that_load_alike_once(watch: Watch) -> None:
    seen = watch(
        LOOP
        + """
class Stream(torch.utils.data.IterableDataset):
    def __iter__(self): return iter(range(3))
for _ in range(3): train()
train(num_workers=2, multiprocessing_context='fork')
list(torch.utils.data.DataLoader(Stream()))
"""
    )

    (process,) = seen.processes
    told = [(one["workers"], one["is_iterable"]) for one in process.hello["loaders"]]
    assert told == [(0, False), (2, False), (0, True)]
    assert process.hello["cores"] == len(os.sched_getaffinity(0))


def test_loader_reports_persistent_workers_and_tensors_in_memory(watch: Watch) -> None:
    seen = watch(
        LOOP
        + """
from torch.utils.data import DataLoader, Subset, TensorDataset
train(num_workers=1, multiprocessing_context='fork', persistent_workers=True)
list(DataLoader(Subset(TensorDataset(torch.zeros(4, 2)), [0, 1])))
"""
    )

    (process,) = seen.processes
    persistent, in_memory = process.hello["loaders"]
    assert (persistent["is_persistent"], persistent["is_in_memory"]) == (True, False)
    assert (in_memory["is_persistent"], in_memory["is_in_memory"]) == (False, True)


def test_forked_workers_leave_the_marks_of_the_loop_as_they_are(watch: Watch) -> None:
    seen = watch(LOOP + "train(num_workers=2, multiprocessing_context='fork')")

    assert seen.kinds == "wait wait back step wait back step wait back step wait"
    assert len(seen.by_process) == 1


@pytest.mark.slow
def test_spawned_workers_say_hello_and_no_more(tmp_path: Path) -> None:
    call = "if __name__ == '__main__': train(num_workers=1, multiprocessing_context='spawn')"

    seen = run_afresh(tmp_path, LOOP + call)
    assert (seen.done.returncode, seen.done.stderr) == (0, "")
    assert seen.kinds == "wait wait back step wait back step wait back step wait"
    assert len(seen.processes) == 2


def test_a_forked_child_that_trains_has_marks_and_names_of_its_own(watch: Watch) -> None:
    seen = watch("""
        o = sgd(); loss().backward(); o.step()
        if not (pid := os.fork()):
            os.environ.update(RANK="1", WORLD_SIZE="2")
            torch.optim.Adam(model.parameters()).step(); o.step(); os._exit(0)
        os.waitpid(pid, 0); o.step()
    """)

    parent, child = sorted(seen.processes, key=lambda process: process.rank)
    assert [sum(mark.kind in KINDS for mark in marks) for marks in seen.by_process] == [3, 2]
    assert [(one.rank, sorted(one.names.values())) for one in (parent, child)] == [
        ("", ["SGD\noptimizer 1"]),
        ("1", ["Adam\noptimizer 1", "SGD\noptimizer 2"]),
    ]


def test_each_loop_has_a_number_and_says_whether_it_may_train(watch: Watch) -> None:
    seen = watch(
        LOOP
        + """
import threading
train()
with torch.no_grad(): list(torch.utils.data.DataLoader(Own(), batch_size=3))
thread = threading.Thread(target=lambda: list(torch.utils.data.DataLoader(Own(), batch_size=6)))
thread.start(); thread.join()
"""
    )

    waits = [(mark.name, mark.flags) for mark in seen.marks if mark.kind == layout.WAITED]
    begins, ends, off, elsewhere = (
        layout.BEGINS,
        layout.ENDS,
        layout.WITHOUT_GRADIENTS,
        layout.ELSEWHERE,
    )
    assert waits[:5] == [(1, begins), (1, 0), (1, 0), (1, 0), (1, ends)]
    assert waits[5:9] == [(2, off | begins), (2, off), (2, off), (2, off | ends)]
    assert waits[9:] == [(3, elsewhere | begins), (3, elsewhere), (3, elsewhere | ends)]
