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


def test_a_second_one_waits_for_the_answer_to_the_first_and_is_not_lost() -> None:
    done = subprocess.run([sys.executable, "-c", ANSWERS], input="more\nenough\n", capture_output=True, text=True, timeout=60)

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == ["answered", "answered", "heeded at once again"]
