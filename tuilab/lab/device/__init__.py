"""The one door to the device that a scenario runs on: no other place of tuilab asks torch.cuda anything.

Behind it stand Cpu, which has done what it was told when a call returns, and Cuda, which is told now and does it later.
"""

from tuilab.lab.device.asked import Clock, Device, Held
from tuilab.lab.device.cpu import Cpu
from tuilab.lab.device.cuda import Cuda, Event
from tuilab.lab.device.door import all_in_use, door, give_back, gpu, in_use, memory_summary
from tuilab.lab.device.found import architectures, count, facts, why_no_cuda
from tuilab.lab.device.precision import PRECISIONS, precision
from tuilab.lab.device.units import DTYPES, lacking_units

__all__ = [
    "DTYPES", "PRECISIONS", "Clock", "Cpu", "Cuda", "Device", "Event", "Held", "all_in_use", "architectures", "count", "door",
    "facts", "give_back", "gpu", "in_use", "lacking_units", "memory_summary", "precision", "why_no_cuda",
]  # fmt: skip
