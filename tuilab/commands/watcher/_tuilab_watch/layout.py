"""Define the format of the files of marks, which the watcher writes and tuilab reads.

The marks of a process are in the files PID.0, PID.1, ..., all of one size. If a file is full, the
watcher begins the next one. tuilab removes the files that it has read, but keeps the last file of a
PID: a program that gets the same PID later, for example by exec, begins with the number after that.

A mark has 32 bytes. Its last byte is its kind, and is written last: 0 means that there is no mark
yet. A text is in the slots after its mark, each of which ends with the byte TEXT. All numbers are
little-endian, like the processors that torch runs on.

The number of a step, a forward, a backward, a wait or a call of a logger is the time that watching
took since the previous such mark, in nanoseconds.

A USED mark has what the stepping thread and its process have used since they began. Its begin is
the CPU time of the thread, and its end that of the whole process, both in nanoseconds. Its number
counts how often the thread gave its core away by itself (the last 32 bits). Its value is for how
many nanoseconds the thread wanted a core and had none, or -1 if that was not read.
"""

from __future__ import annotations

import struct

SIZE = 256 * 1024  # bytes of a file
SLOT = 32
FIRST = 2  # the first slot for marks: the head is before it
# MAGIC, how many marks the program has lost, and the number of its first file.
HEAD = struct.Struct("<8sQQ")
MAGIC = b"tuilab.1"
# Begin and end in nanoseconds of CLOCK_MONOTONIC, value, number, id, flags, kind.
MARK = struct.Struct("<qqdIHBB")
# The same, with all that comes after the value in one word.
WORDS_OF_MARK = struct.Struct("<qqdq")

HELLO = 1  # a text: JSON about the process
NAME = 2  # a text: the name of an id from here on
COMPILED = 24  # a text: JSON about a graph of torch.compile, or about why graphs break
TREATED = 40  # a text: JSON about what a treatment of a tuning did, or why it did nothing
SCRIPT_FACTS = 41  # a text: JSON with facts about the training, for a tuning
EXCHANGED = 28  # a text: JSON about how DistributedDataParallel exchanges gradients
COUNTED = 30  # a text: JSON about a step that was counted
TEXTS = (HELLO, NAME, COMPILED, EXCHANGED, COUNTED, TREATED, SCRIPT_FACTS)
STEPPED = 3  # id: the optimizer
SKIPPED = 4  # id: the optimizer, whose step GradScaler skipped
WENT_BACK = 5  # a backward; value: its root, if HAS_VALUE
WAITED = 6  # a wait for data
# A value. id: its name; end: its step; number: 1 if the step is not a whole number, and the end has
# the bits of a float.
LOGGED = 7
# A value that was on a GPU: a root, or whether a step was skipped. begin: the end of the mark that
# the value belongs to. Without HAS_VALUE, the value is lost.
LANDED = 8
# A time on a GPU. begin: the end of the mark that it belongs to; value: milliseconds, or -1 if only
# the end was timed; end: nanoseconds on the GPU since the previous timed work ended there, or -1.
WORKED = 9
# The memory that torch's allocator holds on a GPU. begin: allocated; end: reserved; value: most
# allocated; number: device; id: UUID.
HELD = 10
WENT_FORWARD = 11  # a forward with the loss, if a library calls it in one place
# The main thread has ended. From here on Python only shuts down, unless other threads still train.
SCRIPT_ENDED = 20
STEP_BEGAN = 21  # id: the optimizer, which begins its first step
# A call of a logger. If a logger calls another logger, only the outer call has a mark.
LOGGER_CALL = 22
COLLECTED = 23  # a pause in which Python collected garbage; number: the generation
# CPU time, before the STEPPED or SKIPPED of the same id; the docstring describes the fields.
USED = 12

TEXT = 255  # a slot with 31 bytes of a text

# Flags:
HAS_VALUE = 1
LATE = 2  # a LANDED will follow
TIMED = 4  # a WORKED will follow
WITHIN = 8  # an optimizer took the step during a backward
# Flags of a WAITED, whose id is the number of the loop:
FROM_WORKERS = 16  # other processes make the data
ELSEWHERE = 8  # the waiting thread makes no steps, for example because it fetches batches ahead
WITHOUT_GRADIENTS = 32  # gradients are switched off, as in an evaluation
BEGINS = 64  # a loop over a DataLoader begins
ENDS = 128  # the loop ends: there are no more batches

MOST = 2**32 - 1  # the largest number of a mark
LONGEST_TEXT = 4000  # bytes


def last_of(kind: int, name: int = 0, flags: int = 0) -> int:
    """Return the last word of a mark without its number, which the caller adds."""
    return kind << 56 | flags << 48 | name << 32


def used_of(stepped: int) -> int:
    """Return the last word of a USED mark without its number, which the caller adds.

    `stepped` is the last word of the mark of the step that follows.
    """
    return last_of(USED, stepped >> 32 & 0xFFFF)


def pieces_of(text: bytes) -> bytes:
    """Return a text divided into slots."""
    size = SLOT - 1
    slots = []
    for start in range(0, len(text), size):
        piece = text[start : start + size].ljust(size, b"\0")
        slots.append(piece + bytes([TEXT]))
    return b"".join(slots)


def text_of(slots: bytes, length: int) -> bytes:
    """Return the text that the slots contain."""
    pieces = []
    for start in range(0, len(slots), SLOT):
        pieces.append(slots[start : start + SLOT - 1])
    text = b"".join(pieces)
    return text[:length]


def slots_for(length: int) -> int:
    """Return how many slots a text of so many bytes takes."""
    return -(-length // (SLOT - 1))


def bits_of(number: float) -> int:
    """Return the bits of a float as a whole number of 64 bits."""
    bits: int = struct.unpack("<q", struct.pack("<d", number))[0]
    return bits


def float_of(bits: int) -> float:
    """Return the float that has these bits."""
    number: float = struct.unpack("<d", struct.pack("<q", bits))[0]
    return number
