"""Nothing listens and nobody is asked: the verbs work without a network, and their processes talk in pairs that have no name."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import TUILAB
from tests.engine import write_scenario
from tests.faults.fronts import Open
from tests.faults.oracle import check
from tests.faults.sites import Site, reach_stage
from tests.faults.victims import supervisor_of
from tuilab.engine import messages
from tuilab.engine.messages import WorkerOrder, WorkerResult
from tuilab.engine.spawn import socket_pair

pytestmark = pytest.mark.faults

VERBS = (
    "list", "runs", "show softmax", "verify last", "compare last last", "report last -o {}/page.html", "attach last --headless",
    "queue", "advise", "export last -o {}/run.tar.gz", "doctor",
)  # fmt: skip


@pytest.mark.usefixtures("has_strace")
def test_no_verb_opens_a_socket_that_others_could_reach(site: Site) -> None:
    alone = (
        ["unshare", "--net"]
        if subprocess.run(["unshare", "--net", "true"], capture_output=True).returncode == 0
        else []
    )
    log = site.folder / "calls"
    assert shutil.which("strace")
    watched = [
        "strace",
        "-f",
        "-qq",
        "-A",
        "-o",
        str(log),
        "-e",
        "trace=socket,bind,listen,connect,sendto",
        *alone,
        TUILAB,
    ]
    path = write_scenario(site.folder, 'lab.log(0, a=1.0)\nlab.claim("one-is-one", True)')

    codes = [site.run("run", str(path), "--headless", command=watched).returncode]
    codes += [
        site.run(*words.format(site.folder).split(), command=watched).returncode for words in VERBS
    ]

    assert codes[:-1] == [0] * len(VERBS) and codes[-1] in (
        0,
        1,
        2,
    )  # the doctor's is about the box
    assert re.findall(r"(?:bind|listen|connect)\(.*|socket\((?!AF_UNIX).*", log.read_text()) == []


def test_nothing_listens_while_the_screens_show_a_run(site: Site, screens: Open) -> None:
    """In a network of their own, which has no interface that is up, all sockets that the kernel lists are theirs."""
    alone = ["unshare", "--net"]
    if subprocess.run([*alone, "true"], capture_output=True).returncode:
        pytest.skip("a network namespace takes root")
    path = write_scenario(site.folder, 'lab.log(0, half=0.0)\nlab.stage("on")\ntime.sleep(600)')
    term = screens("run", str(path), command=(*alone, TUILAB))
    run_dir = reach_stage(site, "on")
    term.wait_for("running", "half")
    net = Path(f"/proc/{supervisor_of(run_dir)[0]}/net")

    listed = {
        name: (net / name).read_text().splitlines()[1:]
        for name in ("tcp", "tcp6", "udp", "udp6", "raw", "packet", "unix")
    }
    term.type("q")
    term.wait()
    site.run("stop", "last", "--now")

    pairs = listed.pop("unix")
    assert [line for lines in listed.values() for line in lines] == []
    assert (
        pairs and [line for line in pairs if len(line.split()) > 7] == []
    )  # what has a name, or an abstract one
    check(site, run_dir, "stopped")


def test_ranks_without_a_loopback_fail_at_once_with_what_to_do(tmp_path: Path) -> None:
    """Their launcher asks before torch waits for a minute."""
    alone = ["unshare", "--net"]
    if subprocess.run([*alone, "true"], capture_output=True).returncode:
        pytest.skip("a network namespace takes root")
    ours, theirs = socket_pair()
    with ours, theirs:
        messages.send(
            ours,
            WorkerOrder(
                run_dir=str(tmp_path), writer="worker-1", source_dir=str(tmp_path), params={}
            ),
        )
        launcher = [
            *alone,
            sys.executable,
            "-P",
            "-m",
            "tuilab.lab.ranks",
            "--",
            str(theirs.fileno()),
        ]
        done = subprocess.run(launcher, pass_fds=[theirs.fileno()], timeout=60)
        farewell = messages.receive(ours)

    assert done.returncode == 1 and isinstance(farewell, WorkerResult)
    assert farewell.error == (
        "the ranks cannot reach each other: Network is unreachable; bring the loopback up: ip link set lo up"
    )
