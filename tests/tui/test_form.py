"""The form of a scenario: the same values, rules and command line as `tuilab run` has."""

from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pytest
from textual.pilot import Pilot
from textual.widgets import Input

from tests.made_runs import FAST, started, write
from tests.tui.screens import NotingApp, drive, eventually, press, settle, text
from tuilab.catalogue import catalog, source
from tuilab.catalogue.scenario import Scenario
from tuilab.runs.entry import from_name
from tuilab.runs.past_runs import PastRun
from tuilab.tui.state import command_line, presets
from tuilab.tui.state.draft import BUDGET, GUESS, REPEAT, TIMEOUT, Draft
from tuilab.tui.widgets.lab.choice import Choice
from tuilab.tui.widgets.lab.field import Field
from tuilab.tui.widgets.lab.form import Form

if TYPE_CHECKING:
    from tests.fakes.nvml import FakeNvml

pytest_plugins = ["tests.fakes.nvml"]


@pytest.fixture(autouse=True)
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TUILAB_ROOT", str(tmp_path / "runs"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write(tmp_path / "scenarios", fast=FAST)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "runs"


@pytest.fixture
def fast(folder: Path) -> Scenario:
    return source.read(folder / "mine" / "fast.py")


def field(app: NotingApp, key: str) -> Field:
    return next(field for field in app.page.query(Field) if field.key == key)


def words(draft: Draft, root: Path) -> list[str]:
    folder = str(Path(draft.scenario.path).parents[1])
    return [
        word
        for word in command_line.run_words(draft, root, [folder])
        if word not in ("--scenarios", folder)
    ]


# ---- what a draft means


def test_a_draft_that_nobody_touched_orders_the_defaults(fast: Scenario, root: Path) -> None:
    order = Draft(fast).order(root, [])

    assert order.params == {
        "rows": 500,
        "scale": 1.5,
        "tidy": True,
        "work": "add",
        "word": "plain \x1b[31m",
    }
    assert (order.changed, order.repeats, order.quick) == ([], 6, False)


def test_a_folder_of_others_that_has_gone_keeps_nobody_from_a_run(
    fast: Scenario, folder: Path, root: Path
) -> None:
    assert command_line.run_words(Draft(fast), root, [str(folder), str(folder / "gone")])[:3] == [
        "tuilab",
        "run",
        "fast",
    ]


def test_the_command_line_names_what_differs_and_nothing_else(fast: Scenario, root: Path) -> None:
    draft = Draft(
        fast,
        typed={
            "rows": "5",
            "scale": "1.50",
            "tidy": "false",
            "work": "mul",
            REPEAT: "8",
            BUDGET: " 2m ",
        },
    )

    assert words(draft, root) == [
        *(
            "tuilab",
            "run",
            "fast",
            "--rows",
            "5",
            "--no-tidy",
            "--work",
            "mul",
            "--repeat",
            "8",
            "--budget",
            "2m",
        )
    ]


def test_a_value_that_looks_like_an_option_or_has_spaces_is_spelt_safely(
    fast: Scenario, root: Path
) -> None:
    draft = Draft(fast, typed={"scale": "-2", "word": "a b'; rm"})

    assert (
        command_line.line(words(draft, root))
        == """tuilab run fast --scale=-2 --word 'a b'"'"'; rm'"""
    )
    assert command_line.line(["cat", "~/a b", "a~"]) == "cat ~/'a b' 'a~'"


def test_quick_changes_what_untouched_fields_say(fast: Scenario, root: Path) -> None:
    draft = Draft(fast, is_quick=True)

    assert draft.text("rows") == "10"
    assert words(draft, root) == ["tuilab", "run", "fast", "--quick"]
    draft.type("rows", "500")
    assert words(draft, root) == ["tuilab", "run", "fast", "--rows", "500", "--quick"]
    assert draft.order(root, []).params["rows"] == 500


@pytest.mark.parametrize(
    ("key", "text", "problem"),
    [
        ("rows", "0", "0 is out of range; it takes 1..2000 (default 500)"),
        ("rows", "many", '"many" is not a whole number; it takes 1..2000 (default 500)'),
        ("rows", "", '"" is not a whole number; it takes 1..2000 (default 500)'),
        ("scale", "nan", '"nan" is not a number (default 1.5)'),
        (REPEAT, "0", "0 is out of range; it takes 1..1000 (default 6)"),
        (BUDGET, "soon", "'soon' is not a duration; use for example 90s, 2m or 1.5h"),
        (
            GUESS,
            "lots",
            '"lots" is not a number; use a number without a unit, for example 12 or 0.5',
        ),
        (TIMEOUT, "soon", "'soon' is not a duration; use for example 90s, 2m or 1.5h"),
        (REPEAT, "", ""),
        (GUESS, "1e3", ""),
    ],
)
def test_a_field_says_what_is_wrong_in_the_words_of_the_command_line(
    fast: Scenario, key: str, text: str, problem: str
) -> None:
    assert Draft(fast, typed={key: text}).problem(key) == problem


def test_parameters_called_like_options_of_every_run_are_not_mixed_up_with_them(
    tmp_path: Path,
) -> None:
    text = '"""T."""\ndef run(lab, repeat: int = 3, budget: str = "b", prediction: int = 1) -> None: pass\n'
    scenario = source.read(write(tmp_path, odd=text) / "mine" / "odd.py")
    draft = Draft(scenario, typed={"repeat": "4"})

    assert (draft.given, draft.repeats) == ({"repeat": 4}, None)


def test_choices_that_are_numbers_are_spelt_as_the_command_line_spells_them(tmp_path: Path) -> None:
    text = '"""T."""\nfrom typing import Literal\ndef run(lab, x: Literal[1.0, 2.0] = 1.0) -> None: pass\n'
    draft = Draft(source.read(write(tmp_path, odd=text) / "mine" / "odd.py"))

    assert (draft.text("x"), draft.problem("x")) == ("1.0", "")


def test_the_lesson_says_what_to_try_next(fast: Scenario) -> None:
    assert [(preset.name, preset.typed) for preset in presets.presets(fast)] == [
        ("defaults", {}),
        ("--rows 5", {"rows": "5"}),
        ("--no-tidy --work mul", {"tidy": "false", "work": "mul"}),
    ]


def test_every_shipped_try_next_is_a_preset() -> None:
    silent = [
        s.id
        for s in catalog.load()
        if "`--" in s.sections.get("Try next", "") and not presets.try_next(s)
    ]

    assert silent == []


# ---- what is shown


def test_typing_updates_the_command_and_marks_the_field(folder: Path, root: Path) -> None:
    async def body(app: NotingApp, pilot: Pilot[int]) -> None:
        await pilot.press("f", "down", "down", "5")
        await settle(pilot)

        assert app.page.draft is not None and app.page.draft.given == {"rows": 5}
        assert "● rows" in text(pilot)
        assert "default 500" in text(pilot)
        assert "tuilab run fast --rows 5" in text(pilot)

    drive(body, folder, root)


def test_a_field_that_is_wrong_keeps_the_run_from_starting_and_takes_the_focus(
    folder: Path, root: Path
) -> None:
    async def body(app: NotingApp, pilot: Pilot[int]) -> None:
        await pilot.press("f", "down", "down", "0", "escape", "enter")
        await settle(pilot)

        assert app.ordered == []
        assert field(app, "rows").editor.has_focus
        assert "✗ 0 is out of range; it takes 1..2000 (default 500)" in text(pilot)
        assert "✗ check rows" in text(pilot)
        assert app.said[-1] == "not started: rows has a wrong value"
        await pilot.press("7", "enter", "1", "0", "enter")  # the first run asks what is expected
        await settle(pilot)
        assert [order.params["rows"] for order in app.ordered] == [7]

    drive(body, folder, root)


def test_what_is_typed_into_a_field_is_no_key_of_the_screen(folder: Path, root: Path) -> None:
    async def body(app: NotingApp, pilot: Pilot[int]) -> None:
        theme = app.theme
        await pilot.press("f")
        await settle(pilot)
        field(app, "word").editor.focus()
        await pilot.press(*("q", "0", "question_mark", "slash", "T", "s", "space", "K", "n"))
        await settle(pilot)

        assert app.page.draft is not None and app.page.draft.given == {"word": "q0?/Ts Kn"}
        assert (app.theme, app.page.draft.is_quick, app.is_running) == (theme, False, True)

    drive(body, folder, root)


def test_a_default_that_cannot_be_shown_is_kept_until_it_is_changed(
    folder: Path, root: Path
) -> None:
    async def body(app: NotingApp, pilot: Pilot[int]) -> None:
        await pilot.press("f")
        await settle(pilot)
        editor = field(app, "word").editor
        assert isinstance(editor, Input) and editor.value == "plain \ufffd[31m"
        assert app.page.draft is not None and app.page.draft.given == {}
        editor.focus()
        editor.value = "new \x1b[2J\u202e"
        await settle(pilot)
        assert app.page.draft.given == {"word": "new \ufffd[2J\ufffd"}

    drive(body, folder, root)


def test_choices_and_presets_are_chosen_by_keys(folder: Path, root: Path) -> None:
    async def body(app: NotingApp, pilot: Pilot[int]) -> None:
        await pilot.press("f", "down", "right", "right")
        await settle(pilot)
        draft = app.page.draft
        assert draft is not None and draft.given == {"tidy": False, "work": "mul"}
        field(app, "work").editor.focus()
        await pilot.press("left")
        assert draft.given == {"tidy": False}
        await pilot.press("escape", "K")
        assert draft.is_quick
        await pilot.press("y")
        assert app.copied == ["tuilab run fast --no-tidy --quick " + f"--scenarios {folder}"]

    drive(body, folder, root)


def test_a_prediction_goes_with_the_run(folder: Path, root: Path) -> None:
    async def body(app: NotingApp, pilot: Pilot[int]) -> None:
        await pilot.press("f")
        await settle(pilot)
        await pilot.press("1", "0", "0", "enter")
        await settle(pilot)

        assert [order.prediction for order in app.ordered] == [100.0]

    drive(body, folder, root)


def test_another_folder_of_runs_is_named(fast: Scenario, tmp_path: Path) -> None:
    assert words(Draft(fast), tmp_path / "others")[-2:] == ["--root", str(tmp_path / "others")]


def test_moving_on_while_the_form_is_open_shows_the_form_of_the_other(
    folder: Path, root: Path
) -> None:
    other = FAST.replace("rows", "lines")
    write(folder, slow=other)

    async def body(app: NotingApp, pilot: Pilot[int]) -> None:
        await pilot.press("f", "escape", "down")
        await settle(pilot)
        assert [f.key for f in app.page.query_one(Form).query(Field)][:2] == [GUESS, "lines"]
        await pilot.press("up")
        await settle(pilot)
        assert [f.key for f in app.page.query_one(Form).query(Field)][:2] == [GUESS, "rows"]

    drive(body, folder, root)


def test_the_form_of_an_earlier_run_has_its_values(folder: Path, root: Path) -> None:
    async def body(app: NotingApp, pilot: Pilot[int]) -> None:
        app.page.fill("fast", {"rows": 7, "tidy": False, "gone": 1}, is_quick=True)
        await settle(pilot)
        assert app.page.draft is not None and app.page.draft.given == {"rows": 7, "tidy": False}
        assert "--rows 7" in text(pilot)
        app.page.fill("absent", {})
        assert app.said == ["there is no scenario absent here"]

    drive(body, folder, root)


def test_a_device_is_one_of_the_boxs_gpus_too_and_that_of_an_earlier_run_is_kept(
    folder: Path, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(
        folder, fast=FAST.replace("work: ", 'device: Literal["auto", "cuda"] = "auto",\n    work: ')
    )

    async def body(app: NotingApp, pilot: Pilot[int]) -> None:
        app.page.fill("fast", {"device": "cuda:13"})
        await settle(pilot)
        assert app.page.draft is not None and app.page.draft.given == {"device": "cuda:13"}
        assert "--device cuda:13" in text(pilot)
        editor = field(app, "device").editor
        assert isinstance(editor, Choice) and editor.value == "cuda:13"
        editor.focus()
        await pilot.press("left")
        assert app.page.draft.given["device"] != "cuda:13"

    drive(body, folder, root)


DEVICE = FAST.replace(
    "work: ", 'device: Literal["auto", "cpu", "cuda"] = "auto",  # where it runs\n    work: '
)


@pytest.fixture
def gpus(nvml: "FakeNvml", monkeypatch: pytest.MonkeyPatch) -> "FakeNvml":
    """A box with two GPUs."""
    for name, value in nvml.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
    nvml.set("gpus=2", "name=NVIDIA H100", "total=85899345920", "used.0=64424509440", "used.1=0")
    return nvml


@pytest.mark.parametrize("size", [(120, 40), (80, 24)])
def test_gpus_are_listed_to_choose_from_with_what_is_free(
    folder: Path, root: Path, gpus: "FakeNvml", size: tuple[int, int]
) -> None:
    write(folder, fast=DEVICE)

    async def body(app: NotingApp, pilot: Pilot[int]) -> None:
        await pilot.press("f")
        await settle(pilot)
        editor = field(app, "device").editor
        assert isinstance(editor, Choice)
        assert editor.words == ["auto", "cpu", "cuda", "cuda:0", "cuda:1"]
        editor.focus()
        await press(pilot, "left")

        rows = [line for line in text(pilot).splitlines() if "GiB free" in line]
        assert ["cuda:0  20 GiB free" in rows[0], "cuda:1  80 GiB free" in rows[1], len(rows)] == [
            True,
            True,
            2,
        ]
        assert "--device cuda:1" in app.page.command()

    drive(body, folder, root, size=size)


def test_a_form_is_filled_in_while_the_driver_does_not_answer_and_nobody_is_left_asking(
    folder: Path, root: Path, gpus: "FakeNvml"
) -> None:
    write(folder, fast=DEVICE)
    gpus.set("gpus=2", "mode=hang")

    async def body(app: NotingApp, pilot: Pilot[int]) -> None:
        await pilot.press("f")
        await eventually(pilot, lambda: len(askers()) == 1, "the process that asks the driver")
        field(app, "rows").editor.focus()
        await pilot.press("end", "backspace")
        await pilot.pause()
        assert app.page.draft is not None and app.page.draft.given == {"rows": 50}

    drive(body, folder, root)

    assert askers() == []


def askers() -> list[psutil.Process]:
    return [
        one
        for one in psutil.Process().children()
        if "tuilab.probes.gpu.own_process" in one.cmdline()
    ]


def test_a_device_that_is_set_for_good_stands_in_the_form_and_is_named_as_any_other(
    fast: Scenario, folder: Path, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TUILAB_DEVICE", "cuda:1")
    write(folder, fast=DEVICE)
    draft = Draft(source.read(folder / "mine" / "fast.py"))
    assert (draft.text("device"), draft.order(root, []).params["device"]) == ("cuda:1", "cuda:1")
    assert words(draft, root)[2:5] == ["fast", "--device", "cuda:1"]

    draft.type("device", "auto")

    assert words(draft, root)[2:5] == ["fast", "--device", "auto"]
    assert draft.order(root, []).params["device"] == "auto"


def test_what_to_try_next_keeps_the_device_and_an_earlier_run_brings_its_own(
    folder: Path, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(folder, fast=DEVICE)
    scenario = source.read(folder / "mine" / "fast.py")
    draft = Draft(scenario)
    draft.type("device", "cuda:1")
    draft.type("scale", "2")
    next(preset for preset in presets.presets(scenario) if preset.name == "--rows 5").fill(draft)
    assert draft.given == {"rows": 5, "device": "cuda:1"}
    presets.DEFAULTS.fill(draft)
    assert draft.given == {}

    monkeypatch.setenv("TUILAB_DEVICE", "cuda:1")
    params = {param.name: param.default for param in scenario.params}
    earlier = presets.of_run(
        PastRun(root / "a-run", from_name("a-run"), started(scenario="fast", params=params)),
        scenario,
    )
    assert earlier is not None
    earlier.fill(draft)
    assert draft.given == {"device": "auto"}


def test_nothing_blinks(folder: Path, root: Path) -> None:
    async def body(app: NotingApp, pilot: Pilot[int]) -> None:
        await pilot.press("f", "escape", "slash")
        await settle(pilot)
        inputs = list(app.page.query(Input))
        assert len(inputs) > 3
        assert not any(editor.cursor_blink for editor in inputs)

    drive(body, folder, root)


def test_focused_quick_field_shows_all_of_its_meaning(folder: Path, root: Path) -> None:
    async def body(app: NotingApp, pilot: "Pilot[int]") -> None:
        def form_words() -> str:
            lines = [line.rpartition("││")[2].strip("│ ") for line in text(pilot).splitlines()]
            return " ".join(" ".join(lines).split())

        await press(pilot, "f")
        app.page.query_one("#quick").focus()
        await eventually(
            pilot,
            lambda: "smaller sizes, one process, takes seconds" in form_words(),
            "the meaning of quick",
        )

    drive(body, folder, root, size=(80, 24))
