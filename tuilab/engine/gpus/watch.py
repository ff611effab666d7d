"""Asks the GPUs of a run in a thread of its own, because NVML can hang: that costs their readings and nothing else."""

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

PATIENCE_S = 0.1  # how long a sample waits for the GPUs
SILENCE_S = 5.0  # after this the journal says that they do not answer

_NOTHING = GpuAnswers({}, {})
_LIMITS = {name: BOARD[name] for name in ("power_limit_w", "most_sm_mhz")}


class GpuWatch:
    """The GPUs as the sampler sees them; `refusal` says why they are not to be asked."""

    def __init__(self, journal: Writer, raced: RacedGpu, refusal: str = "") -> None:
        self._journal = journal
        self._raced = raced
        self._refusal = refusal
        self._ours: set[int] = (
            set()
        )  # pids of all processes that the run has had: what one of them did is told after its end
        self._questions: SimpleQueue[GpuContext] = SimpleQueue()
        self._answers: SimpleQueue[GpuAnswers] = SimpleQueue()
        self._asked_at: float | None = None  # when the question was put that is not answered yet
        self._is_off = False
        self._is_silent = False
        Thread(target=self._serve, daemon=True).start()

    def read(self, pids: Collection[int]) -> GpuAnswers:
        """Return what the GPUs have said since this was called last; nothing when there are none, or they do not answer yet."""
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
        if silence_s > SILENCE_S and not self._is_silent:
            self._is_silent = True
            self._journal.append(
                Unavailable(what="gpu", reason=f"NVML has not answered for {SILENCE_S:g} s")
            )

    def _serve(self) -> None:
        gpus = self._refusal or open_gpus()
        if isinstance(gpus, str):
            self._journal.append(Unavailable(what="gpu", reason=gpus))
        else:
            self._introduce(gpus)
            rounds = GpuSchedule(gpus, self._journal)
            while gpus.available:
                self._turn(rounds)
        self._is_off = True

    def _turn(self, rounds: GpuSchedule) -> None:
        """Answer the sampler, or ask what can wait until it has a question."""
        try:
            question = self._questions.get(block=not rounds.is_more)
        except Empty:
            rounds.ask_next()
        else:
            self._answers.put(rounds.answer(question))

    def _introduce(self, gpus: Gpus) -> None:
        for gpu in gpus.available:
            limits = gpus.settings(gpu, _LIMITS)
            found = GpuFound(
                gpu.uuid, gpu.index, gpu.name, gpu.bytes_total, gpu.slice, *map(limits.get, _LIMITS)
            )
            self._journal.append(found)
        for index, reason in gpus.unusable.items():
            self._journal.append(Unavailable(what=f"gpu {index}", reason=reason))
        self._journal.append(EnvironmentRecorded(part="gpu", facts=gpus.facts()))
