"""The screens that `tuilab exec` opens: a command of the user's begins at once, and is no lesson."""

from pathlib import Path

from tests.made_runs import make_run, started
from tests.tui.screens import NotingDesk, ShownApp, app_on, open_run, opened, press, shown, text
from tuilab.engine.messages import CommandArm, CommandOrder, RunOrder
from tuilab.record import events
from tuilab.record.journal.writer import Writer
from tuilab.tui.screens.lab import LabPage
from tuilab.tui.state.session import waits
from tuilab.tui.state.settings import Settings
from tuilab.tui.widgets.run.notes import NotesPane
from tuilab.tui.widgets.run.output import OutputPane


def order_of(root: Path, script: Path, *arms: CommandArm) -> RunOrder:
    command = CommandOrder(words=["python", str(script)], arms=list(arms))
    return RunOrder(
        root=str(root),
        scenario="train",
        topic="exec",
        title="",
        path=str(script),
        params={},
        devices=["cores"],
        command=command,
    )


class StandingDesk(NotingDesk):
    """Starts nothing: what is started is a run that is there."""

    def __init__(self, root: Path, run_dir: Path) -> None:
        super().__init__(root, (), Settings(has_seen_hint=True))
        self._run_dir = run_dir

    def start(self, order: RunOrder) -> Path:
        self.started.append(self._run_dir.name)
        return self._run_dir


def test_a_command_that_is_watched_waits_for_no_other_run_as_without_tuilab(root: Path) -> None:
    script = root / "train.py"
    race = order_of(root, script, CommandArm(name="base"), CommandArm(name="two"))
    lesson = RunOrder(
        root=str(root),
        scenario="xyy",
        topic="stability",
        title="",
        path="",
        params={},
        devices=["cores"],
    )

    assert [waits(one) for one in (order_of(root, script), race, lesson)] == [False, True, True]


async def test_back_from_a_command_the_lab_is_at_it_and_takes_its_script_for_no_lesson(
    root: Path, tmp_path: Path
) -> None:
    script = tmp_path / "train.py"
    script.write_text("import torch\n")
    words = ["python", str(script)]
    first = started(scenario="train", topic="exec", command=words, folder=str(tmp_path))
    run_dir = make_run(root, first, events.StateChanged(state="succeeded"), name="train.exec")
    app = ShownApp(StandingDesk(root, run_dir), orders=[order_of(root, script)])
    async with opened(app) as pilot:
        await press(pilot, "escape")

        assert isinstance(app.screen, LabPage) and app.screen.scenario is not None
        assert (app.screen.scenario.topic, app.screen.scenario.title) == (
            "your commands",
            " ".join(words),
        )
        assert "not usable" not in text(pilot)


async def test_commands_that_differ_at_their_ends_are_told_apart(root: Path) -> None:
    for number, lr in enumerate(("0.05", "0.2", "1e4")):
        words = ["python", "examples/train_cnn.py", "--steps", "2000", "--lr", lr]
        first = started(scenario="train_cnn", topic="exec", command=words, title=" ".join(words))
        make_run(
            root,
            first,
            events.StateChanged(state="succeeded"),
            name="train_cnn.exec",
            end=f"aaaaa{number}",
        )
    async with opened(app_on(root), size=(80, 24)) as pilot:
        await shown(pilot, "your commands")
        lines = [line.split("││")[0].rstrip("│▁▂▃▄▅▆▇█ ") for line in text(pilot).splitlines()]
        in_lab = {line.split()[-1] for line in lines if "✓ python" in line}
        await press(pilot, "h")
        in_history = {
            line.partition("✓")[0].split()[-1]
            for line in text(pilot).splitlines()
            if "train_cnn  " in line
        }

        assert in_lab == {"0.05", "0.2", "1e4"}
        assert in_history == in_lab


async def test_a_command_that_was_watched_and_one_that_was_raced_are_told_apart(root: Path) -> None:
    words = ["python", "train.py"]
    for verb in ("exec", "ab"):
        first = started(scenario="train", topic=verb, command=words, title=" ".join(words))
        make_run(
            root,
            first,
            events.StateChanged(state="succeeded"),
            name=f"train.{verb}",
            end=f"{verb:a<6}",
        )
    async with opened(app_on(root), size=(80, 24)) as pilot:
        await shown(pilot, "your commands")
        in_lab = {
            line.split("││")[0].strip("│▂▇ ") for line in text(pilot).splitlines() if "✓" in line
        }
        await press(pilot, "h")
        in_history = {name for name in ("exec/train ", "ab/train ") if name in text(pilot)}

        assert in_lab == {"✓ python train.py", "✓ ab: python train.py"}
        assert in_history == {"exec/train ", "ab/train "}


async def test_what_is_told_of_a_command_takes_the_place_of_its_output_as_it_comes(
    root: Path,
) -> None:
    first = started(scenario="train", topic="exec", command=["python", "train.py"], is_alive=True)
    run_dir = make_run(
        root,
        first,
        events.StateChanged(state="running"),
        events.Logged(s=0, v={"loss": 1.0}),
        name="train.exec",
    )
    (run_dir / "stdout.log").write_text(
        "loss 3\n" * 20
    )  # which is high, so that the rows stay as high as they are
    journal = Writer(run_dir / "journal" / "worker-0.jsonl")
    async with opened(app_on(root), size=(120, 40)) as pilot:
        page = await open_run(pilot, run_dir)

        def order() -> list[type]:
            return [
                type(pane)
                for pane in page.panes.children
                if isinstance(pane, NotesPane | OutputPane)
            ]

        await shown(pilot, "loss 3")
        assert order() == [OutputPane, NotesPane]
        journal.append(events.Alerted(what="stall", text="no step for 9 s"))
        journal.sync()
        await shown(pilot, "no step for 9 s")
        assert order() == [NotesPane, OutputPane]
    journal.close()


async def test_the_run_screen_says_what_the_arms_of_a_race_are(root: Path) -> None:
    words = ["python", "train.py"]
    argv = [
        "ab",
        "--headless",
        "--arm",
        "base",
        "--arm=two: OMP_NUM_THREADS=2",
        "--root",
        "/r",
        "--",
        *words,
    ]
    first = started(scenario="train", topic="ab", command=words, argv=argv)
    run_dir = make_run(root, first, events.StateChanged(state="succeeded"), name="train.ab")
    async with opened(app_on(root), size=(120, 40)) as pilot:
        await open_run(pilot, run_dir)

        await shown(pilot, "base: as it is")
        await shown(pilot, "two: OMP_NUM_THREADS=2")


async def test_help_on_a_command_offers_nothing_of_lessons_and_repeats(root: Path) -> None:
    first = started(scenario="train", topic="exec", command=["python", "train.py"])
    run_dir = make_run(root, first, events.StateChanged(state="succeeded"), name="train.exec")
    async with opened(app_on(root), size=(120, 60)) as pilot:
        await open_run(pilot, run_dir)
        await press(pilot, "question_mark")

        keys = text(pilot).partition("Everywhere")[0]
        assert "to run it again" in keys
        assert not [
            word for word in ("lesson", "repeat", "scenario", "thing to try") if word in keys
        ]


async def test_the_points_of_a_sweep_over_one_command_are_told_apart_by_their_values(
    root: Path,
) -> None:
    for number, rate in enumerate(("0.1", "0.3")):
        sweep = events.Sweep(id="sweep-1", values={"lr": ["0.1", "0.3"]}, point={"lr": rate})
        words = ["python", "-c", "pass  # " + "a long line " * 9, rate]
        first = started(scenario="python", topic="exec", command=words, sweep=sweep)
        make_run(
            root,
            first,
            events.StateChanged(state="succeeded"),
            name="python.exec",
            end=f"aaaaa{number}",
        )

    async with opened(app_on(root), size=(80, 24)) as pilot:
        await shown(pilot, "lr=0.1  pyth")
        await shown(pilot, "lr=0.3  pyth")
