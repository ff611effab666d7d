"""Run a command without some system calls: python no_calls.py ENOSYS NAME,NAME COMMAND...

Old kernels and some sandboxes answer ENOSYS, the profile of a container answers EPERM.
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
NUMBERS = {**EVERYWHERE, **X86} if platform.machine() == "x86_64" else {**EVERYWHERE, **ARM}
PIDFDS = "pidfd_open,pidfd_send_signal"
LOAD, JUMP_IF_EQUAL, RETURN = 0x20, 0x15, 0x06  # instructions of a classic BPF program
ALLOW, DENY = 0x7FFF0000, 0x00050000  # the number of the error is added to DENY
NO_NEW_PRIVILEGES, SET_SECCOMP, MODE_FILTER = 38, 22, 2  # of prctl


class Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_char_p)]


def forbid(names: list[str], error: int) -> None:
    """Make the kernel answer some calls with an error, for this process and all its descendants."""
    steps = [(LOAD, 0, 0, 0)]  # the number of the call
    for index, name in enumerate(names):
        steps_to_deny = len(names) - index
        steps.append((JUMP_IF_EQUAL, steps_to_deny, 0, NUMBERS[name]))
    steps.append((RETURN, 0, 0, ALLOW))
    steps.append((RETURN, 0, 0, DENY | error))
    code = b"".join(struct.pack("HBBI", *step) for step in steps)
    libc = ctypes.CDLL(None, use_errno=True)
    # Without this, only a privileged process may set a filter.
    libc.prctl(NO_NEW_PRIVILEGES, 1, 0, 0, 0)
    program = Program(len(steps), code)
    if libc.prctl(SET_SECCOMP, MODE_FILTER, ctypes.byref(program), 0, 0):
        raise OSError(ctypes.get_errno(), "seccomp filters cannot be set here")


if __name__ == "__main__":
    forbid(sys.argv[2].split(","), getattr(errno, sys.argv[1]))
    os.execvp(sys.argv[3], sys.argv[3:])
