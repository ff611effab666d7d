"""An arm that crashes in the third repeat."""

import os
import signal

from tuilab import Lab


def step(lab: Lab, seconds: float, crashes: bool) -> float:
    lab.log(lab.repeat, seconds=seconds)
    if crashes:
        os.kill(os.getpid(), signal.SIGSEGV)
    return seconds


def run(lab: Lab) -> None:
    lab.claim("two is slower than one", ratio="two/one", at_least=1.5)
    luck = 1 + 0.01 * lab.repeat
    lab.race(one=lab.arm("one", step, 0.5, False), two=lab.arm("two", step, 1.0 * luck, lab.repeat == 2))
