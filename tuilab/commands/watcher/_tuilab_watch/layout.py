"""How marks lie in their files: what the watcher writes and tuilab reads.

Files PID.0, PID.1, ... of one size; the next one is begun when one is full, and tuilab removes those it has read. It keeps the
last file of a PID: a program that gets the same PID later, as by exec, begins with the number after that. A mark has 32
bytes, the last of which says what it is and is written last: 0 is none yet. A text stands in the slots behind its mark, which
end with a byte of their own. All is little-endian, as the processors are that torch runs on.

The number of a step, a forward, a backward, a wait and a call of a logger is what watching took since such a mark before, in
nanoseconds.
A USED mark holds what the stepping thread and its process have used since they began. Its begin is the CPU time of the thread,
its end that of the whole process, both in nanoseconds. Its number counts how often the thread gave its core away by itself (the
last 32 bits). Its value is for how many nanoseconds the thread wanted a core and had none, or -1 if that was not read.
"""

from __future__ import annotations

import struct

SIZE = 256 * 1024  # bytes of a file
SLOT = 32
WORDS = SLOT // 8
FIRST = 2  # slots: before them is the head
HEAD = struct.Struct(
    "<8sQQ"
)  # MAGIC, how many marks the program has lost, and the number of its first file
MAGIC = b"tuilab.1"
MARK = struct.Struct(
    "<qqdIHBB"
)  # begin and end in nanoseconds of CLOCK_MONOTONIC, value, number, id, flags, kind
WORDS_OF_MARK = struct.Struct(
    "<qqdq"
)  # the same, with all that stands behind the value in one word

HELLO = 1  # a text: JSON about the process
NAME = 2  # a text: what an id is called from here on
STEPPED = 3  # id: the optimizer
SKIPPED = 4  # id: the optimizer, whose step GradScaler left out
WENT_BACK = 5  # a backward with its root, if HAS_VALUE
WAITED = 6  # for data
LOGGED = 7  # id: the name; the end is its step; number: 1 where that is no whole number but a float in those bits
LANDED = 8  # a value that was on a GPU: a root, or whether a step was left out; begin: the end of the mark that it belongs to
WORKED = 9  # on a GPU: begin: as above; value: milliseconds; end: nanoseconds since the one before ended there, or -1
HELD = 10  # by torch's allocator on a GPU: begin: allocated, end: reserved, value: most allocated; number: device; id: UUID
WENT_FORWARD = 11  # with the loss, where a library calls that in one place
SCRIPT_ENDED = 20  # the main thread has ended: from here on Python only shuts down, unless other threads still train
STEP_BEGAN = 21  # id: the optimizer; it begins its first step
LOGGER_CALL = (
    22  # a call of a logger; if a logger calls another one, only the outer call has a mark
)
USED = 12  # of a core, before the STEPPED or SKIPPED of the same id; see below

TEXT = 255  # 31 bytes of a text

HAS_VALUE = 1  # flags
LATE = 2  # a LANDED comes
TIMED = 4  # a WORKED comes
WITHIN = 8  # a step that an optimizer took while something went backward
FROM_WORKERS = 16  # a wait for data that other processes make; a WAITED has these flags, too, and the loop's number as its id
ELSEWHERE = 8  # a thread waits that makes no steps, as one that fetches batches ahead
WITHOUT_GRADIENTS = 32  # they are switched off, as in an evaluation
BEGINS = 64  # a loop over a DataLoader
ENDS = 128  # that loop: there are no more batches

MOST = 2**32 - 1  # that a number can be


def last_of(kind: int, name: int = 0, flags: int = 0) -> int:
    """Return the last word of a mark, to which its number is added."""
    return kind << 56 | flags << 48 | name << 32


def used_of(stepped: int) -> int:
    """Return the last word of a USED mark, to which its number is added, from that of the step that follows."""
    return last_of(USED, stepped >> 32 & 0xFFFF)


def pieces_of(text: bytes) -> bytes:
    """Return a text as it stands in slots."""
    size = SLOT - 1
    return b"".join(
        text[at : at + size].ljust(size, b"\0") + bytes([TEXT]) for at in range(0, len(text), size)
    )


def text_of(slots: bytes, length: int) -> bytes:
    """Return the text that stands in slots."""
    return b"".join(slots[at : at + SLOT - 1] for at in range(0, len(slots), SLOT))[:length]


def slots_for(length: int) -> int:
    """Return how many slots a text of so many bytes takes."""
    return -(-length // (SLOT - 1))


def bits_of(number: float) -> int:
    """Return a float as a whole number of 64 bits."""
    bits: int = struct.unpack("<q", struct.pack("<d", number))[0]
    return bits


def float_of(bits: int) -> float:
    """Return the float that such a number is."""
    number: float = struct.unpack("<d", struct.pack("<q", bits))[0]
    return number
