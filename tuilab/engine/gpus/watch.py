"""Ask the GPUs of a run in a thread, because NVML can hang.

Then only their readings are missing.
"""

import time
from collections.abc import Collection
from queue import Empty, SimpleQueue
from threading import Thread

from tuilab.engine.gpus.raced import RacedGpu
from tuilab.engine.gpus.schedule import GpuAnswers, GpuContext, GpuSchedule
from tuilab.probes.gpu.board import BOARD
from tuilab.probes.gpu.nvml import Gpus, open_gpus
from tuilab.record.events import EnvironmentRecorded, GpuFound, Unavailable
from tuilab.record.journal.writer import Writer

PATIENCE_S = 0.1  # a sample waits so long for the GPUs
SILENCE_S = 5.0  # after so long the record says that they do not answer

_NOTHING = GpuAnswers({}, {})
_LIMITS = {name: BOARD[name] for name in ("power_limit_w", "most_sm_mhz")}


class GpuWatch:
    """The GPUs of the sampler; `refusal` is the reason why they are not asked, if there is one."""

    def __init__(self, journal: Writer, raced: RacedGpu, refusal: str = "") -> None:
        self._journal = journal
        self._raced = raced
        self._refusal = refusal
        # Pids of all processes that the run has had: NVML reports some after their end.
        self._ours: set[int] = set()
        self._questions: SimpleQueue[GpuContext] = SimpleQueue()
        self._answers: SimpleQueue[GpuAnswers] = SimpleQueue()
        self._asked_at: float | None = None  # the time of a question without an answer
        self._is_off = False
        self._is_silent = False
        Thread(target=self._serve, daemon=True).start()

    def read(self, pids: Collection[int]) -> GpuAnswers:
        """Return the new readings of the GPUs; none if they do not answer within PATIENCE_S.

        `pids` are the processes of the run now. A question that is not answered yet is not asked
        again, and after SILENCE_S that is recorded once.
        """
        if self._is_off:
            return _NOTHING
        self._ours.update(pids)
        if self._asked_at is None:
            self._asked_at = time.monotonic()
            self._questions.put(GpuContext(frozenset(self._ours), self._raced.read()))
        try:
            answer = self._answers.get(timeout=PATIENCE_S)
        except Empty:
            self._note_silence(time.monotonic() - self._asked_at)
            return _NOTHING
        self._asked_at = None
        return answer

    def _note_silence(self, silence_s: float) -> None:
        """Record, once for all, that NVML has not answered for too long."""
        if silence_s > SILENCE_S and not self._is_silent:
            self._is_silent = True
            self._journal.append(
                Unavailable(what="gpu", reason=f"NVML has not answered for {SILENCE_S:g} s")
            )

    def _serve(self) -> None:
        """Record the GPUs, and answer the sampler until no GPU is available; this is the thread.

        If NVML is refused or cannot be opened, the reason is recorded, and `read` returns nothing.
        """
        gpus = self._refusal or open_gpus()
        if isinstance(gpus, str):
            self._journal.append(Unavailable(what="gpu", reason=gpus))
        else:
            self._record_gpus(gpus)
            schedule = GpuSchedule(gpus, self._journal)
            while gpus.available:
                self._turn(schedule)
        self._is_off = True

    def _turn(self, schedule: GpuSchedule) -> None:
        """Answer a question of the sampler.

        Until there is one, ask the next item of the schedule.
        """
        try:
            question = self._questions.get(block=not schedule.is_more)
        except Empty:
            schedule.ask_next()
        else:
            self._answers.put(schedule.answer(question))

    def _record_gpus(self, gpus: Gpus) -> None:
        """Record each GPU with its limits, each unusable GPU with the reason, and common facts."""
        for gpu in gpus.available:
            settings = gpus.settings(gpu, _LIMITS)
            limits = [settings.get(name) for name in _LIMITS]
            record = GpuFound(gpu.uuid, gpu.index, gpu.name, gpu.bytes_total, gpu.slice, *limits)
            self._journal.append(record)
        for index, reason in gpus.unusable.items():
            self._journal.append(Unavailable(what=f"gpu {index}", reason=reason))
        self._journal.append(EnvironmentRecorded(part="gpu", facts=gpus.facts()))
