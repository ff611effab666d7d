"""The errors of GPUs and of programs on them (Xid) that the driver reports while somebody listens."""

from typing import Any

_TIMEOUT_CODE = 10
_MOST = 16  # at once


class Errors:
    """Listens to GPUs, each known by its UUID; the driver has their errors in a queue, so that no GPU is asked for them."""

    def __init__(self, nvml: Any) -> None:
        self.deaf: dict[str, str] = {}  # uuid -> why its errors are not heard
        self._nvml = nvml
        self._events: dict[str, Any] = {}  # uuid -> a set of events of this one GPU
        self._last: dict[str, int] = {}

    def listen(self, uuid: str, handle: Any) -> None:
        nvml = self._nvml
        try:
            events = nvml.nvmlEventSetCreate()
            nvml.nvmlDeviceRegisterEvents(handle, nvml.nvmlEventTypeXidCriticalError, events)
        except (AttributeError, nvml.NVMLError) as problem:
            self.deaf[uuid] = str(problem)
        else:
            self._events[uuid] = events

    def next(self, uuid: str) -> list[int]:
        """Return the numbers of the errors that came since this was asked last."""
        found: list[int] = []
        while uuid in self._events and len(found) < _MOST:
            try:
                found.append(int(self._nvml.nvmlEventSetWait_v2(self._events[uuid], 0).eventData))
            except self._nvml.NVMLError as problem:
                if problem.value != _TIMEOUT_CODE:
                    self.deaf[uuid] = str(problem)
                    del self._events[uuid]
                break
        if found:
            self._last[uuid] = found[-1]
        return found

    def after(self, uuid: str) -> str:
        """Return ` after Xid 79` where that was the last error, to be put behind a sentence."""
        return f" after Xid {self._last[uuid]}" if uuid in self._last else ""
