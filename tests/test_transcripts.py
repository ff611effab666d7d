"""What the command line prints stays as it was kept: every verb, bad input too, beside runs of format 1."""

from pathlib import Path

import pytest

from tests.transcripts import golden, names, play

REAL_TORCH = {"run": pytest.mark.library}  # in a shell of its own, without the stand-in


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=REAL_TORCH.get(name, pytest.mark.tools)) for name in names()]
)
def test_a_session_comes_out_as_it_was_kept(name: str, tmp_path: Path) -> None:
    assert play(name, tmp_path) == golden(name)
