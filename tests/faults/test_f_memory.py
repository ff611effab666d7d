"""Memory that is not there: a cgroup's limit, a small /dev/shm."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import TUILAB
from tests.engine import until, write_scenario
from tests.faults.oracle import check, is_well
from tests.faults.sites import Site, latest

pytestmark = pytest.mark.faults


@pytest.fixture
def limited(site: Site) -> Iterator[list[str]]:
    """What stands before a command line to give all of it 400 MB of memory."""
    v1, v2 = Path("/sys/fs/cgroup/memory"), Path("/sys/fs/cgroup")
    top, limit = (v1, "memory.limit_in_bytes") if v1.is_dir() else (v2, "memory.max")
    group = top / f"tuilab-{os.getpid()}"
    try:
        group.mkdir()
        (group / limit).write_text(str(400 << 20))
    except OSError:
        if group.exists():
            group.rmdir()
        pytest.skip("a limit on memory takes root and a cgroup of memory")
    yield ["sh", "-c", f'echo $$ >{group}/cgroup.procs; exec "$@"', "-"]
    site.end()
    until(lambda: not (group / "cgroup.procs").read_text())
    group.rmdir()


def test_74_a_worker_beyond_its_limit_of_memory_is_said_to_be_likely_out_of_it(
    site: Site, limited: list[str]
) -> None:
    body = "lab.log(0, half=0.0)\nheld = []\nwhile True: held.append(bytearray(b'x' * 2**24))"

    done = site.run(
        "run",
        str(write_scenario(site.folder, body)),
        "--headless",
        "--quiet",
        command=[*limited, TUILAB],
    )

    summary = check(site, latest(site), "killed").summary
    assert done.returncode == 4 and is_well(done)
    assert summary.reason.startswith("ended by SIGKILL; nobody asked for that: out of memory?")


@pytest.mark.real_torch
def test_75_a_loader_without_room_in_shared_memory_is_a_failure_that_says_so(site: Site) -> None:
    small = [
        "unshare",
        "--mount",
        "sh",
        "-c",
        'mount -t tmpfs -o size=1m none /dev/shm && exec "$@"',
        "-",
    ]
    if subprocess.run([*small, "true"], capture_output=True).returncode:
        pytest.skip("a small /dev/shm takes root")
    more = """
import torch

class Data(torch.utils.data.Dataset):
    def __len__(self): return 8
    def __getitem__(self, i): return torch.zeros(2**20)
"""
    body = "for step, batch in enumerate(torch.utils.data.DataLoader(Data(), 4, num_workers=1)): lab.log(step, x=1.0)"

    done = site.run(
        "run",
        str(write_scenario(site.folder, body, more)),
        "--headless",
        "--quiet",
        command=[*small, TUILAB],
    )

    summary = check(site, latest(site), "failed").summary
    assert done.returncode == 4 and is_well(done)
    assert (
        "shared memory" in summary.reason
        or "DataLoader worker" in summary.reason
        or "shm" in summary.reason
    )
