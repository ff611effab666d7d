"""What a form holds: the run as it would be ordered now, and what is wrong with it. The same rules as on the command line."""

from dataclasses import dataclass, field
from pathlib import Path

from tuilab import launch
from tuilab.errors import UsageError
from tuilab.orders import RunOrder
from tuilab.params import parse, parse_duration, spell
from tuilab.scenario import Param, Scenario, Value

GUESS = Param("prediction", "float", 0.0, label="your guess; the run tells how near it is")
BUDGET = Param("budget", "str", "", label="repeat until the claims are decided or this time is spent: 90s, 2m, 1.5h")


@dataclass
class Draft:
    """The next run of a scenario; a field that nobody touched follows the defaults, or the quick values."""

    scenario: Scenario
    typed: dict[str, str] = field(default_factory=dict)  # by parameter
    is_quick: bool = False
    repeat: str = ""
    budget: str = ""
    guess: str = ""

    def standard(self, param: Param) -> Value:
        """Return the value of a field that nobody touched."""
        return param.quick if self.is_quick and param.quick is not None else param.default

    def text(self, param: Param) -> str:
        """Return what stands in the field of a parameter."""
        return self.typed.get(param.name, spell(self.standard(param)))

    def type(self, param: Param, text: str) -> None:
        """Take what was typed into the field of a parameter."""
        self.typed[param.name] = text

    def problem(self, param: Param) -> str:
        """Return what is wrong in a field; nothing when it can be used."""
        try:
            parse(param, self.text(param))
        except UsageError as problem:
            return str(problem).removeprefix(f"{param.name}: ")
        return ""

    def is_changed(self, param: Param) -> bool:
        """Whether a field says something else than the default."""
        try:
            return parse(param, self.text(param)) != param.default
        except UsageError:
            return True

    def given(self) -> dict[str, Value]:
        """Return the values that the command line must name; UsageError when one cannot be used."""
        values = {param.name: (param, parse(param, self.text(param))) for param in self.scenario.params}
        return {name: value for name, (param, value) in values.items() if value != self.standard(param)}

    @property
    def repeat_param(self) -> Param:
        """The field of repeats, with the number that stands for an empty one."""
        usual = launch.REPEATS if self.scenario.is_timed and not self.is_quick else 1
        return Param("repeat", "int", usual, label="fresh processes to run it in", low=1, high=1000)

    def repeats(self) -> int | None:
        """Return the repeats that were asked for."""
        return int(parse(self.repeat_param, self.repeat)) if self.repeat.strip() else None

    def budget_s(self) -> float | None:
        """Return the seconds that may be spent."""
        return parse_duration(self.budget) if self.budget.strip() else None

    def problems(self) -> dict[str, str]:
        """Return what is wrong, by the name of the field, from top to bottom."""
        found = {GUESS.name: _problem_of(self.check_guess)}
        found |= {param.name: self.problem(param) for param in self.scenario.params}
        found |= {"repeat": _problem_of(self.repeats), BUDGET.name: _problem_of(self.budget_s)}
        return {name: problem for name, problem in found.items() if problem}

    def check_guess(self) -> None:
        """Raise UsageError when the prediction is no number."""
        if self.guess.strip():
            parse(GUESS, self.guess)

    def order(self, root: Path, argv: list[str]) -> RunOrder:
        """Return the run as it is to be started."""
        return launch.order(
            self.scenario,
            self.given(),
            root=root,
            repeats=self.repeats(),
            budget_s=self.budget_s(),
            is_quick=self.is_quick,
            argv=argv,
        )

    def clear(self) -> None:
        """Put everything but the prediction back to what it is without a word from anybody."""
        self.typed.clear()
        self.is_quick, self.repeat, self.budget = False, "", ""


def _problem_of(check: object) -> str:
    try:
        check()  # type: ignore[operator]
    except UsageError as problem:
        return str(problem).partition(": ")[2] or str(problem)
    return ""
