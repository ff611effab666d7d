"""An arm in a process of its own, which the supervisor starts.

An arm is one of the variants that a scenario compares.
"""

from collections.abc import Callable, Sequence
from typing import Any

from tuilab.engine.messages import ArmOrder, ArmReply, WorkerLine, pack_message
from tuilab.lab.arguments import checked, describe_value, number_in, words
from tuilab.lab.command_prefix import complete
from tuilab.lab.device.devices import give_back
from tuilab.record import events
from tuilab.record.journal.writer import Writer
from tuilab.text.display import shorten

_NAME_LIMIT = 1_000  # characters of the name of an arm, which other records repeat
_NAME_SHOWN = 60  # characters of the name in an error, which also has the reason


class ArmFailed(Exception):
    """An arm in a process of its own failed, timed out or could not be started."""


class Arm:
    """A function of the scenario; each call runs it in a new process."""

    def __init__(self, order: ArmOrder, line: WorkerLine, journal: Writer) -> None:
        self.name = order.arm
        self._order = order
        self._line = line
        self._journal = journal

    def __call__(self) -> Any:
        """Let the supervisor run the arm, record that it has ended, and return its value.

        Unused memory of GPUs is released first, for the new process. Raises ArmFailed if the arm
        fails, is too slow, or cannot be started.
        """
        give_back()
        self._line.send(self._order)
        reply = self._line.receive()
        if not isinstance(reply, ArmReply):
            raise ArmFailed(f"{self.name}: the supervisor is gone")
        self._journal.append(
            events.ArmFinished(
                arm=self.name, writer=reply.writer, elapsed_s=reply.elapsed_s, error=reply.error
            )
        )
        if reply.error:
            raise ArmFailed(f"{shorten(self.name, _NAME_SHOWN)}: {reply.error}")
        return reply.value


def arm_order(
    name: str,
    body: Callable[..., Any],
    args: Sequence[Any],
    *,
    env: dict[str, str] | None,
    prefix: Sequence[str],
    timeout: float,
) -> ArmOrder:
    """Return the order for each call of the arm.

    Raises TypeError or ValueError for wrong arguments, or if the order does not fit into a message.
    """
    order = ArmOrder(
        arm=words("name", name, _NAME_LIMIT),
        function=function_name(body),
        args=list(args),
        env=environment(env),
        prefix=complete(command_words(prefix)),
        timeout_s=number_in("timeout", timeout, 1e-3),
    )
    try:
        pack_message(order)
    except ValueError as problem:
        raise ValueError(
            f"args, env and prefix take plain data that fits a message: {problem}"
        ) from problem
    checked(events.ArmFinished(arm=order.arm, writer="", elapsed_s=0.0))
    return order


def function_name(body: Any) -> str:
    """Return the name by which a new process finds the function of an arm.

    Raises TypeError if it is no function at the top of the scenario file.
    """
    name = getattr(body, "__qualname__", "")
    if not (callable(body) and isinstance(name, str) and name.isidentifier()):
        raise TypeError(f"body takes a function of the scenario file, not {describe_value(body)}")
    return name


def environment(variables: Any) -> dict[str, str]:
    """Return the variables that an arm has in addition.

    Raises TypeError or ValueError for anything but a dict of names and texts; None means no
    variables.
    """
    if variables is None:
        return {}
    if not isinstance(variables, dict):
        raise TypeError(f"env takes a dict of texts, not {describe_value(variables)}")
    environment_variables = {}
    for name, value in variables.items():
        environment_variables[words("env", name)] = words(f"env, {describe_value(name)},", value)
    for name, value in environment_variables.items():
        if not name or "=" in name or "\0" in name + value:
            raise ValueError(
                f"env takes names without = and texts without NUL, not {describe_value(name)}:"
                f" {describe_value(value)}"
            )
    return environment_variables


def command_words(prefix: Any) -> Sequence[str]:
    """Return the words before the command line of an arm.

    Raises TypeError or ValueError for anything but a list of texts.
    """
    if not isinstance(prefix, list | tuple):
        raise TypeError(f"prefix takes a list of words, not {describe_value(prefix)}")
    checked_words = [words("prefix", word) for word in prefix]
    if any("\0" in word for word in checked_words):
        raise ValueError(f"prefix takes words without NUL, not {describe_value(prefix)}")
    return checked_words
