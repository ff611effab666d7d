"""A file that holds on to whoever uses it, as a driver that hangs does: no signal ends who waits in the kernel for an answer.

    python stuck_file.py FILE opened|closed

It serves FILE through /dev/fuse, in namespaces of its own, which takes no privilege. An answer to its opening (or to its
closing, which is what the kernel does last for a process that ends) is never given. Prints the path under which all
processes of this user find the file, and a line for each that is held. When stdin ends so does this, and lets all go.
"""

import ctypes
import os
import select
import struct
import sys

NEW_USER, NEW_MOUNTS = 0x10000000, 0x00020000
INIT, GETATTR, OPEN, FLUSH = 26, 3, 14, 25
NOT_IMPLEMENTED = -38
ANSWERS = {  # as <linux/fuse.h> has them
    INIT: struct.pack("<IIIIHHI40x", 7, 31, 0, 0, 0, 0, 1 << 16),
    GETATTR: struct.pack(
        "<QI4x6Q10I",
        1,
        0,
        1,
        0,
        0,
        0,
        0,
        0,
        0,
        0,
        0,
        0o100600,
        1,
        os.getuid(),
        os.getgid(),
        0,
        4096,
        0,
    ),
    OPEN: struct.pack("<QII", 1, 0, 0),
}


def main() -> None:
    path, held = sys.argv[1], {"opened": OPEN, "closed": FLUSH}[sys.argv[2]]
    device = mount(path)
    print(f"/proc/{os.getpid()}/root{path}", flush=True)
    while 0 not in (ready := select.select([0, device], [], [])[0]):
        assert ready == [device]
        request = os.read(device, 1 << 17)
        _, operation, number = struct.unpack_from("<IIQ", request)
        if operation == held:
            print("held", flush=True)
        else:
            answer = ANSWERS.get(operation, b"")
            os.write(
                device,
                struct.pack("<IiQ", 16 + len(answer), 0 if answer else NOT_IMPLEMENTED, number)
                + answer,
            )


def mount(path: str) -> int:
    """Put the file in its place, for the namespaces of this process alone; return what its requests are read from."""
    user, group = os.getuid(), os.getgid()
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(NEW_USER | NEW_MOUNTS):
        sys.exit(f"no namespaces: {os.strerror(ctypes.get_errno())}")
    for name, text in (
        ("setgroups", "deny"),
        ("uid_map", f"{user} {user} 1"),
        ("gid_map", f"{group} {group} 1"),
    ):
        with open(f"/proc/self/{name}", "w") as file:
            file.write(text)
    device = os.open("/dev/fuse", os.O_RDWR)
    options = f"fd={device},rootmode=100000,user_id={user},group_id={group}"
    if libc.mount(b"stuck", os.fsencode(path), b"fuse", 0, options.encode()):
        sys.exit(f"no mount: {os.strerror(ctypes.get_errno())}")
    return device


if __name__ == "__main__":
    main()
