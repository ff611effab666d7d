"""What is kept of calibrations: one of each box, for work on its CPU, and one of each GPU, wherever that is plugged in."""

import os
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Annotated, Any

import msgspec

from tuilab import files, places, user_data
from tuilab.errors import CannotRecord
from tuilab.record import presence
from tuilab.record.events import Count
from tuilab.text import show

_LIMIT = 1024 * 1024
_PATIENCE_S = 5.0  # for the lock, which others have for a moment
_GPU = "GPU "  # before the UUID of one; no box has a name with a space in it
_Number = Annotated[float, msgspec.Meta(ge=0, lt=1e11)]


class Trials(msgspec.Struct, frozen=True):
    """What the trials of one way of judging amount to."""

    trials: Count
    false: Count
    delays: Count
    seen: Count
    smallest_effect: _Number | None = None
    processes: Count = 0  # that all the trials were made of: those of one process share its luck


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
    path = places.calibration_file()
    folder = os.path.dirname(path)
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        with files.locked(folder, _PATIENCE_S):  # another calibration may end in this moment
            _save(path, ways, load(uuid).luck if luck is None else luck, uuid, name)
    except OSError as problem:
        raise CannotRecord(f"cannot keep the calibration in {show(path)}: {problem.strerror}") from problem


def _save(path: str, ways: Mapping[str, Trials], luck: float | None, uuid: str, name: str) -> None:
    numbers = {"wall_s": time.time(), **({} if luck is None else {"luck": luck})}
    words = {"name": name, "box": presence.host_name()} if uuid else {}
    user_data.update(path, {_place(uuid): {**numbers, **words, **msgspec.to_builtins(ways)}}, _LIMIT, indent=1)


def load(uuid: str = "") -> Calibration:
    """Return the last assessment of this box, or of the GPU with this UUID; of a damaged one what can be read."""
    place = _place(uuid)
    return _decode(place, _read().get(place, {}))


def gpus() -> dict[str, Calibration]:
    """Return by torch's UUID the GPUs that were calibrated in this box."""
    found = {place.removeprefix(_GPU): _decode(place, parts) for place, parts in _read().items() if place.startswith(_GPU)}
    return {uuid: one for uuid, one in found.items() if one.ways and one.box == presence.host_name()}


def _place(uuid: str) -> str:
    return f"{_GPU}{uuid}" if uuid else presence.host_name()


def _decode(place: str, parts: Any) -> Calibration:
    """Take in each part that is of a kind that we write; that another is not is told."""
    known = parts if isinstance(parts, dict) else {}
    ways = {name: _as(Trials, part) for name, part in known.items() if isinstance(part, dict)}
    numbers = {name: _as(_Number, known[name]) for name in ("wall_s", "luck") if name in known}
    words = {name: _as(str, known[name]) for name in ("name", "box") if name in known}
    if known is not parts or None in (*ways.values(), *numbers.values(), *words.values()):
        user_data.complain(places.calibration_file(), f"its entry for {show(place, 100)} cannot be read completely")
    return Calibration(
        ways={show(name, 200): way for name, way in ways.items() if way},
        name=show(words.get("name") or "", 200),
        box=show(words.get("box") or "", 200),
        **numbers,
    )


def _as(kind: Any, part: object) -> Any:
    with suppress(msgspec.ValidationError):
        return msgspec.convert(part, kind)
    return None


def _read() -> dict[str, Any]:
    """Return what is kept of each box; of a file of no use nothing."""
    return user_data.read(places.calibration_file(), user_data.fields_of, _LIMIT) or {}
