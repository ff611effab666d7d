"""What the command palette offers beside the keys: every scenario, to be run or read."""

from functools import partial
from typing import TYPE_CHECKING, cast

from textual.command import DiscoveryHit, Hit, Hits, Provider
from textual.content import Content

from tuilab import launch
from tuilab.errors import TuilabError
from tuilab.scenario import Scenario
from tuilab.text import show

if TYPE_CHECKING:
    from tuilab.tui.app import TuilabApp


class Scenarios(Provider):
    """`run softmax` starts it with its defaults; the catalogue is read when the palette is opened for the first time."""

    async def startup(self) -> None:
        self._usable = [scenario for scenario in self._lab.desk.scenarios if not scenario.error]

    @property
    def _lab(self) -> "TuilabApp":
        return cast("TuilabApp", self.app)

    async def search(self, query: str) -> Hits:
        matcher = self.matcher(query)
        for scenario in self._usable:
            name = f"run {show(scenario.id, 60)}"
            score = matcher.match(name)
            if score > 0:
                yield Hit(score, matcher.highlight(name), partial(self._run, scenario), name, show(scenario.title, 200))

    async def discover(self) -> Hits:
        for scenario in self._usable[:1]:
            shown = Content(f"run {show(scenario.id, 60)}")
            yield DiscoveryHit(shown, partial(self._run, scenario), shown.plain, "or any other scenario: type its name")

    def _run(self, scenario: Scenario) -> None:
        desk = self._lab.desk
        try:
            order = launch.order(scenario, {}, root=desk.root)
        except TuilabError as problem:
            self._lab.tell(str(problem))
        else:
            self._lab.run_orders([order])
