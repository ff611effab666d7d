"""The two ends of the line on which a supervisor and a worker talk in messages. It loads next to nothing."""

import socket

from tuilab.files import set_apart


def pair() -> tuple[socket.socket, socket.socket]:
    """Return the two ends of a new line; the worker's has a high number."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    return ours, socket.socket(fileno=set_apart(theirs.detach()))
