"""An arm in a process of its own: asked of the supervisor, and waited for."""

import socket
from typing import Any

from tuilab import events, orders
from tuilab.journal import Writer
from tuilab.orders import ArmOrder, ArmReply


class ArmFailed(Exception):
    """An arm in a process of its own failed, timed out or could not be started."""


class Arm:
    """A function of the scenario that runs in a process of its own each time it is called."""

    def __init__(self, order: ArmOrder, line: socket.socket, journal: Writer) -> None:
        self._order = order
        self._line = line
        self._journal = journal

    def __call__(self) -> Any:
        """Have the supervisor run the arm, and wait for it."""
        orders.send(self._line, self._order)
        reply = orders.receive(self._line)
        if not isinstance(reply, ArmReply):
            raise ArmFailed(f"{self._order.arm}: the supervisor is gone")
        self._journal.append(
            events.ArmFinished(arm=self._order.arm, writer=reply.writer, elapsed_s=reply.elapsed_s, error=reply.error)
        )
        if reply.error:
            raise ArmFailed(reply.error)
        return reply.value
