"""Measure how many cores the machine really gives: other processes may be using some of them."""

import subprocess
import sys

# A bare interpreter that spins and prints the share of the time in which it had a core.
_SPIN = """
import time
began, cpu = time.monotonic(), time.process_time()
while time.monotonic() - began < {spin_s}: pass
print((time.process_time() - cpu) / (time.monotonic() - began))
"""


def measure_cores(processes: int, spin_s: float = 0.3) -> float:
    """Return how many cores so many busy processes got together; it takes about `spin_s`."""
    command = [sys.executable, "-I", "-S", "-c", _SPIN.format(spin_s=spin_s)]
    spinning = [subprocess.Popen(command, stdout=subprocess.PIPE) for _ in range(processes)]
    cores = 0.0
    for process in spinning:
        output, _ = process.communicate()
        cores += min(float(output), 1.0)
    return cores
