"""How many cores a box really gives: what its number of cores promises, others may be using."""

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
    """Return the cores' worth of CPU time that as many busy processes got together."""
    command = [sys.executable, "-I", "-S", "-c", _SPIN.format(spin_s=spin_s)]
    spinning = [subprocess.Popen(command, stdout=subprocess.PIPE) for _ in range(processes)]
    return sum(min(float(process.communicate()[0]), 1.0) for process in spinning)
