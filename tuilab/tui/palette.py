"""The command palette: finds screens, the commands of keys, themes and scenarios by name."""

import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from itertools import chain
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
    "up", "down", "left", "right", "pageup", "pagedown", "home", "end",
    "tab", "shift+tab", "shift+left", "shift+right",
}  # fmt: skip
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
_ORDER = [key.action for key in chain(*KEYS.values(), BY_NAME)]


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
        desk = self._lab.desk
        last_shown = [
            scenario for scenario in self._usable if scenario.id == desk.settings.scenario
        ]
        for scenario in last_shown or self._usable[:1]:
            name = f"open {show(scenario.id, 60)}"
            hint = "also" if desk.is_read_only else "or run it; also"
            entry = Content.assemble(name, (f"  {hint} works for every other scenario", "dim"))
            yield DiscoveryHit(entry, self._guard(partial(self._open, scenario)), name)
        for key, command in self.commands():
            entry = Content.assemble(key.help, "  ", (shown(key), "bold $text-accent"))
            yield DiscoveryHit(entry, command, key.help)

    async def search(self, query: str) -> Hits:
        """Yield the matching entries, the best first; without a match, an entry that says so."""
        words = query.lower().split()
        hits = [
            *self._find_keys(words),
            *self._find_themes(words),
            *self._find_scenarios(words),
            *self._find_elsewhere(words),
        ]
        for hit in sorted(hits, reverse=True):
            yield hit
        if not hits:
            entry = Content.assemble(
                f"no command matches {show(query, 60)}", ("  esc closes, ? shows the keys", "dim")
            )
            yield Hit(1.0, entry, _do_nothing, "no command matches")

    def _find_keys(self, words: Sequence[str]) -> Iterator[Hit]:
        """Yield the matching keys. A match of the word of a key counts more than of its help."""
        for key, command in self.commands():
            text = f"{key.word}: {key.help}" if key.word else key.help
            score = _score(words, key.word) or _score(words, text) * 0.9
            if score:
                marked = _mark_words(words, text)
                entry = Content.assemble(marked, "  ", (shown(key), "bold $text-accent"))
                yield Hit(score, entry, command, text)

    def _find_themes(self, words: Sequence[str]) -> Iterator[Hit]:
        """Yield the themes that match; each is chosen by its entry."""
        for name in themes.NAMES:
            text = f"theme {name}"
            score = _score(words, text)
            if score:
                choose = self._guard(partial(self._lab.choose_theme, name))
                yield Hit(score, _mark_words(words, text), choose, text)

    def _find_scenarios(self, words: Sequence[str]) -> Iterator[Hit]:
        """Yield the matching scenarios, each to be opened and, unless read-only, to be run."""
        for scenario in self._usable:
            for verb, act in self._verbs:
                name = f"{verb} {show(scenario.id, 60)}"
                title = show(scenario.title, 200)
                score = _score(words, name)
                # If only the topic or the title matches, the palette does not offer to run the
                # scenario, because the user has not named it.
                if not score and verb == "open":
                    score = _score(words, f"{name} {scenario.topic} {title}") / 4
                if score:
                    entry = Content.assemble(_mark_words(words, name), "  ", (title, "dim"))
                    yield Hit(score, entry, self._guard(partial(act, scenario)), name)

    def _find_elsewhere(self, words: Sequence[str]) -> Iterator[Hit]:
        """Yield the matching commands that are not offered here, which do nothing.

        Each entry names the screen and the key of the command, or its command line.
        """
        desk = self._lab.desk
        words_here = {key.word for key, _ in self.commands()}
        places: dict[str, str] = {}
        for name, place in _describe_all_places(desk.is_read_only).items():
            if name not in words_here:
                places[name] = place
        for verb in _ON_THE_COMMAND_LINE:
            places[verb] = f"on the command line: {hint(desk.root, verb, 'RUN')}"
        for name, place in places.items():
            score = _score(words, name) / 2
            if score:
                entry = Content.assemble(_mark_words(words, name), (f": {place}", "dim"))
                yield Hit(score, entry, _do_nothing, f"{name}: {place}")

    def commands(self) -> Iterator[tuple[Key, IgnoreReturnCallbackType]]:
        """Yield the keys that may be used where the user is, each with its command.

        The screens of `BY_NAME`, which have a name but no key, are yielded as well. In read-only
        mode, keys that change something are left out.
        """
        places: list[str] = getattr(self.screen, "places", list)()
        keys_here: list[Key] = []
        for place in places:
            keys_here += [key for key in reversed(KEYS[place]) if key.action]
        keys_everywhere = [key for key in reversed(KEYS["everywhere"]) if key.action]

        # By action. If several places have an action, the entry of the last place counts. If a
        # place here uses a key of `everywhere` for another action, that key is left out.
        entries = {key.action: _name_entry(key) for key in keys_here}
        actions_here = set(entries)
        key_names_here = {key.key for key in keys_here}
        for key in keys_everywhere:
            if key.action in actions_here or key.key not in key_names_here:
                entries[key.action] = _name_entry(key)
        for key in BY_NAME:
            entries.setdefault(key.action, key)

        is_read_only = self._lab.desk.is_read_only
        for key in sorted(entries.values(), key=lambda key: _ORDER.index(key.action)):
            is_command = key.key not in _MOVES and not key.action.startswith(_NO_COMMANDS)
            if is_command and not (is_read_only and changes(key, places)):
                yield key, self._guard(partial(self._do, key.action))

        # The keys without an action, which Textual binds, each of them once.
        listed = {(key.key, key.word) for key in entries.values()}
        listed |= {(key.key, "") for key in (*keys_here, *keys_everywhere)}
        for place in places:
            for key in KEYS[place]:
                if key.action or key.key in _MOVES or (key.key, key.word) in listed:
                    continue
                if is_read_only and changes(key, places):
                    continue
                listed.add((key.key, key.word))
                yield key, self._guard(partial(self._press, key.key))

    @property
    def _verbs(self) -> list[tuple[str, Callable[[Scenario], None]]]:
        """What the user may do with a scenario: the word for it, and the function that does it."""
        verbs: list[tuple[str, Callable[[Scenario], None]]] = [("open", self._open)]
        if not self._lab.desk.is_read_only:
            verbs.append(("run", self._run))
        return verbs

    def _guard(self, act: Callable[[], object]) -> Callable[[], object]:
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
        namespace = self.app if action.startswith("app.") else self.screen
        await self.app.run_action(action, namespace)

    @property
    def _lab(self) -> Navigator:
        return cast(Navigator, self.app)

    def _run(self, scenario: Scenario) -> None:
        """Run a scenario with its defaults; if that is not possible, show why."""
        from tuilab.engine import launch  # imported here: only runs need it

        try:
            order = launch.order(scenario, {}, root=self._lab.desk.root)
        except TuilabError as problem:
            self._lab.tell(str(problem))
            return
        self._lab.run_orders([order])

    def _open(self, scenario: Scenario) -> None:
        self._lab.open_form(scenario.id, {})


@cache
def _describe_all_places(is_read_only: bool) -> dict[str, str]:
    """Return where each key is, by its word.

    If different keys have the same word, the key of the first place counts, with all places where
    that key has the word.
    """
    uses_by_word: dict[str, list[tuple[str, str]]] = {}
    for place in _WHERE:
        for key in KEYS[place]:
            if key.word and not (is_read_only and changes(key, [place])):
                uses_by_word.setdefault(key.word, []).append((place, shown(key)))
    return {word: _describe_places(uses) for word, uses in uses_by_word.items()}


def _describe_places(uses: Sequence[tuple[str, str]]) -> str:
    """Return where the key of the first use is; a use is a place and the key there."""
    _, key = uses[0]
    places: list[str] = []
    for place, key_of_place in uses:
        if key_of_place == key and place not in places:
            places.append(place)
    names = [_WHERE[place] for place in places]
    if len(places) > 1:
        return f"{', '.join(names[:-1])} or {names[-1]}, {key}"
    if places[0] in _DOORS:
        return f"{names[0]}, {_DOORS[places[0]]}, then {key}"
    return f"{names[0]}, {key}"


def _name_entry(key: Key) -> Key:
    """Return a key. If it has no word and opens a named screen, the name becomes its word."""
    if key.word:
        return key
    for named in BY_NAME:
        if named.action == key.action:
            return key._replace(word=named.word)
    return key


def _score(words: Sequence[str], text: str) -> float:
    """Return how well a text matches all words: 1 at best, 0 if one word is missing.

    A word counts if it is a word of the text, and less if it is only the beginning of one.
    """
    if not words:
        return 0.0
    scores = []
    for word in words:
        match_kind = fit(word, text.lower())
        if match_kind == WHOLE:
            scores.append(1.0)
        elif match_kind == BEGINNING:
            scores.append(0.6)
        else:
            return 0.0
    return sum(scores) / len(scores)


def _mark_words(words: Sequence[str], text: str) -> Content:
    """Return a text in which the searched words are bold and underlined."""
    content = Content(text)
    for word in words:
        match = re.search(rf"(?<![^\W_]){re.escape(word)}", text.lower())
        if match:
            content = content.stylize("bold underline", match.start(), match.end())
    return content


def _do_nothing() -> None:
    """Do nothing: the entry is there only to be read."""
