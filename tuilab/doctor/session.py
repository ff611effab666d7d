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
    user = _name_user()
    unit = _read_unit(box)
    is_lingering = (box.root / "var/lib/systemd/linger" / user).exists()
    if "/user@" in unit:
        if is_lingering:
            return passed("runs continue after logout: lingering is enabled for your user")
        return warn(
            "when your last login ends, systemd stops your user manager, and all runs started here",
            _LINGER,
        )
    is_outside_session = bool(unit) and "/session-" not in unit
    if not _kills_processes_of(user, box) or is_outside_session:
        return passed("runs continue after logout: logind does not stop them")
    step = "start runs with: systemd-run --user --scope tuilab run"
    if not is_lingering:
        step = f"{_LINGER}; then {step}"
    return warn(
        "logind kills your processes at logout, and with them all runs (KillUserProcesses=yes)",
        step,
    )


def _read_unit(box: Box) -> str:
    """Return the systemd units of this process, or nothing if they are unknown."""
    try:
        return box.text("proc/self/cgroup")
    except OSError:
        return ""


def _kills_processes_of(user: str, box: Box) -> bool:
    """Say whether logind ends the processes that a user leaves behind."""
    spared_users = _read_setting(box, "KillExcludeUsers")
    if spared_users is None:
        spared_users = "root"
    if user in spared_users.split():
        return False
    only_users = _read_setting(box, "KillOnlyUsers")
    if only_users:
        return user in only_users.split()
    kills_processes = _read_setting(box, "KillUserProcesses") or "no"
    return kills_processes.lower() in ("yes", "true", "on", "1")


def _read_setting(box: Box, name: str) -> str | None:
    """Return a setting of logind, or None if no file sets it."""
    value = None
    for path in _list_config_files(box):
        value_in_file = _read_value(path, name)
        if value_in_file is not None:
            value = value_in_file
    return value


def _list_config_files(box: Box) -> list[Path]:
    """Return the configuration files of logind; a setting in a later file wins.

    The main file of a later folder replaces the earlier one, and so does a drop-in file of the
    same name. The drop-in files follow the main file, sorted by name.
    """
    main_files = []
    drop_ins = {}
    for folder in _FOLDERS:
        main_file = box.root / folder / "logind.conf"
        if main_file.is_file():
            main_files.append(main_file)
        for path in (box.root / folder / "logind.conf.d").glob("*.conf"):
            drop_ins[path.name] = path
    return main_files[-1:] + [drop_ins[file_name] for file_name in sorted(drop_ins)]


def _read_value(path: Path, name: str) -> str | None:
    """Return a setting of logind in one file; None if it is not set there or cannot be read."""
    parser = configparser.ConfigParser(
        strict=False, interpolation=None, allow_no_value=True, delimiters=("=",)
    )
    try:
        parser.read_string(path.read_text(errors="replace"))
    except (OSError, configparser.Error):
        return None
    value = parser.get("Login", name, fallback=None)
    if value is None:
        return None
    return value.strip()


def _name_user() -> str:
    """Return the name of this user, or the number of a user without a name."""
    import pwd

    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return str(os.getuid())


def container(box: Box) -> DoctorFinding:
    """Check whether runs outlive `tuilab`, which is the parent of this process."""
    tuilab_pid = os.getppid()
    fields = presence.stat_fields(tuilab_pid)
    if fields and first_process.is_first(tuilab_pid, int(fields[1])):  # field 1 is its parent
        return warn(
            "tuilab is the first process of this container: when it exits, the container and all"
            " runs end",
            "start the container with a shell, and tuilab with docker exec; until then, do not use"
            " --detach",
        )
    if why_pids_mean_nothing(box.root):
        first = "its first process"
        name = first_process.name_of_init()
        if name:
            first = f"its first process ({name})"
        return passed(f"in a container: runs end when {first} exits")
    return passed("not in a container")


def connection(box: Box) -> DoctorFinding:
    """Report whether the terminal is connected over SSH, and through tmux or screen."""
    if not box.environ.get("SSH_CONNECTION"):
        return unknown("not connected over SSH")
    place = ""
    if box.environ.get("TMUX"):
        place = ", inside tmux"
    elif box.environ.get("STY"):
        place = ", inside screen"
    return passed(
        f"over SSH{place}; if the connection breaks, runs continue: tuilab attach shows them"
    )


CHECKS = {
    "session.logout": logout,
    "session.container": container,
    "session.connection": connection,
}
