"""Arms in processes of their own: libraries that are to be preloaded, and torchrun before the command line."""

import shutil
import socket
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from subprocess import CompletedProcess
from typing import TYPE_CHECKING, Any

import pytest

from tests.engine import look, newest, processes_of, start, until, wait_for_stage, write_scenario
from tuilab.engine.messages import ArmReply, WorkerLine, send
from tuilab.errors import BoxLacks
from tuilab.lab.arms import Arm, arm_order
from tuilab.lab.command_prefix import complete
from tuilab.lab.lost_rank import LostRank, lost_of
from tuilab.probes.preload import check, mapped_files
from tuilab.record.journal.writer import Writer

if TYPE_CHECKING:
    from tests.fakes.clock import Clock
    from tests.fakes.cuda import FakeCuda

pytest_plugins = ["tests.fakes.clock", "tests.fakes.cuda"]
Tuilab = Callable[..., "CompletedProcess[str]"]


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A library that can be preloaded and does nothing."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no cc: there is no library to preload")
    path = tmp_path_factory.mktemp("libraries") / "libnothing.so"
    subprocess.run(
        [compiler, "-shared", "-fPIC", "-x", "c", "-", "-o", str(path)],
        input=b"int nothing;\n",
        check=True,
    )
    return path


PRELOADED = """
def body(lab):
    return "libnothing" in open("/proc/self/maps").read()
"""
PRELOADING = """
from tuilab import ArmFailed
try:
    lab.claim("the-library-is-loaded", lab.arm("preloaded", body, env={{"LD_PRELOAD": {path!r}}})())
except ArmFailed as problem:
    lab.claim("the-library-is-loaded", lacks=str(problem))
"""


def claim_about_preloading(
    tuilab: Tuilab, root: Path, folder: Path, path: str, **more: object
) -> tuple[str, str]:
    tuilab(
        "run",
        str(write_scenario(folder, PRELOADING.format(path=path), PRELOADED)),
        "--headless",
        "--quiet",
        **more,
    )
    verdict = look(newest(root) or root).summary.claims["the-library-is-loaded"].verdict
    assert verdict is not None
    return verdict.verdict, verdict.why


@pytest.mark.slow
def test_a_library_that_is_preloaded_is_there(
    tuilab: Tuilab, root: Path, tmp_path: Path, library: Path
) -> None:
    link = tmp_path / "libalias.so"
    link.symlink_to(library)

    assert claim_about_preloading(tuilab, root, tmp_path, str(library)) == ("SUPPORTED", "holds")
    assert claim_about_preloading(tuilab, root, tmp_path, f"{link} ") == ("SUPPORTED", "holds")


@pytest.mark.slow
def test_a_library_that_the_linker_passes_over_fails_the_arm(
    tuilab: Tuilab, root: Path, tmp_path: Path
) -> None:
    """ld.so warns, goes on without it, and the exit code is 0: such an arm would be timed under a wrong name."""
    broken = tmp_path / "libbroken.so"
    broken.write_text("not a library")

    found = [
        claim_about_preloading(tuilab, root, tmp_path, path)
        for path in ("/no/where/libx.so", str(broken))
    ]

    why = "which was not loaded: the file is missing, or not for this machine"
    assert found == [
        ("NOT TESTABLE HERE", f"preloaded: LD_PRELOAD names {path}, {why}")
        for path in ("/no/where/libx.so", broken)
    ]


def test_libraries_are_found_by_place_or_by_name() -> None:
    """This process has a libc; which others it has does not matter."""
    libc = next(
        path
        for path in mapped_files(Path("/proc/self/maps").read_text())
        if Path(path).name.startswith("libc.so")
    )

    check("")
    check(f"{libc}:{Path(libc).name} $LIB/anything.so")
    with pytest.raises(BoxLacks, match=r"libnever\.so"):
        check(f"{libc}:libnever.so")


@pytest.mark.slow
def test_an_arm_with_much_of_anything_is_recorded_or_refused_and_the_next_one_answers(
    tuilab: Tuilab, root: Path, tmp_path: Path
) -> None:
    """An order fits a message, a record fits a line; what an arm's record lacks, it says."""
    more = "def give(lab, *words):\n    return [len(words), len(os.environ.get('BIG', ''))]\n"
    body = """
found = [lab.arm("long", give, env={"BIG": "x" * 100_000})()]
found.append(lab.arm("many", give, env={f"VARIABLE_{n}": "x" * 20 for n in range(3000)})())
found.append(lab.arm("n" * 1000, give, prefix=["env", *(f"WORD_{n}={'y' * 40}" for n in range(1500))])())
size, problem = 198_000, ""
while not problem:  # the largest that the worker may ask for: with what the supervisor adds it is too large
    size += 1
    try: arm = lab.arm("full", give, "z" * size)
    except ValueError as refused: problem = str(refused)
lab.text(problem, title="refused at the call")
try: arm()
except Exception as failed: lab.text(str(failed), title="refused by the supervisor")
found.append(lab.arm("after", give, 1, 2)())
lab.claim("every-arm-answered-for-itself", sum(found, []), equals=[0, 100_000, 0, 0, 0, 0, 2, 0])
"""
    done = tuilab("run", str(write_scenario(tmp_path, body, more)), "--headless", "--quiet")
    verified = tuilab("verify")

    run_dir = newest(root) or root
    summary = look(run_dir).summary
    assert done.returncode == 0, done.stdout
    assert verified.stdout.splitlines()[-1] == "complete and unchanged"
    started = {
        worker.started.arm: worker.started for worker in summary.workers.values() if worker.started
    }
    assert started["long"].env["BIG"].endswith("characters more") and "…" in started["many"].env
    assert started["n" * 1000].prefix[-1].startswith("… ")
    assert [text.title for text in summary.texts] == [
        "refused at the call",
        "refused by the supervisor",
    ]
    assert all("too much for a message" in text.text for text in summary.texts)
    assert not processes_of(run_dir)


# ---- torchrun

RANKS = """
import torch
import torch.distributed as dist

def reduce(lab, more, bad):
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    lab.log(0, rank=rank)
    if rank == bad:
        raise ValueError("this rank is bad")
    total = torch.ones(1) * (rank + more)
    dist.all_reduce(total)
    dist.destroy_process_group()
    return [total.item(), sys.stdin.read()]
"""
TORCHRUN = '["torchrun", "--standalone", "--local-addr", "127.0.0.1", "--nproc-per-node", "2"]'


@pytest.fixture
def loopback(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GLOO_SOCKET_IFNAME", "lo")


@pytest.mark.slow
@pytest.mark.real_torch
def test_an_arm_under_torchrun_has_ranks_and_rank_0_answers(
    tuilab: Tuilab, root: Path, tmp_path: Path, loopback: None
) -> None:
    body = f'lab.claim("the-sum-is-three", lab.arm("ranks", reduce, 1, -1, prefix={TORCHRUN})(), equals=[3, ""])'
    (scratch := tmp_path / "tmp").mkdir()
    script = str(write_scenario(tmp_path, body, RANKS))

    done = tuilab("run", script, "--headless", "--quiet", env={"TMPDIR": str(scratch)})

    run_dir = newest(root) or root
    summary = look(run_dir).summary
    assert done.returncode == 0, done.stdout
    assert {writer: line.last for (_, _, writer), line in summary.series.items()} == {
        "worker-1": 0,
        "worker-1-rank-1": 1,
    }
    assert not summary.damage.is_any
    assert not list(run_dir.glob("fault-*")) and not processes_of(run_dir)
    assert not list(scratch.iterdir())  # torchrun leaves a folder where it is given none


@pytest.mark.slow
@pytest.mark.real_torch
def test_a_rank_that_fails_fails_the_arm(
    tuilab: Tuilab, root: Path, tmp_path: Path, loopback: None
) -> None:
    body = f'lab.arm("ranks", reduce, 1, 1, prefix={TORCHRUN})()'
    (scratch := tmp_path / "tmp").mkdir()
    script = str(write_scenario(tmp_path, body, RANKS))

    done = tuilab("run", script, "--headless", "--quiet", env={"TMPDIR": str(scratch)})

    run_dir = newest(root) or root
    summary = look(run_dir).summary
    assert done.returncode == 4
    assert summary.reason == "ArmFailed: ranks: rank 1: ValueError: this rank is bad"
    assert not processes_of(run_dir)
    assert not list(scratch.iterdir())  # torchrun leaves a folder where it is given none


@pytest.mark.slow
@pytest.mark.real_torch
@pytest.mark.parametrize(
    ("number", "told", "fault"),
    [
        ("SIGKILL", "rank 1 was ended by SIGKILL; nobody asked for that: out of memory?", ""),
        ("SIGSEGV", "rank 1 was ended by SIGSEGV", "Segmentation fault"),
    ],
)
def test_a_rank_that_a_signal_ends_is_named_and_not_the_one_that_misses_it(
    tuilab: Tuilab, root: Path, tmp_path: Path, number: str, told: str, fault: str
) -> None:
    body = (
        "import os\nimport signal\n\n\ndef die(lab, number):\n    if os.environ['RANK'] == '1':\n"
        "        os.kill(os.getpid(), getattr(signal, number))\n"
        "    import torch.distributed as dist\n    dist.barrier()\n"
    )

    tuilab(
        "run",
        str(write_scenario(tmp_path, f'lab.ranks(2, die, "{number}")', body)),
        "--headless",
        "--quiet",
    )

    run_dir = newest(root) or root
    summary = look(run_dir).summary
    assert summary.reason == f"ArmFailed: 2 ranks of die: {told}"
    assert fault in "".join(summary.faults)
    assert not processes_of(run_dir)


@pytest.mark.parametrize(
    ("seen", "told"),
    [
        ([(1, -9, 100)], "rank 1 was ended by SIGKILL; nobody asked for that: out of memory?"),
        ([(1, -11, 100), (0, -15, 100)], "rank 1 was ended by SIGSEGV"),
        (
            [(0, 1, 100), (1, -11, 100)],
            "rank 1 was ended by SIGSEGV",
        ),  # both were gone when torchrun looked
        ([(0, -15, 100), (1, 1, 101)], "rank 0 was ended by SIGTERM"),
        ([(1, 1, 100), (0, -15, 100)], ""),
        ([(1, 1, 100), (0, -6, 101)], ""),
        (
            [(0, -6, 100), (1, 1, 100)],
            "",
        ),  # seen at once: the other may have aborted because this one raised
        ([(0, -6, 100), (1, 1, 102)], "rank 0 was ended by SIGABRT"),
        ([(1, 1, 100), (0, -9, 130)], ""),  # it did not heed torchrun's SIGTERM
        ([(0, 3, 100)], ""),
    ],
)
def test_which_rank_a_signal_ended_is_told_apart_from_what_torchrun_ends(
    seen: list[tuple[int, int, int]], told: str
) -> None:
    lost = lost_of([LostRank(*one) for one in seen])

    assert (lost.words if lost else "") == told


@pytest.mark.slow
@pytest.mark.real_torch
def test_a_rank_is_told_that_it_cannot_start_arms(
    tuilab: Tuilab, root: Path, tmp_path: Path, loopback: None
) -> None:
    outer = (
        "def inner(lab):\n    return 1\n\n\ndef outer(lab):\n    return lab.arm('inner', inner)()\n"
    )
    body = f'lab.arm("outer", outer, prefix={TORCHRUN})()'

    tuilab("run", str(write_scenario(tmp_path, body, outer)), "--headless", "--quiet")

    reason = look(newest(root) or root).summary.reason
    assert reason.endswith(
        "ArmFailed: inner: an arm under torchrun cannot start arms of its own; start them from run(lab)"
    )


@pytest.mark.slow
@pytest.mark.real_torch
def test_a_rank_that_lacks_something_ends_those_that_would_wait_for_it(
    tuilab: Tuilab, root: Path, tmp_path: Path, loopback: None
) -> None:
    lacking = "def lack(lab):\n    lab.needs(os.environ['LOCAL_RANK'] == '0', 'a GPU of its own')\n    time.sleep(600)\n"
    body = f'lab.arm("ranks", lack, prefix={TORCHRUN}, timeout=60)()'

    tuilab(
        "run", str(write_scenario(tmp_path, body, "import os\n" + lacking)), "--headless", "--quiet"
    )

    run_dir = newest(root) or root
    assert look(run_dir).summary.reason == "ArmFailed: ranks: rank 1: a GPU of its own"
    assert not processes_of(run_dir)


@pytest.mark.slow
@pytest.mark.real_torch
def test_ranks_that_hang_end_with_the_time_of_their_arm(
    root: Path, tmp_path: Path, loopback: None, clock: "Clock"
) -> None:
    hang = "def hang(lab):\n    lab.stage('asleep')\n    time.sleep(600)\n"
    body = f'lab.arm("ranks", hang, prefix={TORCHRUN}, timeout=600)()'
    front = start(root, "run", str(write_scenario(tmp_path, body, hang)), "--headless", "--quiet")
    run_dir = wait_for_stage(root, "asleep")
    until(lambda: len(look(run_dir).summary.stages) == 2)
    clock.put_forward(600)

    front.communicate(timeout=60)

    assert look(run_dir).summary.reason == "ArmFailed: ranks: timed out after 600 s"
    assert not processes_of(run_dir)


GROUP = """
import torch
import torch.distributed as dist

def reduce(lab, more):
    total = torch.ones(1) * (dist.get_rank() + more)
    dist.all_reduce(total)
    return [dist.get_rank(), total.item(), torch.get_num_threads()]

def fail(lab):
    if dist.get_rank():
        raise ValueError("this rank is bad")
    dist.all_reduce(torch.ones(1))

def leave(lab):
    started = [dist.all_reduce, lambda x, async_op: dist.broadcast(x, 1, async_op=async_op)]
    started[dist.get_rank()](torch.ones(1), async_op=True)
    return dist.get_rank()

def hang(lab):
    lab.stage("asleep")
    time.sleep(600 * dist.get_rank())
"""


@pytest.mark.library
@pytest.mark.real_torch
def test_ranks_compute_in_one_group_and_each_of_them_answers(
    tuilab: Tuilab, root: Path, tmp_path: Path
) -> None:
    body = """
lab.claim("both", lab.ranks(2, reduce, 1), equals=[[0, 3, 1], [1, 3, 1]])
lab.claim("alone", lab.ranks(1, reduce, 5), equals=[[0, 5, 1]])
lab.claim("left", lab.ranks(2, leave, timeout=120), equals=[0, 1])
lab.claim("bad", lab.raises(lab.ranks, 2, fail), equals="ArmFailed: 2 ranks of fail: rank 1: ValueError: this rank is bad")
lab.claim("late", lab.raises(lambda: lab.ranks(2, hang, timeout=3)), equals="ArmFailed: 2 ranks of hang: timed out after 3 s")
"""

    done = tuilab("run", str(write_scenario(tmp_path, body, GROUP)), "--headless", "--quiet")

    run_dir = newest(root) or root
    summary = look(run_dir).summary
    assert done.returncode == 0, done.stdout
    assert [claim.verdict.verdict for claim in summary.claims.values() if claim.verdict] == [
        "SUPPORTED"
    ] * 5
    assert "OMP_NUM_THREADS" not in (run_dir / "stderr.log").read_text()
    assert not processes_of(run_dir)


def test_an_arm_finds_the_memory_of_a_gpu_that_nobody_uses_here(
    make_cuda: "Callable[..., FakeCuda]", tmp_path: Path
) -> None:
    """What torch keeps for later would be missing to that of the arm; one that has failed here is no reason not to ask."""
    cuda = make_cuda(1)
    cuda.gpus[0].allocate(64 << 20)
    cuda.gpus[0].allocate(-60 << 20)
    ours, supervisors = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    order = arm_order("other", len, [], env=None, prefix=[], timeout=1.0)
    with ours, supervisors, closing(Writer(tmp_path / "worker.jsonl")) as journal:
        arm = Arm(order, WorkerLine(ours), journal)
        send(supervisors, ArmReply("arm-1", 0.1, value=1))
        assert arm() == 1
        assert cuda.gpus[0].reserved == 4 << 20
        cuda.broken = "CUDA error: device-side assert triggered"
        send(supervisors, ArmReply("arm-2", 0.1, value=2))
        assert arm() == 2


def test_only_torchrun_is_completed() -> None:
    assert complete(["numactl", "-N", "0"]) == ["numactl", "-N", "0"]
    assert complete(["/opt/bin/torchrun", "--standalone"])[1:] == [
        "-P",
        "-m",
        "tuilab.lab.ranks",
        "--standalone",
        "--",
    ]
    assert complete(["torchrun"])[0] == sys.executable
    assert complete([]) == []


CATCHING = '''\
"""T.

## Look for
- [a] it is so
"""
from typing import Literal
from tuilab import Lab
from tuilab import ArmFailed


def fail(lab):
    raise ValueError("bad")


def pass_by(lab):
    return 1


def run(lab: Lab, way: Literal["fail", "lack"] = "fail", caught: bool = True) -> None:
    try:
        if way == "fail":
            lab.arm("failing", fail)()
        else:
            lab.arm("lacking", pass_by, env={"LD_PRELOAD": "/nowhere.so"})()
    except ArmFailed:
        if not caught:
            raise
    lab.claim("a", 1, equals=1)
'''


@pytest.mark.parametrize("way", ["fail", "lack"])
def test_what_became_of_an_arm_that_the_scenario_caught_is_not_what_became_of_the_run(
    tmp_path: Path, result: Callable[..., dict[str, Any]], way: str
) -> None:
    (tmp_path / "catching.py").write_text(CATCHING)
    run = result("./catching.py", "--way", way)

    assert (run["state"], run["verdicts"], run["exit_code"]) == ("succeeded", {"a": "SUPPORTED"}, 0)
    assert (run["failure"], run["box_lacks"]) == (None, "")


def test_a_run_that_an_arm_took_along_tells_what_failed_in_the_arm(
    tmp_path: Path, result: Callable[..., dict[str, Any]]
) -> None:
    (tmp_path / "catching.py").write_text(CATCHING)
    run = result("./catching.py", "--no-caught")

    assert (run["state"], run["failure"]["type"], run["failure"]["message"]) == (
        "failed",
        "ValueError",
        "bad",
    )
    assert result("./catching.py", "--no-caught", "--way", "lack")["box_lacks"].startswith(
        "LD_PRELOAD names /nowhere.so, which was not loaded"
    )
