"""What the tests of the Lab screen share: a folder of scenarios, and an app that notes what it is asked to run."""

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from pathlib import Path

from textual.pilot import Pilot

from tuilab.engine.messages import RunOrder
from tuilab.tui.app import TuilabApp
from tuilab.tui.screens.lab import LabPage
from tuilab.tui.state.session import Desk
from tuilab.tui.state.settings import Settings

FAST = '''"""A fast sum.

Adding up is `quick` when *one* operator does it.

## Predict
How many times faster is it?
## Look for
- the sum is right
- sum is fast
## Try next
`--rows 5`: less to add. `--no-tidy --work mul`: other work. `--gone 1` is no option.
"""
from typing import Literal
from tuilab import Lab

def run(
    lab: Lab,
    rows: int = 500,  # rows to add up, 1..2000 (quick 10)
    scale: float = 1.5,  # factor
    tidy: bool = True,  # delete names
    work: Literal["add", "mul"] = "add",  # what is done
    word: str = "plain \\x1b[31m",  # a text
) -> None:
    lab.claim("the sum is right", rows, equals=500)
    lab.claim("sum is fast", ratio="loop/sum", at_least=2)
    lab.race(loop=run, sum=run)
'''
PLAIN = '"""A plain one."""\ndef run(lab) -> None:\n    lab.claim("it holds", True)\n'


class NotingApp(TuilabApp):
    """Notes the orders instead of starting them, and what it says."""

    CSS_PATH = str(Path(inspect.getfile(TuilabApp)).with_name("tuilab.tcss"))  # else it is looked for beside this file

    def __init__(self, desk: Desk) -> None:
        super().__init__(desk)
        self.ordered: list[RunOrder] = []
        self.said: list[str] = []
        self.copied: list[str] = []

    def run_orders(self, orders: list[RunOrder]) -> None:
        self.ordered += orders

    def tell(self, text: str, *, is_problem: bool = True) -> None:
        self.said.append(text)

    def copy(self, text: str) -> None:
        self.copied.append(text)

    @property
    def page(self) -> LabPage:
        assert isinstance(self.screen, LabPage)
        return self.screen

    @property
    def text(self) -> str:
        """Everything that is on the screen."""
        return "\n".join(strip.text for strip in self.screen._compositor.render_strips())


def write(folder: Path, **sources: str) -> Path:
    """Write scenario files into the topic `mine` of a folder, and return the folder."""
    (folder / "mine").mkdir(parents=True, exist_ok=True)
    for name, source in sources.items():
        (folder / "mine" / f"{name}.py").write_text(source)
    return folder


def drive(
    body: Callable[[NotingApp, "Pilot[int]"], Awaitable[None]],
    folder: Path,
    root: Path,
    *,
    size: tuple[int, int] = (120, 40),
    settings: Settings | None = None,
) -> NotingApp:
    """Open the Lab screen on the scenario `fast` and do what `body` does."""
    chosen = settings or Settings(scenario="fast", has_seen_hint=True)
    app = NotingApp(Desk(root, [str(folder)], chosen))

    async def main() -> None:
        async with app.run_test(size=size) as pilot:
            await settle(app, pilot)
            await body(app, pilot)

    asyncio.run(main())
    return app


async def settle(app: NotingApp, pilot: "Pilot[int]") -> None:
    """Wait for what is read in threads, and until it is shown."""
    await pilot.pause()
    await app.workers.wait_for_complete()
    await pilot.pause()
