"""What a form holds: the run as it would be ordered now, and what is wrong with it. The same rules as on the command line."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from tuilab.catalogue.params import (
    default_overrides,
    has_gpus,
    parse,
    parse_duration,
    parse_prediction,
    spell,
)
from tuilab.catalogue.scenario import Param, Scenario, Value
from tuilab.defaults import REPEATS
from tuilab.errors import UsageError
from tuilab.tui.state.own import own_form
from tuilab.tui.state.own.own_commands import OwnCommand

if TYPE_CHECKING:
    from tuilab.engine.messages import RunOrder

GUESS, REPEAT, BUDGET, TIMEOUT = (
    "prediction?",
    "--repeat",
    "--budget",
    "--timeout",
)  # keys that no parameter can have
_GUESS = Param("prediction", "float", 0.0, label="compared with the result")
_PARSERS = {GUESS: parse_prediction, BUDGET: parse_duration, TIMEOUT: parse_duration}
_TIMEOUT = Param("timeout", "str", "", label="stop the run after this time: 90s, 2m, 1.5h")
_BUDGET = Param(
    "budget",
    "str",
    "",
    label="repeat until the claims are decided, at most this long: 90s, 2m, 1.5h",
)


@dataclass
class Draft:
    """The next run of a scenario; a field that nobody touched follows the defaults, or the quick values."""

    scenario: Scenario
    is_quick: bool = False
    typed: dict[str, str] = field(default_factory=dict)  # by field

    @property
    def fields(self) -> dict[str, Param]:
        """Every field of the form, from top to bottom."""
        if self.command:
            return {param.name: param for param in self.command.params}
        guess = {GUESS: _GUESS} if "Predict" in self.scenario.sections else {}
        own = {param.name: param for param in self.scenario.params}
        return guess | own | {REPEAT: self._repeat_param, BUDGET: _BUDGET, TIMEOUT: _TIMEOUT}

    @property
    def command(self) -> "OwnCommand | None":
        """The command of the user's that the form is of, where it is of no scenario."""
        return self.scenario if isinstance(self.scenario, OwnCommand) else None

    def text(self, key: str) -> str:
        """Return what stands in a field."""
        if self.command and key not in self.typed:
            return str(self.fields[key].default)
        return self.typed.get(
            key, "" if is_option(key) else spelt(self.fields[key], self.standard(self.fields[key]))
        )

    def type(self, key: str, text: str) -> None:
        """Take what was typed into a field."""
        self.typed[key] = text

    def problem(self, key: str) -> str:
        """Return what is wrong in a field; nothing when it can be used."""
        if self.command:
            return own_form.problem(self.text, key)
        text = self.text(key)
        if is_option(key) and not text.strip():
            return ""
        param = self.fields[key]
        try:
            _PARSERS[key](text) if key in _PARSERS else parse(param, text)
        except UsageError as problem:
            return str(problem).removeprefix(f"{param.name}: ")
        return ""

    @property
    def problems(self) -> dict[str, str]:
        """What is wrong, by field, from top to bottom."""
        return {key: problem for key in self.fields if (problem := self.problem(key))}

    def is_changed(self, key: str) -> bool:
        """Whether a field says something else than the default."""
        if self.command:
            return self.text(key) != self.fields[key].default
        if is_option(key):
            return bool(self.text(key).strip())
        return (
            bool(self.problem(key))
            or parse(self.fields[key], self.text(key)) != self.fields[key].default
        )

    def standard(self, param: Param) -> Value:
        """Return the value of a field that nobody touched."""
        return default_overrides([param], is_quick=self.is_quick).get(param.name, param.default)

    @property
    def given(self) -> dict[str, Value]:
        """The values that a command line must name; UsageError when one cannot be used.

        A device that the user has set for good is named, too: the line is pasted where nobody has.
        """
        values = [(param, parse(param, self.text(param.name))) for param in self.scenario.params]
        return {
            param.name: value for param, value in values if not self._is_understood(param, value)
        }

    def _is_understood(self, param: Param, value: Value) -> bool:
        """Say whether a value need not be named."""
        return value == self.standard(param) and (value == param.default or not has_gpus(param))

    @property
    def repeats(self) -> int | None:
        """The repeats that were asked for."""
        return (
            int(parse(self._repeat_param, self.text(REPEAT))) if self.text(REPEAT).strip() else None
        )

    @property
    def budget_s(self) -> float | None:
        """The seconds that may be spent."""
        return self._duration(BUDGET)

    @property
    def timeout_s(self) -> float | None:
        """The seconds after which the run is stopped."""
        return self._duration(TIMEOUT)

    @property
    def prediction(self) -> float | None:
        """What the user expects the answer to the lesson's question to be."""
        return (
            parse_prediction(self.text(GUESS))
            if GUESS in self.fields and self.text(GUESS).strip()
            else None
        )

    def _duration(self, key: str) -> float | None:
        return parse_duration(self.text(key)) if self.text(key).strip() else None

    def order(self, root: Path, argv: list[str]) -> "RunOrder":
        """Return the run as it is to be started."""
        if self.command:
            return own_form.order(self.text, root)
        from tuilab.engine import launch

        return launch.order(
            self.scenario,
            self.given,
            root=root,
            repeats=self.repeats,
            budget_s=self.budget_s,
            is_quick=self.is_quick,
            timeout_s=self.timeout_s,
            prediction=self.prediction,
            argv=argv,
        )

    def clear(self) -> None:
        """Forget what was typed, but not the prediction."""
        self.is_quick = False
        self.typed = {key: text for key, text in self.typed.items() if key == GUESS}

    @property
    def _repeat_param(self) -> Param:
        usual = REPEATS if self.scenario.is_timed and not self.is_quick else 1
        return Param("repeat", "int", usual, label="fresh processes to run it in", low=1, high=1000)


def spelt(param: Param, value: Value) -> str:
    """Return a value as it is typed for a parameter; a choice has one spelling only."""
    return str(value) if param.type == "choice" else spell(value)


def is_option(key: str) -> bool:
    """Whether a field is no parameter of the scenario; such a field may be left empty."""
    return not key.isidentifier()
