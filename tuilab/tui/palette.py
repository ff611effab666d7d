"""The command palette: finds screens, the commands of keys, themes and scenarios by name."""

import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from typing import cast

from textual.command import DiscoveryHit, Hit, Hits, Provider
from textual.content import Content
from textual.types import IgnoreReturnCallbackType

from tuilab.catalogue.scenario import Scenario
from tuilab.catalogue.search import BEGINNING, WHOLE, fit
from tuilab.errors import TuilabError
from tuilab.runs.command_line import hint
from tuilab.text.display import show
from tuilab.tui.keys import BY_NAME, KEYS, Key
from tuilab.tui.looks import themes
from tuilab.tui.navigator import Navigator
from tuilab.tui.shown_keys import changes, shown

_MOVES = {
    "up",
    "down",
    "left",
    "right",
    "pageup",
    "pagedown",
    "home",
    "end",
    "tab",
    "shift+tab",
    "shift+left",
    "shift+right",
}
_NO_COMMANDS = ("app.command_palette", "app.press(")
# How to name the places of keys that the open screen does not have; dialogs show their own keys.
_WHERE = {
    "run": "in a run",
    "history": "in History",
    "lab": "in the Lab",
    "queue": "in the queue",
    "compare": "in Compare",
    "box": "in Box",
    "doctor": "in Doctor",
    "advise": "in Advise",
    "calibrate": "in Calibrate",
    "replay": "in a replay",
    "topic": "on a topic in the Lab",
    "lesson": "in a lesson",
    "code": "in code",
    "printed text": "in Doctor, Advise and Calibrate",
}
_DOORS = {"history": "h", "queue": "Q"}  # the keys that open these screens from everywhere
_ON_THE_COMMAND_LINE = ("export", "verify")  # subcommands that no screen offers
_ORDER = [*(key.action for keys in KEYS.values() for key in keys), *(key.action for key in BY_NAME)]


class Commands(Provider):
    """Offers keys, themes and scenarios.

    They share one provider, because Textual asks several providers in an order that differs from
    start to start.
    """

    async def startup(self) -> None:
        """Read the catalogue when the user opens the palette."""
        self._has_acted = False
        self._usable = [scenario for scenario in self._lab.desk.scenarios if not scenario.error]

    async def discover(self) -> Hits:
        """Offer one scenario, then the keys of the open screen, then those that work everywhere.

        The scenario shows the user that the palette finds scenarios as well.
        """
        last = self._lab.desk.settings.scenario
        for scenario in [
            candidate for candidate in self._usable if candidate.id == last
        ] or self._usable[:1]:
            name = f"open {show(scenario.id, 60)}"
            hint = "also" if self._lab.desk.is_read_only else "or run it; also"
            entry = Content.assemble(name, (f"  {hint} works for every other scenario", "dim"))
            yield DiscoveryHit(entry, self._guarded(partial(self._open, scenario)), name)
        for key, command in self.commands():
            yield DiscoveryHit(
                Content.assemble(key.help, "  ", (shown(key), "bold $text-accent")),
                command,
                key.help,
            )

    async def search(self, query: str) -> Hits:
        words = query.lower().split()
        hits = [
            *self._keys_meant(words),
            *self._themes_meant(words),
            *self._scenarios_meant(words),
            *self._elsewhere(words),
        ]
        for hit in sorted(hits, reverse=True):
            yield hit
        if not hits:
            entry = Content.assemble(
                f"no command matches {show(query, 60)}", ("  esc closes, ? shows the keys", "dim")
            )
            yield Hit(1.0, entry, _do_nothing, "no command matches")

    def _keys_meant(self, words: Sequence[str]) -> Iterator[Hit]:
        for key, command in self.commands():
            text = f"{key.word}: {key.help}" if key.word else key.help
            if score := _score(words, key.word) or _score(words, text) * 0.9:
                entry = Content.assemble(
                    _marked(words, text), "  ", (shown(key), "bold $text-accent")
                )
                yield Hit(score, entry, command, text)

    def _themes_meant(self, words: Sequence[str]) -> Iterator[Hit]:
        for name in themes.NAMES:
            if score := _score(words, f"theme {name}"):
                choose = self._guarded(partial(self._lab.choose_theme, name))
                yield Hit(score, _marked(words, f"theme {name}"), choose, f"theme {name}")

    def _scenarios_meant(self, words: Sequence[str]) -> Iterator[Hit]:
        for scenario in self._usable:
            for verb, act in self._verbs:
                name, title = f"{verb} {show(scenario.id, 60)}", show(scenario.title, 200)
                score = _score(words, name)
                # If only the topic or the title matches, the palette does not offer to run the
                # scenario, because the user has not named it.
                if verb == "open":
                    score = score or _score(words, f"{name} {scenario.topic} {title}") / 4
                if score:
                    entry = Content.assemble(_marked(words, name), "  ", (title, "dim"))
                    yield Hit(score, entry, self._guarded(partial(act, scenario)), name)

    def _elsewhere(self, words: Sequence[str]) -> Iterator[Hit]:
        """Yield the matching commands that are not offered here, which do nothing.

        Each entry names the screen and the key of the command, or its command line.
        """
        words_here = {key.word for key, _ in self.commands()}
        uses = {
            name: where
            for name, where in _elsewhere(self._lab.desk.is_read_only).items()
            if name not in words_here
        }
        uses |= {
            verb: f"on the command line: {hint(self._lab.desk.root, verb, 'RUN')}"
            for verb in _ON_THE_COMMAND_LINE
        }
        for name, where in uses.items():
            if score := _score(words, name) / 2:
                yield Hit(
                    score,
                    Content.assemble(_marked(words, name), (f": {where}", "dim")),
                    _do_nothing,
                    f"{name}: {where}",
                )

    def commands(self) -> Iterator[tuple[Key, IgnoreReturnCallbackType]]:
        """Yield the keys that may be used where the user is, each with its command.

        The screens of `BY_NAME`, which have a name but no key, are yielded as well.
        """
        places: list[str] = getattr(self.screen, "places", list)()
        all_keys = [
            key for place in (*places, "everywhere") for key in reversed(KEYS[place]) if key.action
        ]
        taken = {key.key for place in places for key in KEYS[place] if key.action}
        own_actions = {key.action for place in places for key in KEYS[place]}
        # If a place here uses a key of `everywhere` for another action, that key is left out.
        usable = [key for key in all_keys if key.action in own_actions or key.key not in taken]
        keys = {key.action: _named(key) for key in usable}
        keys |= {key.action: key for key in BY_NAME if key.action not in keys}
        is_read_only = self._lab.desk.is_read_only
        for key in sorted(keys.values(), key=lambda key: _ORDER.index(key.action)):
            is_command = key.key not in _MOVES and not key.action.startswith(_NO_COMMANDS)
            if is_command and not (is_read_only and changes(key, places)):
                yield key, self._guarded(partial(self._do, key.action))
        listed = {(key.key, key.word) for key in keys.values()} | {
            (key.key, "") for key in all_keys
        }
        for key in (
            key
            for place in places
            for key in KEYS[place]
            if not key.action and key.key not in _MOVES
        ):
            if (key.key, key.word) not in listed and not (is_read_only and changes(key, places)):
                listed.add((key.key, key.word))
                yield key, self._guarded(partial(self._press, key.key))

    @property
    def _verbs(self) -> list[tuple[str, Callable[[Scenario], None]]]:
        """What the user may do with a scenario: the word for it, and the function that does it."""
        run = [] if self._lab.desk.is_read_only else [("run", self._run)]
        return [("open", self._open), *run]

    def _guarded(self, act: Callable[[], object]) -> Callable[[], object]:
        """Return a command that acts only once, and only if the user is still on the same screen.

        Textual runs a command after it has closed the palette. By then, a second click may have
        chosen a command, or other input may have opened another screen than the one on which the
        palette was opened.
        """

        def run() -> object:
            if self._has_acted or self.app.screen_stack[-1:] != [self.screen]:
                return None
            self._has_acted = True
            return act()

        return run

    async def _press(self, key: str) -> None:
        """Press a key whose entry in `keys.py` has no action, because Textual binds the key."""
        await self.app.run_action(f"press({key!r})", self.app)

    async def _do(self, action: str) -> None:
        await self.app.run_action(action, self.app if action.startswith("app.") else self.screen)

    @property
    def _lab(self) -> Navigator:
        return cast(Navigator, self.app)

    def _run(self, scenario: Scenario) -> None:
        from tuilab.engine import launch  # imported here: only runs need it

        try:
            order = launch.order(scenario, {}, root=self._lab.desk.root)
        except TuilabError as problem:
            self._lab.tell(str(problem))
        else:
            self._lab.run_orders([order])

    def _open(self, scenario: Scenario) -> None:
        self._lab.open_form(scenario.id, {})


@cache
def _elsewhere(is_read_only: bool) -> dict[str, str]:
    """Return where each key is, by its word.

    If different keys have the same word, the key of the first place counts, with all places where
    that key has the word.
    """
    found: dict[str, list[tuple[str, str]]] = {}
    for place in _WHERE:
        for key in KEYS[place]:
            if key.word and not (is_read_only and changes(key, [place])):
                found.setdefault(key.word, []).append((place, shown(key)))
    return {word: _where(uses) for word, uses in found.items()}


def _where(uses: Sequence[tuple[str, str]]) -> str:
    key = uses[0][1]
    places = list(dict.fromkeys(place for place, other_key in uses if other_key == key))
    if len(places) == 1:
        return (
            f"{_WHERE[places[0]]},"
            f" {f'{_DOORS[places[0]]}, then ' if places[0] in _DOORS else ''}{key}"
        )
    return f"{', '.join(_WHERE[place] for place in places[:-1])} or {_WHERE[places[-1]]}, {key}"


def _named(key: Key) -> Key:
    """Return a key. If it has no word and opens a named screen, the name becomes its word."""
    names = (named.word for named in BY_NAME if named.action == key.action)
    return key if key.word else key._replace(word=next(names, ""))


def _score(words: Sequence[str], text: str) -> float:
    """Return how well a text matches all words: 1 at best, 0 if one word is missing.

    A word counts if it is a word of the text, and less if it is only the beginning of one.
    """
    scores = [fit(word, text.lower()) for word in words]
    if not scores or any(how not in (WHOLE, BEGINNING) for how in scores):
        return 0.0
    return sum(1.0 if how == WHOLE else 0.6 for how in scores) / len(scores)


def _marked(words: Sequence[str], text: str) -> Content:
    """Return a text in which the searched words are bold and underlined."""
    content = Content(text)
    for word in words:
        match = re.search(rf"(?<![^\W_]){re.escape(word)}", text.lower())
        content = (
            content.stylize("bold underline", match.start(), match.end()) if match else content
        )
    return content


def _do_nothing() -> None:
    """Do nothing: the entry is there only to be read."""
