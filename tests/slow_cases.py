"""Cases of a test that run with `-m slow` only: the same again in another size, in another theme, with another signal."""

from typing import Any

import pytest


def slow_cases(*cases: Any) -> list[Any]:
    return [pytest.param(case, marks=pytest.mark.slow) for case in cases]
