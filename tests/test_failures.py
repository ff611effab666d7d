"""The record of a failure: what it is named after, and what is told of the exceptions before it."""

from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest

from tests.engine import look, newest, write_scenario
from tuilab.lab.arguments import number
from tuilab.lab.failures.failure import describe, reason_of
from tuilab.record.events import ScenarioFailed
from tuilab.record.tracebacks import frames

ASSERT = "CUDA error: device-side assert triggered"
DIRECT = "The above exception was the direct cause of the following exception:"
DURING = "During handling of the above exception, another exception occurred:"


def failure_of(body: str, folder: Path, **names: Any) -> tuple[ScenarioFailed, str]:
    """Return the record of what a function of these lines raises, and the reason of its run."""
    source = folder / "scenario.py"
    source.write_text("def run():\n" + "\n".join(f"    {line}" for line in body.splitlines()))
    exec(compile(source.read_text(), str(source), "exec"), names)
    with pytest.raises(BaseException) as caught:
        names["run"]()
    return describe(caught.value, source), reason_of(caught.value)


@pytest.mark.parametrize("again", [1, 3])
def test_an_error_of_cuda_while_cleaning_up_does_not_hide_the_first_error(
    tmp_path: Path, again: int
) -> None:
    body = 'raise IndexError("label 10 of 10")'
    for _ in range(again):
        body = (
            "try:\n"
            + "\n".join(f"    {line}" for line in body.splitlines())
            + f"\nfinally:\n    raise RuntimeError({ASSERT!r})"
        )

    failure, reason = failure_of(body, tmp_path)

    assert (failure.type, failure.message) == ("IndexError", "label 10 of 10")
    assert reason == "IndexError: label 10 of 10"
    assert "an index or label is out of range in a kernel" in failure.hint
    assert (
        failure.traceback.count(DURING)
        == failure.traceback.count(f"RuntimeError: {ASSERT}\n")
        == again
    )
    assert failure.traceback.index("IndexError: label") < failure.traceback.index(DURING)


def test_the_first_error_of_cuda_names_the_failure_and_not_those_after_it(tmp_path: Path) -> None:
    body = f"try:\n    raise RuntimeError({ASSERT!r})\nfinally:\n    raise RuntimeError('CUDA error: out of memory')"

    failure, reason = failure_of(body, tmp_path)

    assert failure.message == ASSERT and reason == f"RuntimeError: {ASSERT}"
    assert failure.hint.startswith("an index or label is out of range in a kernel")


@pytest.mark.parametrize(("link", "between"), [(" from problem", DIRECT), ("", DURING)])
def test_an_author_who_says_it_in_other_words_is_heard(
    tmp_path: Path, link: str, between: str
) -> None:
    body = f'try:\n    raise KeyError("a")\nexcept KeyError as problem:\n    raise ValueError("no a in it"){link}'

    failure, reason = failure_of(body, tmp_path)

    assert (failure.type, reason) == ("ValueError", "ValueError: no a in it")
    assert "KeyError: 'a'\n" in failure.traceback and between in failure.traceback
    assert "KeyError: 'a'\n" in frames(failure) and "ValueError: " not in frames(failure)


def test_an_error_of_cuda_in_the_authors_own_words_keeps_its_advice(tmp_path: Path) -> None:
    body = 'try: raise RuntimeError("CUDA error: out of memory")\nexcept RuntimeError as e: raise ValueError("too large") from e'

    failure, reason = failure_of(body, tmp_path)

    assert reason == "ValueError: too large"
    assert failure.hint.startswith("the GPU has no memory left")


def test_what_an_author_leaves_out_is_left_out(tmp_path: Path) -> None:
    body = 'try:\n    raise KeyError("a")\nexcept KeyError:\n    raise ValueError("no a in it") from None'

    failure, _ = failure_of(body, tmp_path)

    assert "KeyError" not in failure.traceback


def test_a_refusal_of_ours_does_not_tell_what_it_comes_from_but_what_was_before(
    tmp_path: Path,
) -> None:
    body = 'try:\n    raise KeyError("a")\nfinally:\n    number("step", "three")'

    failure, reason = failure_of(body, tmp_path, number=number)

    assert reason.startswith("TypeError: step takes a number, not ")
    assert "KeyError: 'a'\n" in failure.traceback
    assert failure.traceback.count("Error: ") == 2
    assert "tuilab/" not in failure.traceback


def test_exceptions_that_come_from_each_other_have_an_end(tmp_path: Path) -> None:
    body = 'first, last = KeyError("a"), ValueError("b")\nfirst.__context__ = last\nlast.__context__ = first\nraise last'

    failure, _ = failure_of(body, tmp_path)

    assert failure.traceback.count("ValueError: b") == 1


def test_a_failure_while_cleaning_up_is_told_after_the_first_in_the_result(
    tuilab: Callable[..., "CompletedProcess[str]"], root: Path, tmp_path: Path
) -> None:
    body = f'try: raise IndexError("label 10 of 10")\nfinally: raise RuntimeError({ASSERT!r})'

    done = tuilab("run", str(write_scenario(tmp_path, body)), "--headless", "--quiet")

    run_dir = newest(root)
    assert run_dir is not None
    assert look(run_dir).summary.reason == "IndexError: label 10 of 10"
    assert done.stdout.count("IndexError: label 10 of 10") == 1
    assert (
        done.stdout.index("IndexError: label")
        < done.stdout.index(DURING)
        < done.stdout.index(f"RuntimeError: {ASSERT}")
    )


FULL = """
import torch
class Cuda:
    def is_available(self): return True
    def is_initialized(self): return True
    def device_count(self): return 3
    def memory_reserved(self, index): return index * 100
    def memory_summary(self, index): ANSWER
torch.cuda = Cuda()
"""


@pytest.mark.parametrize(
    ("answer", "kept"),
    [
        (
            'return f"a table of cuda:{index}"',
            {"cuda-memory-worker-0.txt": "a table of cuda:1\n\na table of cuda:2\n"},
        ),
        ('raise RuntimeError("CUDA error: device-side assert triggered")', {}),
    ],
)
@pytest.mark.first(1)
def test_what_held_the_memory_of_a_full_gpu_is_kept_with_the_run(
    tuilab: Callable[..., "CompletedProcess[str]"],
    root: Path,
    tmp_path: Path,
    answer: str,
    kept: dict[str, str],
) -> None:
    path = write_scenario(
        tmp_path, 'raise RuntimeError("CUDA error: out of memory")', FULL.replace("ANSWER", answer)
    )

    done = tuilab("run", str(path), "--headless", "--quiet")

    run_dir = newest(root)
    assert run_dir is not None
    assert done.returncode == 4
    assert look(run_dir).summary.reason == "RuntimeError: CUDA error: out of memory"
    assert {file.name: file.read_text() for file in (run_dir / "artifacts").iterdir()} == kept
    assert {one.name for one in look(run_dir).summary.artifacts} == kept.keys()
