"""What is kept of calibrations: one of each box, for work on its CPU, and one of each GPU, wherever that is plugged in."""

import os
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Annotated

import msgspec

from tuilab import places
from tuilab.errors import CannotRecord
from tuilab.files import Unusable, json_as, read_small, replace
from tuilab.record import presence
from tuilab.text import show

_LIMIT = 1024 * 1024
_GPU = "GPU "  # before the UUID of one; no box has a name with a space in it
_Number = Annotated[float, msgspec.Meta(ge=0, lt=1e11)]


class Trials(msgspec.Struct, frozen=True):
    """What the trials of one way of judging amount to."""

    trials: int
    false: int
    delays: int
    seen: int
    smallest_effect: float | None = None
    processes: int = 0  # that all the trials were made of: those of one process share its luck


class Calibration(msgspec.Struct, frozen=True):
    """The last assessment of a box or a GPU, by the way of judging; nothing where it was never calibrated."""

    ways: dict[str, Trials] = {}
    wall_s: float | None = None  # since 1970
    luck: float | None = None  # how far off a process is by itself: the standard deviation of its mean, in logs
    name: str = ""  # of a GPU
    box: str = ""  # in which that GPU was

    @property
    def day(self) -> str:
        """When it was measured, by the clock of this box; nothing where the file does not say."""
        return "" if self.wall_s is None else time.strftime("%Y-%m-%d %H:%M", time.localtime(self.wall_s))


def save(ways: Mapping[str, Trials], luck: float | None = None, uuid: str = "", name: str = "") -> None:
    """Keep the assessment of this box, or that of the GPU which torch knows by a UUID; each has one of its own.

    One that was too short to tell the luck of a process leaves what an earlier one told of it.
    """
    luck = load(uuid).luck if luck is None else luck
    numbers = {"wall_s": time.time(), **({} if luck is None else {"luck": luck})}
    words = {"name": name, "box": presence.host_name()} if uuid else {}
    ours = msgspec.json.encode({**numbers, **words, **ways})
    every = msgspec.json.encode({**_read(), _place(uuid): msgspec.Raw(ours)})
    path = places.calibration_file()
    try:
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        replace(path, msgspec.json.format(every, indent=1))
    except OSError as problem:
        raise CannotRecord(f"cannot keep the calibration in {show(path)}: {problem.strerror}") from problem


def load(uuid: str = "") -> Calibration:
    """Return the last assessment of this box, or of the GPU with this UUID; of a damaged one nothing."""
    return _decode(_read().get(_place(uuid)))


def gpus() -> dict[str, Calibration]:
    """Return by torch's UUID the GPUs that were calibrated in this box."""
    found = {place.removeprefix(_GPU): _decode(kept) for place, kept in _read().items() if place.startswith(_GPU)}
    return {uuid: one for uuid, one in found.items() if one.ways and one.box == presence.host_name()}


def _place(uuid: str) -> str:
    return f"{_GPU}{uuid}" if uuid else presence.host_name()


def _decode(kept: msgspec.Raw | None) -> Calibration:
    with suppress(ValueError):
        found = json_as(dict[str, Trials | _Number | str])(bytes(kept)) if kept else {}
        ways = {way: one for way, one in found.items() if isinstance(one, Trials)}
        numbers = {name: one for name, one in found.items() if isinstance(one, float | int)}
        words = {name: show(one, 200) for name, one in found.items() if isinstance(one, str)}
        return Calibration(ways, numbers.get("wall_s"), numbers.get("luck"), words.get("name", ""), words.get("box", ""))
    return Calibration()


def _read() -> dict[str, msgspec.Raw]:
    """Return what is kept of each box; of a file of no use nothing, and the next calibration makes a new one."""
    with suppress(Unusable):
        return read_small(places.calibration_file(), json_as(dict[str, msgspec.Raw]), _LIMIT)
    return {}
