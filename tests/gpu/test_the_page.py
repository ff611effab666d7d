"""The last test: what was seen on this GPU, on one page. TUILAB_GPU_PAGE names a folder to keep it in."""

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import torch

from tuilab import __version__
from tuilab.lab.device import torch_gpus
from tuilab.probes.gpu.nvml import open_gpus
from tuilab.text.display import show

if TYPE_CHECKING:
    from tests.gpu.page import Page


def test_what_was_seen_is_written_down(
    page: "Page", tmp_path: Path, request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]
) -> None:
    gpus = open_gpus()
    driver = gpus if isinstance(gpus, str) else gpus.facts()
    page.note("box", "GPU", torch.cuda.get_device_name(0))
    page.note("box", "driver", driver)
    page.note(
        "box",
        "torch",
        f"{torch.__version__}, CUDA {torch.version.cuda}, cuDNN {torch.backends.cudnn.version()}",
    )
    page.note("box", "tuilab", __version__)
    page.note("box", "facts", torch_gpus.facts())
    page.note("tests", "failed", request.session.testsfailed)
    folder = Path(os.environ.get("TUILAB_GPU_PAGE") or tmp_path)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"gpu-{time.strftime('%Y%m%d-%H%M%S')}.md"

    path.write_text(
        page.text(f"tuilab on {torch.cuda.get_device_name(0)}, {time.strftime('%Y-%m-%d %H:%M')}")
    )

    with capsys.disabled():
        print(f"\nwhat was seen on this GPU: {show(path)}")
    assert path.read_text().startswith("# tuilab on ")
