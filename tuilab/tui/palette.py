"""What the command palette offers: the command of every key by its name, and every scenario."""

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, cast

from textual.command import DiscoveryHit, Hit, Hits, Provider
from textual.content import Content
from textual.types import IgnoreReturnCallbackType

from tuilab.errors import TuilabError
from tuilab.scenario import Scenario
from tuilab.text import show
from tuilab.tui.keys import KEYS, Key, shown

if TYPE_CHECKING:
    from tuilab.tui.app import TuilabApp

_MOVES = {"up", "down", "left", "right", "pageup", "pagedown", "home", "end", "tab", "shift+tab", "shift+left", "shift+right"}


class Keys(Provider):
    """The keys of the open screen, then those that work everywhere; each once."""

    async def discover(self) -> Hits:
        for key, command in self._commands():
            yield DiscoveryHit(Content.assemble(key.help, "  ", (shown(key), "bold $text-accent")), command, key.help)

    async def search(self, query: str) -> Hits:
        matcher = self.matcher(query)
        for key, command in self._commands():
            text = f"{key.word}: {key.help}" if key.word else key.help
            score = matcher.match(text)
            if score > 0:
                shown_key = Content.assemble("  ", (shown(key), "bold $text-accent"))
                yield Hit(score, Content("").join([matcher.highlight(text), shown_key]), command, text)

    def _commands(self) -> Iterator[tuple[Key, IgnoreReturnCallbackType]]:
        place = getattr(self.screen, "PLACE", "")
        for key in (*KEYS.get(place, ()), *KEYS["everywhere"]):
            if key.key not in _MOVES and key.action != "app.command_palette":
                yield key, partial(self._do, key.action)

    async def _do(self, action: str) -> None:
        await self.app.run_action(action, self.app if action.startswith("app.") else self.screen)


class Scenarios(Provider):
    """`run softmax` starts it with its defaults, `open softmax` shows its form; read when the palette is opened."""

    async def startup(self) -> None:
        self._usable = [scenario for scenario in self._lab.desk.scenarios if not scenario.error]

    async def discover(self) -> Hits:
        """Name one, so that it is known that they can be asked for; opening it does no harm."""
        last = self._lab.desk.settings.scenario
        for scenario in [one for one in self._usable if one.id == last] or self._usable[:1]:
            name = f"open {show(scenario.id, 60)}"
            told = Content.assemble(name, ("  or run it; the same for every other scenario", "dim"))
            yield DiscoveryHit(told, partial(self._open, scenario), name)

    async def search(self, query: str) -> Hits:
        """Names and titles are anybody's: they are not highlighted, because Textual would read markup in them."""
        matcher = self.matcher(query)
        for scenario in self._usable:
            for verb, command in (("run", self._run), ("open", self._open)):
                name = f"{verb} {show(scenario.id, 60)}"
                if (score := matcher.match(name)) > 0:
                    told = Content.assemble(name, "  ", (show(scenario.title, 200), "dim"))
                    yield Hit(score, told, partial(command, scenario), name)

    @property
    def _lab(self) -> "TuilabApp":
        return cast("TuilabApp", self.app)

    def _run(self, scenario: Scenario) -> None:
        from tuilab import launch

        try:
            order = launch.order(scenario, {}, root=self._lab.desk.root)
        except TuilabError as problem:
            self._lab.tell(str(problem))
        else:
            self._lab.run_orders([order])

    def _open(self, scenario: Scenario) -> None:
        self._lab.open_form(scenario.id, {})
