"""A lesson that runs in a fork of a process that waits says what it says to a user."""

from collections.abc import Callable
from subprocess import CompletedProcess
from typing import Any

import pytest

from tests.conftest import run_of


@pytest.mark.library
@pytest.mark.parametrize("words", [("softmax",), ("xent", "--dtype", "float16")])
def test_its_document_is_that_of_a_run_in_processes_of_its_own(
    result: Callable[..., dict[str, Any]],
    tuilab: Callable[..., "CompletedProcess[str]"],
    words: tuple[str, ...],
) -> None:
    fresh = run_of(tuilab("run", *words, "--headless", "--quick", "--json", "--quiet"))
    forked = result(*words)

    alike = (
        "scenario",
        "title",
        "params",
        "changed",
        "state",
        "reason",
        "claims",
        "series",
        "texts",
        "exit_code",
        "axes",
    )
    assert {name: forked[name] for name in alike} == {name: fresh[name] for name in alike}
