"""Which GPU a run gets on a real box, and what is said of it."""

from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess
from typing import TYPE_CHECKING

import pytest
import torch

from tests.engine import look, newest
from tuilab.lab.device.choose_device import choose
from tuilab.record.finding_words import device_words

if TYPE_CHECKING:
    from tests.gpu.page import Page

Tuilab = Callable[..., "CompletedProcess[str]"]


def test_auto_takes_a_gpu_and_says_why(page: "Page") -> None:
    chosen = choose("auto")
    page.note(
        "choice", "auto", f"{chosen.device}, {chosen.why}; {chosen.notice or 'nothing to add'}"
    )

    assert chosen.device.type == "cuda"
    assert chosen.why and not chosen.notice.startswith("this ran on the CPU")


def test_a_gpu_that_is_named_is_the_one(tuilab: Tuilab, root: Path) -> None:
    done = tuilab("run", "softmax", "--device", "cuda:0", "--headless", "--quick", "--quiet")

    run_dir = newest(root)
    assert run_dir is not None and done.returncode == 0, done.stderr
    assert device_words(look(run_dir).summary) == "cuda:0, asked for"


def test_a_gpu_that_is_not_there_is_lacked_in_one_sentence(tuilab: Tuilab) -> None:
    done = tuilab("run", "softmax", "--device", "cuda:99", "--headless", "--quick", "--quiet")

    assert done.returncode == 3
    assert done.stdout.count("cuda:99: torch sees ") == 1, done.stdout


def test_a_device_that_is_set_for_good_counts(tuilab: Tuilab, root: Path) -> None:
    done = tuilab(
        "run", "softmax", "--headless", "--quick", "--quiet", env={"TUILAB_DEVICE": "cuda:0"}
    )

    run_dir = newest(root)
    assert run_dir is not None and done.returncode == 0, done.stderr
    assert device_words(look(run_dir).summary) == "cuda:0, asked for"


def test_the_form_lists_the_gpu_with_what_is_free() -> None:
    from tuilab.tui.state.gpus import GpuQuestion

    question = GpuQuestion()
    question.begin(0.0)
    found = question.answer()

    assert found is not None
    if any("is not known" in note for note in found.notes):
        pytest.skip("; ".join(found.notes))
    assert [gpu.label for gpu in found.gpus] == [
        f"cuda:{number}" for number in range(torch.cuda.device_count())
    ]
    assert all(gpu.free.endswith("B free") for gpu in found.gpus)
