"""What a run says of the device that its scenario was given, and which GPU its other processes keep to."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import torch

from tuilab.drawings.glyphs import Style
from tuilab.engine import messages
from tuilab.engine.messages import WorkerOrder
from tuilab.lab.lab import Lab
from tuilab.record import events
from tuilab.record.gpu_of_run import gpu_of_run
from tuilab.record.journal import Reader, Writer
from tuilab.record.raced_gpu import torch_uuid
from tuilab.record.summary import RunSummary
from tuilab.record.told import device_notices, device_words
from tuilab.reports import plain

if TYPE_CHECKING:
    from tests.fakes.cuda import FakeCuda
    from tests.fakes.nvml import FakeNvml

pytest_plugins = ["tests.fakes.cuda", "tests.fakes.nvml"]
