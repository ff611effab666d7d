"""Mark cases that repeat a test with another size, theme or signal: they run with `-m slow` only."""

from typing import Any

import pytest


def slow_cases(*cases: Any) -> list[Any]:
    """Return these cases for `parametrize`, marked as slow."""
    return [pytest.param(case, marks=pytest.mark.slow) for case in cases]
