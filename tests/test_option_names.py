"""Options of a scenario's parameters and those of `tuilab run` itself have names that nobody takes for one another."""

from pathlib import Path
from typing import Any

import click
import pytest

from tuilab.catalogue import params
from tuilab.catalogue.check import check
from tuilab.catalogue.source import read
from tuilab.cli.verbs.run import command
from tuilab.engine import launch
from tuilab.errors import UsageError
from tuilab.runs.command_line import option_words

OWN = {
    word for option in command.params if isinstance(option, click.Option) for word in option.opts
} | {"--help"}
TAKEN_INSIDE = {option.name for option in command.params if option.name} | {
    "ctx",
    "self",
    "given",
    "param_root",
    "h",
}


class Ordered(Exception):
    """What was to be run."""


@pytest.fixture(autouse=True)
def orders(monkeypatch: pytest.MonkeyPatch) -> None:
    def order(scenario: object, values: dict[str, Any], **more: Any) -> None:
        raise Ordered(values, more)

    monkeypatch.setattr(launch, "order", order)


def ordered(*words: str) -> tuple[dict[str, Any], dict[str, Any]]:
    with pytest.raises(Ordered) as caught:
        command.main([*words], standalone_mode=False)
    values, more = caught.value.args
    return values, more


def scenario_with(*names: str, kind: str = "int = 5") -> Path:
    path = Path("clash.py")
    taken = ", ".join(f"{name}: {kind}" for name in names)
    path.write_text(
        f'"""Names."""\nfrom tuilab import Lab\n\n\ndef run(lab: Lab, *, {taken}) -> None:\n    pass\n'
    )
    return path


def test_the_options_of_tuilab_run_itself_are_known() -> None:
    assert {f"--{word}" for word in params.OPTIONS} == OWN


def test_a_parameter_of_any_name_gets_its_own_value_and_no_option_of_ours() -> None:
    names = sorted({word[2:].replace("-", "_") for word in OWN} | TAKEN_INSIDE)
    path = scenario_with(*names)
    words = [word for at, name in enumerate(names) for word in option_words(name, str(at))]

    values, more = ordered(
        str(path), *words, "--timeout", "60", "--root", "elsewhere", "--headless"
    )

    assert values == {name: at for at, name in enumerate(names)}
    assert (more["timeout_s"], more["root"], more["repeats"], more["is_quick"]) == (
        60,
        Path("elsewhere"),
        None,
        False,
    )
    assert not {word.partition("=")[0] for word in words} & OWN
    assert len({params.option_of(name) for name in names}) == len(names)


def test_a_switch_of_any_name_is_switched_on_and_off() -> None:
    names = sorted({word[2:].replace("-", "_") for word in OWN} | TAKEN_INSIDE)
    path = scenario_with(*names, kind="bool = True")

    for is_on in (True, False):
        values, more = ordered(
            str(path), *(word for name in names for word in option_words(name, is_on))
        )
        assert values == dict.fromkeys(names, is_on)
        assert (more["timeout_s"], more["is_quick"]) == (None, False)


def test_an_author_is_told_of_a_name_that_is_taken() -> None:
    findings = [finding.sentence for finding in check(read(scenario_with("root", "rows")))]

    assert "root is an option of tuilab run itself; choose another name" in findings
    assert not any("rows is an option" in finding for finding in findings)


def test_two_parameters_with_one_option_are_refused() -> None:
    path = Path("clash.py")
    path.write_text(
        '"""Names."""\n\n\ndef run(lab: "Lab", tidy: bool = True, no_tidy: int = 3) -> None:\n    pass\n'
    )

    assert (
        read(path).error == "line 4: no_tidy and tidy have the same option, --no-tidy; rename one"
    )


def test_a_switch_that_is_given_a_value_is_told_the_other_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = scenario_with("fast", kind="bool = False")

    for words, other in ((["--fast", "true"], "--no-fast"), (["--no-fast", "no"], "--fast")):
        with pytest.raises(
            UsageError,
            match=f"{words[0]} takes no value, and {words[1]} is not a scenario; for the opposite, use {other}$",
        ):
            command.main([str(path), *words], standalone_mode=False)
