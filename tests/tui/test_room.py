"""How much room the terminal gives, which may change at any moment: what the user sees is the same when it is back."""

import time
from pathlib import Path

import pytest

from tests.tui.made_up import finished
from tests.tui.screens import opened, settle, text


@pytest.mark.parametrize("keys", [("down",), ("h", *["down"] * 2)], ids=["catalogue", "history"])
async def test_a_list_that_had_no_room_for_a_moment_is_scrolled_as_before(tmp_path: Path, keys: tuple[str, ...]) -> None:
    now = time.time()
    for number in range(12):
        finished(tmp_path, {"a": "SUPPORTED"}, at_s=now - number, end=f"{number:06}")
    async with opened(tmp_path, *keys, size=(100, 12)) as pilot:
        before = text(pilot)
        for size in ((100, 5), (100, 12)):
            await pilot.resize_terminal(*size)
            await settle(pilot)

        assert text(pilot) == before
