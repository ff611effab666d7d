"""Reads a run for a screen, as it happens or played again, and knows when what it has read is to be shown."""

import time
from pathlib import Path

from tuilab.errors import UsageError
from tuilab.record.states import RUNNING_STATES
from tuilab.tui.state.following import Following
from tuilab.tui.state.playback import Playback

_SLOW_S = 2.0  # between two pictures on a slow link, so that keys are answered in between
_GLANCE_S = 1.0  # between two pictures while a long record is read: each takes as long as reading some MiB
_SPEEDS = (0.1, 1000.0)


class RunReader:
    """One for a screen. The action `play('seek', 0.05)` is `seek(0.05)` here."""

    def __init__(self, run_dir: Path, *, is_replay: bool = False) -> None:
        self.following: Following | Playback = Playback(run_dir) if is_replay else Following(run_dir)
        self.is_frozen = False
        self.has_news = False  # that is not on the screen yet
        self._shown_at = 0.0

    @property
    def is_live(self) -> bool:
        """Whether a run is shown as it happens, and not played again."""
        return isinstance(self.following, Following)

    @property
    def place(self) -> str:
        """The place of `keys.py` that tells what can be done with the run."""
        if not self.is_live:
            return "replay"
        if self.following.is_over:
            return "finished run"
        if not self.following.is_caught_up and self.following.state not in RUNNING_STATES:
            return "run being read"
        return "frozen run" if self.is_frozen else "running run"

    def is_too_soon(self, *, is_link_slow: bool) -> bool:
        """Say whether the link cannot take the next picture yet."""
        return is_link_slow and self._age_s < _SLOW_S

    def is_glance_enough(self) -> bool:
        """Say whether the last picture will do while more is being read."""
        return self._age_s < _GLANCE_S

    def note_picture(self) -> None:
        """Note that everything is being shown."""
        self._shown_at, self.has_news = time.monotonic(), False

    def freeze(self) -> None:
        """Hold the picture, or let it go on; of a run that is over, play it again, and pause."""
        if isinstance(self.following, Playback):
            self.following.is_playing = not self.following.is_playing
        elif self.following.is_over:
            self.replay()
        else:
            self.is_frozen = not self.is_frozen

    def replay(self) -> None:
        """Play the run from its start."""
        if not self.following.is_over:
            raise UsageError("a running run cannot be replayed yet")
        self.following.close()
        self.following = Playback(self.following.run_dir)

    def speed(self, factor: float) -> None:
        """Play faster or slower."""
        if isinstance(self.following, Playback):
            self.following.speed = min(max(self.following.speed * factor, _SPEEDS[0]), _SPEEDS[1])

    def seek(self, share: float) -> None:
        """Play on from elsewhere, and show it at once."""
        if isinstance(self.following, Playback) and self.following.is_caught_up:
            self.following.seek(share)
            self._shown_at, self.has_news = 0.0, True

    @property
    def _age_s(self) -> float:
        return time.monotonic() - self._shown_at
