"""Serve a file that holds its users, as a driver that hangs does: no signal ends a waiting process.

    python stuck_file.py FILE opened|closed

FILE is served through /dev/fuse in namespaces of this process, which needs no privilege. The kernel
never gets an answer when a process opens the file, or closes it. (Closing files is the last thing
that the kernel does for a process that ends.) This prints the path under which all processes of the
user find the file, and a line for each process that is held. When stdin ends, this ends and releases
all processes.
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
        *(1, 0),  # valid for 1 s
        *(1, 0, 0, 0, 0, 0, 0, 0, 0),  # inode 1; size, blocks and times are 0
        *(0o100600, 1, os.getuid(), os.getgid()),  # mode, links, owner
        *(0, 4096, 0),  # device, size of a block, flags
    ),
    OPEN: struct.pack("<QII", 1, 0, 0),
}


def main() -> None:
    path = sys.argv[1]
    held_operation = {"opened": OPEN, "closed": FLUSH}[sys.argv[2]]
    device = mount(path)
    print(f"/proc/{os.getpid()}/root{path}", flush=True)
    while True:
        ready, _, _ = select.select([0, device], [], [])
        if 0 in ready:  # stdin has ended
            return
        request = os.read(device, 1 << 17)
        _, operation, number = struct.unpack_from("<IIQ", request)
        if operation == held_operation:
            print("held", flush=True)
            continue
        answer = ANSWERS.get(operation, b"")
        error = 0 if answer else NOT_IMPLEMENTED
        head = struct.pack("<IiQ", 16 + len(answer), error, number)
        os.write(device, head + answer)


def mount(path: str) -> int:
    """Mount the file, in the namespaces of this process only. Return the descriptor of its requests."""
    user, group = os.getuid(), os.getgid()
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(NEW_USER | NEW_MOUNTS):
        sys.exit(f"no namespaces: {os.strerror(ctypes.get_errno())}")
    write_own("setgroups", "deny")
    write_own("uid_map", f"{user} {user} 1")
    write_own("gid_map", f"{group} {group} 1")
    device = os.open("/dev/fuse", os.O_RDWR)
    options = f"fd={device},rootmode=100000,user_id={user},group_id={group}"
    if libc.mount(b"stuck", os.fsencode(path), b"fuse", 0, options.encode()):
        sys.exit(f"no mount: {os.strerror(ctypes.get_errno())}")
    return device


def write_own(name: str, text: str) -> None:
    """Write a setting of this process."""
    with open(f"/proc/self/{name}", "w") as file:
        file.write(text)


if __name__ == "__main__":
    main()
