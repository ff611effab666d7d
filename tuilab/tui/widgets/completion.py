"""How what is typed may go on: in grey behind it, and → takes it."""

from collections.abc import Callable, Sequence

from textual.suggester import Suggester


class Completion(Suggester):
    """Asks a function for the whole line as it may become."""

    def __init__(self, completed: Callable[[str], str | None]) -> None:
        super().__init__(use_cache=False, case_sensitive=True)  # what is known changes while one types
        self._completed = completed

    async def get_suggestion(self, value: str) -> str | None:
        return self._completed(value)


def last_word_completed(text: str, known: Sequence[str]) -> str | None:
    """Return a line with its last word gone on to the first that begins so; None where there is none, or nothing to complete.

    A `!` or a `#` before the word stays: it is no part of what is known.
    """
    bare = text.rpartition(" ")[2].lstrip("!#")
    found = next((one for one in known if bare and one.lower().startswith(bare.lower()) and len(one) > len(bare)), None)
    return text + found[len(bare) :] if found else None
