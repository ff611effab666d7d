"""Runs a command that may not use pidfds, as in a container with an old seccomp profile: python no_pidfd.py COMMAND..."""

import ctypes
import errno
import os
import struct
import sys

PIDFD_SEND_SIGNAL, PIDFD_OPEN = 424, 434  # the same on every architecture
LOAD, JUMP_IF_EQUAL, RETURN = 0x20, 0x15, 0x06  # of a classic BPF program
ALLOW, DENY = 0x7FFF0000, 0x00050000 | errno.ENOSYS


class Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_char_p)]


def forbid() -> None:
    """Have the kernel say that there are no such calls, to this process and all below it."""
    steps = [
        (LOAD, 0, 0, 0),  # the number of the call
        (JUMP_IF_EQUAL, 1, 0, PIDFD_OPEN),
        (JUMP_IF_EQUAL, 0, 1, PIDFD_SEND_SIGNAL),
        (RETURN, 0, 0, DENY),
        (RETURN, 0, 0, ALLOW),
    ]
    code = b"".join(struct.pack("HBBI", *step) for step in steps)
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(38, 1, 0, 0, 0)  # no new privileges: who has none may filter only then
    if libc.prctl(22, 2, ctypes.byref(Program(len(steps), code)), 0, 0):
        raise OSError(ctypes.get_errno(), "seccomp filters cannot be set here")


if __name__ == "__main__":
    forbid()
    os.execvp(sys.argv[1], sys.argv[1:])
