"""What the command palette offers: the command of every key by its name, and every scenario."""

from collections.abc import Iterator
from functools import partial
from typing import cast

from textual.command import DiscoveryHit, Hit, Hits, Provider
from textual.content import Content
from textual.types import IgnoreReturnCallbackType

from tuilab.catalogue.scenario import Scenario
from tuilab.errors import TuilabError
from tuilab.text import show
from tuilab.tui.keys import KEYS, Key, shown
from tuilab.tui.looks import themes
from tuilab.tui.navigator import Navigator

_MOVES = {"up", "down", "left", "right", "pageup", "pagedown", "home", "end", "tab", "shift+tab", "shift+left", "shift+right"}
_NO_COMMANDS = ("app.command_palette", "app.press(")
_ORDER = [key for keys in KEYS.values() for key in keys]


class Commands(Provider):
    """One provider for both, because Textual asks several in an order that differs from start to start."""

    async def startup(self) -> None:
        """Read the catalogue when the palette is opened."""
        self._usable = [scenario for scenario in self._lab.desk.scenarios if not scenario.error]

    async def discover(self) -> Hits:
        """Offer the keys of the open screen, then those that work everywhere; and one scenario, so that one knows of them."""
        last = self._lab.desk.settings.scenario
        for scenario in [one for one in self._usable if one.id == last] or self._usable[:1]:
            name = f"open {show(scenario.id, 60)}"
            told = Content.assemble(name, ("  or run it; the same for every other scenario", "dim"))
            yield DiscoveryHit(told, partial(self._open, scenario), name)
        for key, command in self._keys():
            yield DiscoveryHit(Content.assemble(key.help, "  ", (shown(key), "bold $text-accent")), command, key.help)

    async def search(self, query: str) -> Hits:
        matcher = self.matcher(query)
        for key, command in self._keys():
            text = f"{key.word}: {key.help}" if key.word else key.help
            if (score := matcher.match(text)) > 0:
                told = Content.assemble(matcher.highlight(text), "  ", (shown(key), "bold $text-accent"))
                yield Hit(score, told, command, text)
        for theme in themes.NAMES:
            if (score := matcher.match(f"theme {theme}")) > 0:
                yield Hit(score, matcher.highlight(f"theme {theme}"), partial(self._lab.choose_theme, theme), f"theme {theme}")
        for scenario in self._usable:
            for verb, act in (("run", self._run), ("open", self._open)):
                name = f"{verb} {show(scenario.id, 60)}"
                if (score := matcher.match(name)) > 0:  # not highlighted: Textual would read markup in a name
                    told = Content.assemble(name, "  ", (show(scenario.title, 200), "dim"))
                    yield Hit(score, told, partial(act, scenario), name)

    def _keys(self) -> Iterator[tuple[Key, IgnoreReturnCallbackType]]:
        places: list[str] = getattr(self.screen, "places", list)()
        keys = {key.action: key for place in (*places, "everywhere") for key in reversed(KEYS[place]) if key.action}
        for key in sorted(keys.values(), key=_ORDER.index):
            if key.key not in _MOVES and not key.action.startswith(_NO_COMMANDS):
                yield key, partial(self._do, key.action)

    async def _do(self, action: str) -> None:
        await self.app.run_action(action, self.app if action.startswith("app.") else self.screen)

    @property
    def _lab(self) -> Navigator:
        return cast(Navigator, self.app)

    def _run(self, scenario: Scenario) -> None:
        from tuilab.engine import launch  # what only runs need

        try:
            order = launch.order(scenario, {}, root=self._lab.desk.root)
        except TuilabError as problem:
            self._lab.tell(str(problem))
        else:
            self._lab.run_orders([order])

    def _open(self, scenario: Scenario) -> None:
        self._lab.open_form(scenario.id, {})
