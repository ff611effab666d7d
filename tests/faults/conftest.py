"""The site that each fault is injected in."""

import contextlib
import os
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import TUILAB
from tests.engine import until
from tests.faults import ptys
from tests.faults.fronts import Open, Window
from tests.faults.sites import Site, make_site
from tests.tui.terminals import Terminal
from tests.tui.tmux import Tmux


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    """A folder of runs, a command line in it and a bystander; whatever is left at the end is killed."""
    made = make_site(tmp_path)
    yield made
    made.end()


@pytest.fixture
def go(site: Site) -> Path:
    """The file that a waiting scenario waits for."""
    site.environment["GO"] = str(site.folder / "go")
    return site.folder / "go"


@pytest.fixture(scope="module")
def has_strace() -> None:
    """Skip where strace is missing or may not trace."""
    if shutil.which("strace") is None:
        pytest.skip("strace is not installed")
    if subprocess.run(["strace", "-o", os.devnull, "true"], capture_output=True).returncode:
        pytest.skip("strace may not trace here")


@pytest.fixture
def screens(site: Site) -> Iterator[Open]:
    """Open `tuilab ...` in a terminal of its own, in the environment of the site; each is closed at the end."""
    opened: list[Terminal] = []

    def open_one(*words: str, command: tuple[str, ...] = (TUILAB,), **more: Any) -> Terminal:
        opened.append(Terminal(*command, *words, **{"env": site.environment, **more}))
        return opened[-1]

    yield open_one
    for terminal in opened:
        terminal.close()


@pytest.fixture
def window(site: Site) -> Iterator[Window]:
    """Open a window of tmux with a command in it; the server ends with the test."""
    opened: list[Tmux] = []

    def open_one(*command: str, **more: str) -> Tmux:
        opened.append(Tmux(site.folder, {**site.environment, **more}, *command))
        return opened[-1]

    yield open_one
    for tmux in opened:
        tmux.close()


@pytest.fixture
def terminals(site: Site) -> Iterator[list[ptys.Terminal]]:
    """The terminals that a test opens; each is closed at its end."""
    opened: list[ptys.Terminal] = []
    yield opened
    for terminal in opened:
        terminal.front.kill()
        terminal.front.wait()
        with contextlib.suppress(OSError):
            os.close(terminal.ours)


@dataclass
class Ssh:
    """An ssh server on this machine that nobody else can use."""

    command: list[str]
    site: Site
    server: "subprocess.Popen[bytes]"

    def start(self, words: str, *options: str) -> "subprocess.Popen[str]":
        exports = []
        for name, value in self.site.environment.items():
            if name != "PATH":
                exports.append(f"{name}={shlex.quote(value)}")
        line = f"env {' '.join(exports)} {TUILAB} {words}"
        return self.site.start(command=[*self.command, *options, "localhost", line])


@pytest.fixture
def ssh(site: Site) -> Iterator[Ssh]:
    """Start sshd on a free port of the loopback with keys of its own, or skip."""
    sshd = shutil.which("sshd", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")
    if sshd is None or shutil.which("ssh") is None:
        pytest.skip("openssh is not installed")
    if os.getuid() == 0:
        Path("/run/sshd").mkdir(exist_ok=True, mode=0o755)
    keys = site.folder / "keys"
    keys.mkdir(mode=0o700)
    for name in ("host", "user"):
        subprocess.run(
            ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", keys / name], check=True
        )
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    (keys / "config").write_text(
        f"Port {port}\nListenAddress 127.0.0.1\nHostKey {keys}/host\nAuthorizedKeysFile {keys}/user.pub\nPidFile none\n"
        "UsePAM no\nStrictModes no\nPasswordAuthentication no\nPermitRootLogin prohibit-password\nLogLevel ERROR\n"
        "Subsystem sftp internal-sftp\n"
    )
    environment = {name: value for name, value in os.environ.items() if name != "TUILAB_SITE"}
    server = subprocess.Popen(
        [sshd, "-D", "-e", "-f", keys / "config"], env=environment, stderr=subprocess.DEVNULL
    )
    quiet = ["-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null"]
    quiet += ["-o", "LogLevel=ERROR", "-o", "BatchMode=yes"]
    client = ["ssh", "-F", "none", "-i", str(keys / "user"), "-p", str(port), *quiet]

    def answers() -> bool:
        if server.poll() is not None:
            return False
        done = subprocess.run([*client, "localhost", "true"], capture_output=True)
        return done.returncode == 0

    try:
        until(answers, patience_s=10)
    except AssertionError:
        server.kill()
        pytest.skip("sshd does not serve here")
    yield Ssh(client, site, server)
    server.terminate()
    server.wait()


AS_NOBODY = """
mount --bind "$1" /mnt && mount -t tmpfs -o mode=755 none "$0" && mkdir -p "$1" && mount --bind /mnt "$1" && umount /mnt || exit 9
shift && exec setpriv --reuid 65534 --regid 65534 --clear-groups "$@"
"""


@pytest.fixture(scope="module")
def as_nobody() -> list[str]:
    """What stands before a command line to run it without rights, or skip; a Python in a closed home is made visible."""
    if os.getuid() != 0:
        pytest.skip("becoming another user takes root")
    base = Path(sys.base_prefix)
    closed = [str(folder) for folder in reversed(base.parents) if not folder.stat().st_mode & 0o001]
    prefix = ["unshare", "--mount", "sh", "-c", AS_NOBODY, closed[0], str(base)] if closed else []
    prefix = prefix or ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]
    if subprocess.run(
        [*prefix, sys.executable, "-c", "import tuilab"], cwd="/", capture_output=True
    ).returncode:
        pytest.skip("another user cannot read this environment")
    return prefix


@pytest.fixture
def open_site() -> Iterator[Site]:
    """A site that another user may enter and write into."""
    with tempfile.TemporaryDirectory(prefix="tuilab-faults-") as folder:
        os.chmod(folder, 0o777)
        made = make_site(Path(folder))
        made.environment["HOME"] = folder
        yield made
        made.end()
