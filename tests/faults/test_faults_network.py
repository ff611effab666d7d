"""Nothing listens and nobody is asked: the verbs work without a network, and their processes talk in pairs that have no name."""

import re
import shutil
import subprocess

import pytest

from tests.conftest import TUILAB
from tests.engine import write_scenario
from tests.faults.sites import Site

pytestmark = pytest.mark.faults

VERBS = (
    "list", "runs", "show softmax", "verify last", "compare last last", "report last -o {}/page.html", "attach last --headless",
    "queue", "advise", "export last -o {}/run.tar.gz", "doctor",
)  # fmt: skip


@pytest.mark.usefixtures("has_strace")
def test_no_verb_opens_a_socket_that_others_could_reach(site: Site) -> None:
    alone = ["unshare", "--net"] if subprocess.run(["unshare", "--net", "true"], capture_output=True).returncode == 0 else []
    log = site.folder / "calls"
    assert shutil.which("strace")
    watched = ["strace", "-f", "-qq", "-A", "-o", str(log), "-e", "trace=socket,bind,listen,connect,sendto", *alone, TUILAB]
    path = write_scenario(site.folder, 'lab.log(0, a=1.0)\nlab.claim("one is one", True)')

    codes = [site.run("run", str(path), "--headless", command=watched).returncode]
    codes += [site.run(*words.format(site.folder).split(), command=watched).returncode for words in VERBS]

    assert codes[:-1] == [0] * len(VERBS) and codes[-1] in (0, 1, 2)  # the doctor's is about the box
    assert re.findall(r"(?:bind|listen|connect)\(.*|socket\((?!AF_UNIX).*", log.read_text()) == []
