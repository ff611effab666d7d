"""What a call raises, and what it warns of, as texts that a claim compares."""

import traceback
import warnings
from collections.abc import Callable
from typing import Any

import torch

from tuilab.errors import TuilabError
from tuilab.lab.failures.failure import text_of


def raised_by(f: Callable[..., Any], args: tuple[Any, ...]) -> str:
    """Return what a call raises, as `TypeError: first line`, or nothing; what ends a run is no answer, and passes."""
    try:
        f(*args)
    except TuilabError:
        raise
    except Exception as problem:
        told = _told(type(problem), text_of(problem))
        traceback.clear_frames(problem.__traceback__)  # an error that refers to itself would keep what the call held
        return told
    return ""


def warned_by(f: Callable[..., Any], args: tuple[Any, ...]) -> list[str]:
    """Return what a call warns of, each as `UserWarning: first line`: also what torch and Python would say only once."""
    before = torch.is_warn_always_enabled()
    torch.set_warn_always(True)
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            f(*args)
    finally:
        torch.set_warn_always(before)
    return [_told(one.category, str(one.message)) for one in caught]


def _told(kind: type[BaseException], text: str) -> str:
    """Return a complaint in one line, with whole characters: a claim takes no others."""
    first = (text.strip().splitlines() or [""])[0].encode(errors="backslashreplace").decode()
    return f"{kind.__name__}: {first}" if first else kind.__name__
