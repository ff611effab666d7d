"""Parts of a scenario that only the first repeat runs, because exact results never differ."""

from collections.abc import Callable

from tuilab.lab.arguments import describe_value


class Once:
    """Runs parts that only the first repeat runs, and knows whether such a part is running."""

    def __init__(self) -> None:
        self.is_on = False

    def run(self, part: Callable[[], object], repeat: int) -> None:
        """Run a part in the first repeat, and nothing in the others.

        Raises TypeError if the part is no function.
        """
        if not callable(part):
            raise TypeError(
                f"part takes a function without parameters, not {describe_value(part)}; write"
                " @lab.once above a function"
            )
        if repeat:
            return
        was_on = self.is_on
        self.is_on = True
        try:
            part()
        finally:
            self.is_on = was_on

    def refuse(self, method: str) -> None:
        """Raise ValueError if a call that every repeat must make is made in such a part."""
        if self.is_on:
            raise ValueError(
                f"{method} cannot be called in a part that runs once, because every repeat has to"
                " time; call it after that part"
            )
