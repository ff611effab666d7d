"""An arm in a process of its own: asked of the supervisor, and waited for."""

from collections.abc import Callable, Sequence
from typing import Any

from tuilab.engine.messages import ArmOrder, ArmReply, WorkerLine, pack_message
from tuilab.lab.arguments import checked, describe_value, number_in, words
from tuilab.lab.command_prefix import complete
from tuilab.lab.device.devices import give_back
from tuilab.record import events
from tuilab.record.journal.writer import Writer
from tuilab.text.display import shorten

_NAME_LIMIT = 1_000  # of an arm that others tell of, too
_NAME_SHOWN = 60  # of it where it failed: what failed is to be told, too


class ArmFailed(Exception):
    """An arm in a process of its own failed, timed out or could not be started."""


class Arm:
    """A function of the scenario that runs in a process of its own each time it is called."""

    def __init__(self, order: ArmOrder, line: WorkerLine, journal: Writer) -> None:
        self.name = order.arm
        self._order = order
        self._line = line
        self._journal = journal

    def __call__(self) -> Any:
        """Have the supervisor run the arm, and wait for it."""
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
    name: str, body: Callable[..., Any], args: Sequence[Any], *, env: dict[str, str] | None, prefix: Sequence[str],
    timeout: float,
) -> ArmOrder:  # fmt: skip
    """Return what the supervisor is asked to run, as often as the arm is called; refuse what does not fit a message."""
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
    """Return the name that a fresh process finds the body of an arm by."""
    name = getattr(body, "__qualname__", "")
    if not (callable(body) and isinstance(name, str) and name.isidentifier()):
        raise TypeError(f"body takes a function of the scenario file, not {describe_value(body)}")
    return name


def environment(variables: Any) -> dict[str, str]:
    """Return the variables that are added to the environment of an arm."""
    if variables is not None and not isinstance(variables, dict):
        raise TypeError(f"env takes a dict of texts, not {describe_value(variables)}")
    environment_variables = {
        words("env", name): words(f"env, {describe_value(name)},", value)
        for name, value in (variables or {}).items()
    }
    for name, value in environment_variables.items():
        if not name or "=" in name or "\0" in name + value:
            raise ValueError(
                f"env takes names without = and texts without NUL, not {describe_value(name)}:"
                f" {describe_value(value)}"
            )
    return environment_variables


def command_words(prefix: Any) -> Sequence[str]:
    """Return the words that stand before the command line of an arm."""
    if not isinstance(prefix, list | tuple):
        raise TypeError(f"prefix takes a list of words, not {describe_value(prefix)}")
    checked_words = [words("prefix", word) for word in prefix]
    if any("\0" in word for word in checked_words):
        raise ValueError(f"prefix takes words without NUL, not {describe_value(prefix)}")
    return checked_words
