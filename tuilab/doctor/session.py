"""Checks of whether a run outlives the login that started it."""

import configparser
import os
from pathlib import Path

from tuilab.doctor import Box, Finding, passed, unknown, warn

_FOLDERS = ("usr/lib/systemd", "run/systemd", "etc/systemd")  # the last one wins


def logout(box: Box) -> Finding:
    """Whether logind ends the processes of a user who has logged out, as it does where KillUserProcesses is on."""
    if not (box.root / "run/systemd/system").is_dir():
        return passed("no systemd here: nothing ends runs at logout")
    if not _kills(box):
        return passed("logind leaves runs alone at logout")
    user = _user()
    if (box.root / "var/lib/systemd/linger" / user).exists():
        return passed("logind would end runs at logout, but lingering is enabled for you")
    return warn("logind ends your processes at logout (KillUserProcesses=yes): runs, too", "loginctl enable-linger")


def _kills(box: Box) -> bool:
    """Return the setting as logind reads it: the main file, then the drop-ins by name."""
    mains = [box.root / folder / "logind.conf" for folder in _FOLDERS]
    drops = {path.name: path for folder in _FOLDERS for path in (box.root / folder / "logind.conf.d").glob("*.conf")}
    value = "no"
    for path in [*(main for main in mains if main.is_file())][-1:] + [drops[name] for name in sorted(drops)]:
        value = _read(path) or value
    return value.lower() in ("yes", "true", "on", "1")


def _read(path: Path) -> str:
    parser = configparser.ConfigParser(strict=False, interpolation=None, allow_no_value=True, delimiters=("=",))
    try:
        parser.read_string(path.read_text(errors="replace"))
    except (OSError, configparser.Error):
        return ""
    return (parser.get("Login", "KillUserProcesses", fallback="") or "").strip()


def _user() -> str:
    import pwd

    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return str(os.getuid())


def connection(box: Box) -> Finding:
    if not box.environ.get("SSH_CONNECTION"):
        return unknown("not over SSH")
    inside = next((name for variable, name in (("TMUX", "tmux"), ("STY", "screen")) if box.environ.get(variable)), "")
    return passed(f"over SSH{', inside ' + inside if inside else ''}; a run goes on when the link breaks: tuilab attach")


CHECKS = {"session.logout": logout, "session.connection": connection}
