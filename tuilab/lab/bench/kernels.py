"""Whether a build of torch has kernels for a GPU: machine code of its architecture, or code that the driver translates."""

import re
from collections.abc import Iterable
from typing import NamedTuple


class _Target(NamedTuple):
    """What something was compiled for: sm_90a for (9, 0) and nothing else."""

    is_machine_code: bool
    version: tuple[int, int]
    is_special: bool  # it runs there and nowhere else


def kernels_for(architecture: str, built: Iterable[str]) -> str:
    """Return `machine code` or `translated by the driver`, or nothing where a GPU such as sm_86 has neither.

    Machine code runs on its generation, but not on an older minor version of it: of sm_80 on sm_86. A driver translates for
    whatever is newer.
    """
    version = _version(architecture.removeprefix("sm_"))
    targets = [target for name in built if (target := _target(name))]
    if any(target.is_machine_code and _runs(target, version) for target in targets):
        return "machine code"
    can_translate = any(
        not one.is_machine_code and one.version <= version and (not one.is_special or one.version == version) for one in targets
    )
    return "translated by the driver" if can_translate else ""


def _runs(target: _Target, version: tuple[int, int]) -> bool:
    if target.is_special:
        return target.version == version
    return target.version[0] == version[0] and target.version[1] <= version[1]


def _target(name: str) -> _Target | None:
    found = re.fullmatch(r"(sm|compute)_(\d{2,3})([af]?)", name)
    return _Target(found[1] == "sm", _version(found[2]), found[3] == "a") if found else None


def _version(digits: str) -> tuple[int, int]:
    return divmod(int(digits), 10)
