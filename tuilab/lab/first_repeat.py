"""A part of the scenario that the first repeat runs for all: what is exact is the same in every process."""

from collections.abc import Callable

from tuilab.lab.arguments import describe_value


class Once:
    """Whether what runs at this moment runs in the first repeat only."""

    def __init__(self) -> None:
        self.is_on = False

    def run(self, part: Callable[[], object], repeat: int) -> None:
        """Run a part in the first repeat, and nothing in the others."""
        if not callable(part):
            raise TypeError(
                f"part takes a function without parameters, not {describe_value(part)}; write"
                " @lab.once above a function"
            )
        if repeat:
            return
        was_on, self.is_on = self.is_on, True
        try:
            part()
        finally:
            self.is_on = was_on

    def refuse(self, method: str) -> None:
        """Raise ValueError where a call stands in such a part that every repeat has to make."""
        if self.is_on:
            raise ValueError(
                f"{method} cannot be called in a part that runs once, because every repeat has to"
                " time; call it after that part"
            )
