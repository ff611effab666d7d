"""Read and write the saved calibrations.

There is one for the CPU of each machine, and one for each GPU, which may move between machines.
"""

import os
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Annotated, Any

import msgspec

from tuilab.errors import CannotRecord
from tuilab.record import presence
from tuilab.record.events import Count
from tuilab.storage import files, places, user_data
from tuilab.text.display import show

_MAX_BYTES = 1024 * 1024
# Another process holds the lock only for a moment, unless it was stopped meanwhile.
_LOCK_TIMEOUT_S = 60.0
_GPU_PREFIX = "GPU "  # before a UUID; no host name contains a space
_Number = Annotated[float, msgspec.Meta(ge=0, lt=1e11)]


class Trials(msgspec.Struct, frozen=True):
    """The results of all trials of one method of judging: one process, or several.

    The fields are stored under their names.
    """

    trials: Count  # without a difference between the arms
    false: Count  # those with a false verdict
    delays: Count  # trials with an injected delay
    seen: Count  # those in which the delay was detected
    smallest_effect: _Number | None = None
    processes: Count = 0  # in all trials; those of one process share its deviation


class Calibration(msgspec.Struct, frozen=True):
    """The latest calibration of a machine or a GPU; empty if there is none."""

    trials_of_method: dict[str, Trials] = {}
    wall_s: float | None = None  # since 1970
    process_sd: float | None = None  # standard deviation between processes, of a log ratio
    name: str = ""  # of a GPU
    box: str = ""  # host name of the machine that the GPU was in

    @property
    def day(self) -> str:
        """When it was measured, in local time; empty if the file does not say."""
        if self.wall_s is None:
            return ""
        return time.strftime("%Y-%m-%d %H:%M", time.localtime(self.wall_s))


def save(
    trials_of_method: Mapping[str, Trials],
    process_sd: float | None = None,
    uuid: str = "",
    name: str = "",
) -> None:
    """Save the calibration of this machine, or that of the GPU with this UUID of torch.

    If it had too few processes to measure `process_sd`, an earlier value is kept. Raises
    CannotRecord if the file cannot be written, or if another process holds the lock for a minute:
    without the lock, one of the two would overwrite the entry of the other.
    """
    path = places.calibration_file()
    folder = os.path.dirname(path)
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        with files.locked(folder, _LOCK_TIMEOUT_S) as has_lock:  # another one may end now
            if not has_lock:
                holder = f"another process has locked the folder for {_LOCK_TIMEOUT_S:g} s"
                step = f"end that process (`fuser -v {show(folder)}` names it)"
                raise CannotRecord(
                    f"cannot keep the calibration in {show(path)}: {holder}; {step}, then "
                    "calibrate again"
                )
            if process_sd is None:
                process_sd = load(uuid).process_sd
            _save(path, trials_of_method, process_sd, uuid, name)
    except OSError as problem:
        message = f"cannot keep the calibration in {show(path)}: {problem.strerror}"
        raise CannotRecord(message) from problem


def _save(
    path: str,
    trials_of_method: Mapping[str, Trials],
    process_sd: float | None,
    uuid: str,
    name: str,
) -> None:
    """Write the entry of a machine or GPU into the file, whose other entries stay as they are."""
    entry: dict[str, Any] = {"wall_s": time.time()}
    if process_sd is not None:
        entry["luck"] = process_sd
    if uuid:
        entry["name"] = name
        entry["box"] = presence.host_name()
    entry.update(msgspec.to_builtins(trials_of_method))
    user_data.update(path, {_entry_name(uuid): entry}, _MAX_BYTES, indent=1)


def load(uuid: str = "") -> Calibration:
    """Return the calibration of this machine, or of the GPU with this UUID; an empty one if none.

    If the file is damaged, the calibration has what can be read.
    """
    name = _entry_name(uuid)
    return _decode(name, _read_entries().get(name, {}))


def load_gpus() -> dict[str, Calibration]:
    """Return the calibrations of the GPUs of this machine, by torch's UUID."""
    calibrations = {}
    for name, entry in _read_entries().items():
        if not name.startswith(_GPU_PREFIX):
            continue
        calibration = _decode(name, entry)
        if calibration.trials_of_method and calibration.box == presence.host_name():
            calibrations[name.removeprefix(_GPU_PREFIX)] = calibration
    return calibrations


def _entry_name(uuid: str) -> str:
    return f"{_GPU_PREFIX}{uuid}" if uuid else presence.host_name()


def _decode(name: str, entry: Any) -> Calibration:
    """Return what can be read of an entry, and note a complaint if that is not all of it."""
    fields = entry if isinstance(entry, dict) else {}
    is_damaged = fields is not entry
    trials_of_method = {}
    for method, part in fields.items():
        if isinstance(part, dict):
            trials = _convert(Trials, part)
            if trials is None:
                is_damaged = True
            else:
                trials_of_method[show(method, 200)] = trials
    numbers = {}
    for field in ("wall_s", "luck"):
        if field in fields:
            numbers[field] = _convert(_Number, fields[field])
    texts = {}
    for field in ("name", "box"):
        if field in fields:
            texts[field] = _convert(str, fields[field])
    if is_damaged or None in (*numbers.values(), *texts.values()):
        problem = f"its entry for {show(name, 100)} cannot be read completely"
        user_data.complain(places.calibration_file(), problem)
    return Calibration(
        trials_of_method=trials_of_method,
        wall_s=numbers.get("wall_s"),
        process_sd=numbers.get("luck"),
        name=show(texts.get("name") or "", 200),
        box=show(texts.get("box") or "", 200),
    )


def _convert(kind: Any, part: object) -> Any:
    """Return a part of the file as a type; None if it is of another one."""
    with suppress(msgspec.ValidationError):
        return msgspec.convert(part, kind)
    return None


def _read_entries() -> dict[str, Any]:
    """Return the entries of the file; none if it is missing or unusable."""
    entries = user_data.read(places.calibration_file(), user_data.fields_of, _MAX_BYTES)
    return entries or {}
