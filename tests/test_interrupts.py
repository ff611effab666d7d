"""Ctrl-C is neither lost nor does it come where it would spoil something."""

import subprocess
import sys

ANSWERS = """
import os, signal, time
from tuilab import interrupts

interrupts.heed()
with interrupts.OneByOne() as turns:
    while True:
        try:
            turns.be_ready()
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(60)
        except KeyboardInterrupt:
            os.kill(os.getpid(), signal.SIGINT)
            print("answered", flush=True)
            if input() == "enough":
                break
try:
    time.sleep(60)
except KeyboardInterrupt:
    print("heeded at once again", flush=True)
"""


DROPPED = """
import signal, time, weakref
from tuilab import interrupts

interrupts.heed()

class Gone:
    def __del__(self): signal.raise_signal(signal.SIGINT)

class Noted(set):
    def discard(self, one): signal.raise_signal(signal.SIGINT)

weak = weakref.WeakSet([held := interrupts.OneByOne()])
weak.data = Noted(weak.data)
for leave in (lambda: Gone(), lambda: globals().pop("held")):
    try:
        leave()
        time.sleep(60)
    except KeyboardInterrupt:
        print("heeded", flush=True)
        interrupts.OneByOne.be_ready()
"""


FORKED = """
import logging, os, signal, time
from tuilab import interrupts

interrupts.heed()

class Noted:
    def acquire(self): pass
    def release(self):
        logging._lock = None
        signal.raise_signal(signal.SIGINT)
    def _at_fork_reinit(self): pass

logging._lock = Noted()
try:
    if os.fork() == 0:
        os._exit(0)
    time.sleep(60)
except KeyboardInterrupt:
    print("heeded", flush=True)
"""


def test_ctrl_c_during_a_fork_is_not_lost() -> None:
    done = subprocess.run(
        [sys.executable, "-c", FORKED], capture_output=True, text=True, timeout=60
    )

    assert (done.returncode, done.stderr, done.stdout) == (0, "", "heeded\n")


def test_one_that_comes_while_an_object_goes_is_not_lost() -> None:
    """Python drops what is raised in a `__del__`, or where a weak set or dictionary forgets somebody."""
    done = subprocess.run(
        [sys.executable, "-c", DROPPED], capture_output=True, text=True, timeout=60
    )

    assert (done.returncode, done.stderr, done.stdout.splitlines()) == (0, "", ["heeded", "heeded"])


def test_a_second_one_waits_for_the_answer_to_the_first_and_is_not_lost() -> None:
    done = subprocess.run(
        [sys.executable, "-c", ANSWERS],
        input="more\nenough\n",
        capture_output=True,
        text=True,
        timeout=60,
    )

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == ["answered", "answered", "heeded at once again"]
