"""Checks of the disk and of the folder of runs: space, file system, permissions."""

import os
import stat
import tempfile
from pathlib import Path

from tuilab.doctor import Box, DoctorFinding, failed, passed, unknown, warn
from tuilab.errors import TuilabError
from tuilab.probes import NotKnown
from tuilab.storage import places
from tuilab.text.words import size

_SMALL_BYTES = 1e9
_TOO_SMALL_BYTES = 50e6
REMOTE = (
    "nfs",
    "cifs",
    "smb",
    "fuse.sshfs",
    "lustre",
    "gpfs",
    "ceph",
    "9p",
    "afs",
    "beegfs",
    "glusterfs",
)


def permissions(box: Box) -> DoctorFinding:
    """Check whether only this user can write to the folder of runs."""
    try:
        folder = Path(places.runs_folder())
    except TuilabError as problem:
        return failed(str(problem), "export TUILAB_ROOT=DIR")
    nearest = _nearest(folder)
    step = "use another folder of runs: --root DIR, or export TUILAB_ROOT=DIR"
    for part in (folder, *folder.parents):
        if os.path.lexists(part) and not os.path.isdir(part):
            return failed(f"{part} is not a folder, so no run can be written to {folder}", step)
    if not os.access(nearest, os.W_OK | os.X_OK):
        return failed(f"no permission to write to {nearest}", step)
    if nearest != folder:
        return passed(f"{folder}; the first run creates it")
    status = os.stat(folder)
    if status.st_uid != os.getuid():
        return warn(f"{folder} belongs to user {status.st_uid}, who can change your runs", step)
    if status.st_mode & 0o022:
        return warn(
            f"other users can write to {folder} (mode {stat.S_IMODE(status.st_mode):o})",
            f"chmod 700 {folder}",
        )
    return passed(f"{folder}")


def room(box: Box) -> DoctorFinding:
    """Check the free space in the folder of runs."""
    another = "use another folder of runs: export TUILAB_ROOT=DIR"
    step = f"delete old runs: tuilab rm --older-than 30d --yes; or {another}"
    return _room(_nearest(Path(places.runs_folder())), step, another)


def temporary(box: Box) -> DoctorFinding:
    """Check the free space in the folder for temporary files."""
    folder = Path(tempfile.gettempdir())
    step = "torch.compile and DataLoader workers write there; free some space, or export TMPDIR=DIR"
    return _room(
        folder,
        step,
        "torch.compile and DataLoader workers write there; use another folder: export TMPDIR=DIR",
    )


def _room(folder: Path, step: str, read_only_step: str) -> DoctorFinding:
    """Check the free space of a folder, and that it is not mounted read-only.

    `step` is the fix for a full disk, `read_only_step` that for a read-only one.
    """
    disk = os.statvfs(folder)
    if disk.f_flag & os.ST_RDONLY:
        return failed(f"{folder} is mounted read-only", read_only_step)
    counts_files = disk.f_files != 0  # some file systems, such as btrfs, have no limit
    if counts_files and disk.f_favail <= 1000:  # a run with its workers writes many small files
        return failed(f"{folder} has space for only {disk.f_favail} more files", step)
    free_bytes = disk.f_bavail * disk.f_frsize
    message = f"{size(free_bytes)} free in {folder}"
    if free_bytes < _TOO_SMALL_BYTES:
        return failed(message, step)
    if free_bytes < _SMALL_BYTES:
        return warn(message, step)
    return passed(message)


def runs_system(box: Box) -> DoctorFinding:
    """Warn if the folder of runs is on a network file system."""
    return _check_file_system(
        box,
        Path(places.runs_folder()),
        "use a local disk (export TUILAB_ROOT=DIR): each record is a separate write over the"
        " network",
    )


def home_system(box: Box) -> DoctorFinding:
    """Warn if the home folder, where a venv often is, is on a network file system."""
    home = Path(os.path.expanduser("~"))
    if not home.is_absolute():
        return unknown("this user has no home folder")
    return _check_file_system(
        box,
        home,
        "keep the venv and the runs on a local disk: importing torch reads thousands of small"
        " files",
    )


def _check_file_system(box: Box, folder: Path, step: str) -> DoctorFinding:
    """Report the file system of a folder, or warn with this step if it is a network file system."""
    point, kind = mounted(box, _nearest(folder))
    if kind.startswith(REMOTE):
        return warn(
            f"{folder} is on a network file system ({kind} at {point}): slow, and lost if the"
            " server fails",
            step,
        )
    return passed(f"{kind} ({point})")


def mounted(box: Box, folder: Path) -> tuple[str, str]:
    """Return the mount point and the type of the file system of a folder.

    Raises NotKnown if the kernel lists none.
    """
    real_folder = os.path.realpath(folder)
    nearest_point = ""
    nearest_kind = ""
    for line in box.text("proc/self/mountinfo").splitlines():
        mount, _, source = line.partition(" - ")
        point = mount.split()[4].replace("\\040", " ")  # the kernel writes a space as \040
        is_above = real_folder == point or real_folder.startswith(point.rstrip("/") + "/")
        # The later of two mounts at one place hides the other, so an equal length wins as well.
        if is_above and len(point) >= len(nearest_point):
            nearest_point = point
            nearest_kind = source.split()[0]
    if not nearest_point:
        raise NotKnown("/proc/self/mountinfo does not list its file system")
    return nearest_point, nearest_kind


def _nearest(folder: Path) -> Path:
    """Return a folder, or its nearest parent that exists."""
    absolute = Path(os.path.abspath(folder))
    for part in (absolute, *absolute.parents):
        if os.path.isdir(part):
            return part
    return Path("/")


CHECKS = {
    "disk.permissions": permissions,
    "disk.room": room,
    "disk.temporary": temporary,
    "disk.runs_system": runs_system,
    "disk.home_system": home_system,
}
