"""Runs a command for which the kernel lacks or forbids some calls: python no_calls.py ENOSYS NAME,NAME COMMAND...

ENOSYS is what an old kernel and some sandboxes say, EPERM what the profile of a container says.
"""

import ctypes
import errno
import os
import platform
import struct
import sys

EVERYWHERE = {"pidfd_send_signal": 424, "pidfd_open": 434, "clone3": 435, "close_range": 436}
X86 = {
    "set_mempolicy": 238,
    "renameat2": 316,
    "memfd_create": 319,
    "copy_file_range": 326,
    "statx": 332,
}
ARM = {
    "set_mempolicy": 237,
    "renameat2": 276,
    "memfd_create": 279,
    "copy_file_range": 285,
    "statx": 291,
}
NUMBERS = EVERYWHERE | (X86 if platform.machine() == "x86_64" else ARM)
PIDFDS = "pidfd_open,pidfd_send_signal"
LOAD, JUMP_IF_EQUAL, RETURN = 0x20, 0x15, 0x06  # of a classic BPF program
ALLOW, DENY = 0x7FFF0000, 0x00050000  # and the error


class Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_char_p)]


def forbid(names: list[str], error: int) -> None:
    """Have the kernel answer some calls with an error, to this process and all below it."""
    steps = [(LOAD, 0, 0, 0)]  # the number of the call
    steps += [(JUMP_IF_EQUAL, len(names) - at, 0, NUMBERS[name]) for at, name in enumerate(names)]
    steps += [(RETURN, 0, 0, ALLOW), (RETURN, 0, 0, DENY | error)]
    code = b"".join(struct.pack("HBBI", *step) for step in steps)
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(38, 1, 0, 0, 0)  # no new privileges: who has none may filter only then
    if libc.prctl(22, 2, ctypes.byref(Program(len(steps), code)), 0, 0):
        raise OSError(ctypes.get_errno(), "seccomp filters cannot be set here")


if __name__ == "__main__":
    forbid(sys.argv[2].split(","), getattr(errno, sys.argv[1]))
    os.execvp(sys.argv[3], sys.argv[3:])
