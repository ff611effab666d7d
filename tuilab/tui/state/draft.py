"""The content of a form: the next run of a scenario, checked by the rules of the command line."""

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
from tuilab.defaults import MAX_REPEATS, REPEATS
from tuilab.errors import UsageError
from tuilab.tui.state.own import own_form
from tuilab.tui.state.own.own_commands import OwnCommand

if TYPE_CHECKING:
    from tuilab.engine.messages import RunOrder

# Keys of fields that are no parameters. No parameter can have such a name.
GUESS = "prediction?"
REPEAT = "--repeat"
BUDGET = "--budget"
TIMEOUT = "--timeout"
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
    """The next run of a scenario. An untouched field has its default, or its quick value.

    The properties that are parsed from texts raise UsageError if a text is wrong.
    """

    scenario: Scenario
    is_quick: bool = False
    typed: dict[str, str] = field(default_factory=dict)  # by field

    @property
    def fields(self) -> dict[str, Param]:
        """The fields of the form by key, from top to bottom."""
        if self.command:
            return {param.name: param for param in self.command.params}
        fields = {}
        if "Predict" in self.scenario.sections:
            fields[GUESS] = _GUESS
        for param in self.scenario.params:
            fields[param.name] = param
        fields[REPEAT] = self._repeat_param
        fields[BUDGET] = _BUDGET
        fields[TIMEOUT] = _TIMEOUT
        return fields

    @property
    def command(self) -> "OwnCommand | None":
        """The user's command that the form is for; None for a scenario."""
        if isinstance(self.scenario, OwnCommand):
            return self.scenario
        return None

    def text(self, key: str) -> str:
        """Return the text of a field: what was typed, else its default or quick value.

        An option that was not typed is empty.
        """
        if key in self.typed:
            return self.typed[key]
        if self.command:
            return str(self.fields[key].default)
        if is_option(key):
            return ""
        param = self.fields[key]
        return spelt(param, self.standard(param))

    def type(self, key: str, text: str) -> None:
        """Set the text of a field."""
        self.typed[key] = text

    def problem(self, key: str) -> str:
        """Return what is wrong with the text of a field, or nothing."""
        if self.command:
            return own_form.problem(self.text, key)
        text = self.text(key)
        if is_option(key) and not text.strip():
            return ""
        param = self.fields[key]
        try:
            if key in _PARSERS:
                _PARSERS[key](text)
            else:
                parse(param, text)
        except UsageError as problem:
            return str(problem).removeprefix(f"{param.name}: ")
        return ""

    @property
    def problems(self) -> dict[str, str]:
        """The problems by field, from top to bottom."""
        problems = {}
        for key in self.fields:
            problem = self.problem(key)
            if problem:
                problems[key] = problem
        return problems

    def is_changed(self, key: str) -> bool:
        """Return whether a field differs from its default. A wrong text differs."""
        text = self.text(key)
        if is_option(key) and not self.command:
            return bool(text.strip())
        param = self.fields[key]
        if self.command:
            return text != param.default
        if self.problem(key):
            return True
        return parse(param, text) != param.default

    def standard(self, param: Param) -> Value:
        """Return the value of an untouched field."""
        overrides = default_overrides([param], is_quick=self.is_quick)
        return overrides.get(param.name, param.default)

    @property
    def given(self) -> dict[str, Value]:
        """The values that a command line has to name. UsageError if one is wrong.

        A device from the settings is named as well: where the line is pasted, they may differ.
        """
        values = {}
        for param in self.scenario.params:
            value = parse(param, self.text(param.name))
            is_from_settings = has_gpus(param) and value != param.default
            if value != self.standard(param) or is_from_settings:
                values[param.name] = value
        return values

    @property
    def repeats(self) -> int | None:
        """The repeats that were typed; None without a number."""
        text = self.text(REPEAT)
        if not text.strip():
            return None
        return int(parse(self._repeat_param, text))

    @property
    def budget_s(self) -> float | None:
        """The seconds that all repeats may take; None without a limit."""
        return self._duration(BUDGET)

    @property
    def timeout_s(self) -> float | None:
        """The seconds after which the run is stopped; None without a limit."""
        return self._duration(TIMEOUT)

    @property
    def prediction(self) -> float | None:
        """The user's answer to the question of the lesson; None without one."""
        if GUESS not in self.fields:
            return None
        text = self.text(GUESS)
        if not text.strip():
            return None
        return parse_prediction(text)

    def _duration(self, key: str) -> float | None:
        """Return the seconds in a field; None if it is empty."""
        text = self.text(key)
        if not text.strip():
            return None
        return parse_duration(text)

    def order(self, root: Path, argv: list[str]) -> "RunOrder":
        """Return the order to start the run; `argv` is the command line that does the same.

        Raise UsageError if a value is wrong. For a command, `argv` is not used: it is made again.
        """
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
        """Forget the typed texts, except for the prediction."""
        self.is_quick = False
        self.typed = {key: text for key, text in self.typed.items() if key == GUESS}

    @property
    def _repeat_param(self) -> Param:
        is_repeated = self.scenario.is_timed and not self.is_quick
        default = REPEATS if is_repeated else 1
        label = "fresh processes to run it in"
        return Param("repeat", "int", default, label=label, low=1, high=MAX_REPEATS)


def spelt(param: Param, value: Value) -> str:
    """Return a value as it is typed for a parameter. A choice has only one spelling."""
    if param.type == "choice":
        return str(value)
    return spell(value)


def is_option(key: str) -> bool:
    """Return whether a field is an option, not a parameter. Such a field may be empty."""
    return not key.isidentifier()
