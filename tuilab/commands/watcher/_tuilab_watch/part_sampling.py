"""Choose the steps whose parts are timed on a GPU.

Each timing of a part takes two calls of the driver, which may take as long as launching a kernel.
So the parts of the first steps are timed, and later those of a few steps in a row. Steps in a row,
because one training step may consist of several optimizer steps, each after a backward of its own.
"""

from __future__ import annotations

_FIRST = 200  # rounds at the beginning
_PERIOD = 272  # rounds
_IN_A_ROW = 16  # rounds of each period


class PartSampling:
    """Counts rounds: a round is a backward, or several, and the optimizer steps after it."""

    def __init__(self, *, are_parts_watched: bool) -> None:
        self.is_on = are_parts_watched
        self._are_parts_watched = are_parts_watched
        self._rounds = 0
        self._has_seen_backward = False
        self._is_backward_in_round = False

    def begin_backward(self) -> None:
        self._has_seen_backward = True
        self._is_backward_in_round = True

    def end_optimizer_step(self) -> None:
        """End the round, unless it has no backward and others do."""
        if self._has_seen_backward and not self._is_backward_in_round:
            return
        self._is_backward_in_round = False
        self._rounds += 1
        is_chosen = self._rounds < _FIRST or self._rounds % _PERIOD < _IN_A_ROW
        self.is_on = self._are_parts_watched and is_chosen
