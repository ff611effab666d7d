"""Checks of whether a run outlives the login or container in which it was started."""

import configparser
import os
from pathlib import Path

from tuilab import first_process
from tuilab.doctor import Box, DoctorFinding, passed, unknown, warn
from tuilab.probes.gpu.tenants import why_pids_mean_nothing
from tuilab.record import presence

_LINGER = "loginctl enable-linger"
_FOLDERS = ("usr/lib/systemd", "run/systemd", "etc/systemd")  # the last one wins


def logout(box: Box) -> DoctorFinding:
    """Check whether runs end at logout: by KillUserProcesses, or with the manager of the user."""
    if not (box.root / "run/systemd/system").is_dir():
        return passed("no systemd: runs continue after logout")
    user, unit = _user(), _unit(box)
    is_lingering = (box.root / "var/lib/systemd/linger" / user).exists()
    if "/user@" in unit:
        if is_lingering:
            return passed("runs continue after logout: lingering is enabled for your user")
        return warn(
            "when your last login ends, systemd stops your user manager, and all runs started here",
            _LINGER,
        )
    if not _kills(box, user) or (unit and "/session-" not in unit):
        return passed("runs continue after logout: logind does not stop them")
    return warn(
        "logind kills your processes at logout, and with them all runs (KillUserProcesses=yes)",
        f"{'' if is_lingering else f'{_LINGER}; then '}start runs with: systemd-run --user --scope"
        " tuilab run",
    )


def _unit(box: Box) -> str:
    """Return the systemd units of this process, or nothing if they are unknown."""
    try:
        return box.text("proc/self/cgroup")
    except OSError:
        return ""


def _kills(box: Box, user: str) -> bool:
    """Say whether logind ends the processes that a user leaves behind."""
    spared, only = _setting(box, "KillExcludeUsers"), _setting(box, "KillOnlyUsers")
    if user in ("root" if spared is None else spared).split():
        return False
    if only:
        return user in only.split()
    return (_setting(box, "KillUserProcesses") or "no").lower() in ("yes", "true", "on", "1")


def _setting(box: Box, name: str) -> str | None:
    """Return a setting of logind: drop-in files by name win over the main file; None if not set."""
    mains = [box.root / folder / "logind.conf" for folder in _FOLDERS]
    drops = {
        path.name: path
        for folder in _FOLDERS
        for path in (box.root / folder / "logind.conf.d").glob("*.conf")
    }
    files = [*(main for main in mains if main.is_file())][-1:] + [
        drops[name] for name in sorted(drops)
    ]
    values = [value for path in files if (value := _read(path, name)) is not None]
    return values[-1] if values else None


def _read(path: Path, name: str) -> str | None:
    parser = configparser.ConfigParser(
        strict=False, interpolation=None, allow_no_value=True, delimiters=("=",)
    )
    try:
        parser.read_string(path.read_text(errors="replace"))
    except (OSError, configparser.Error):
        return None
    value = parser.get("Login", name, fallback=None)
    return value if value is None else value.strip()


def _user() -> str:
    import pwd

    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return str(os.getuid())


def container(box: Box) -> DoctorFinding:
    """Check whether runs outlive `tuilab`, which is the parent of this process."""
    asker = os.getppid()
    fields = presence.stat_fields(asker)
    if fields and first_process.is_first(asker, int(fields[1])):
        return warn(
            "tuilab is the first process of this container: when it exits, the container and all"
            " runs end",
            "start the container with a shell, and tuilab with docker exec; until then, do not use"
            " --detach",
        )
    if why_pids_mean_nothing(box.root):
        name = first_process.name_of_init()
        return passed(
            f"in a container: runs end when its first process{name and f' ({name})'} exits"
        )
    return passed("not in a container")


def connection(box: Box) -> DoctorFinding:
    if not box.environ.get("SSH_CONNECTION"):
        return unknown("not connected over SSH")
    inside = next(
        (
            name
            for variable, name in (("TMUX", "tmux"), ("STY", "screen"))
            if box.environ.get(variable)
        ),
        "",
    )
    return passed(
        f"over SSH{', inside ' + inside if inside else ''}; if the connection breaks, runs"
        " continue: tuilab attach shows them"
    )


CHECKS = {
    "session.logout": logout,
    "session.container": container,
    "session.connection": connection,
}
