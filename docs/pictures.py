"""Makes the pictures of the README from runs that really happened: screens as SVG, reports as PNG through a headless Chromium.

    python docs/pictures.py [FOLDER OF RUNS [PICTURE...]]

Without a folder it makes runs of its own first, which takes a few minutes; the box should be quiet meanwhile. Pictures are lab,
run, report and box; those of run and box are of a box with a GPU, and so of runs that were brought here from one.
"""

import asyncio
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from tests.tui.screens import opened, press, settle
from tuilab.runs import store
from tuilab.runs.entry import from_name

HERE = Path(__file__).resolve().parent
BIN = Path(sys.executable).parent
SIZE = (120, 36)
SHOWN = "checkerboard"  # logs, races, measures memory and paints
REPORTED = "row-reduce"  # has counts, and times with intervals
FONTS = "'DejaVu Sans Mono', Menlo, Consolas, 'Liberation Mono', monospace"
CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)


def make_runs(root: Path) -> None:
    """Run everything once, with sizes that take seconds, and what is shown in full."""
    for words in (["all", "--quick"], [SHOWN], [REPORTED]):
        subprocess.run(
            [BIN / "tuilab", "run", *words, "--headless", "--quiet"], stdout=subprocess.DEVNULL
        )


def newest(root: Path, scenario: str) -> Path:
    return next(run for run in store.list_runs(root) if from_name(run.name).scenario == scenario)


async def draw_screens(root: Path, wanted: Sequence[str]) -> None:
    async with opened(root, *["down"] * 4, size=SIZE) as pilot:
        if "lab" in wanted:
            (HERE / "lab.svg").write_text(plain_fonts(pilot.app.export_screenshot(title="tuilab")))
        if "run" not in wanted:
            return
        pilot.app.open_run(newest(root, SHOWN))  # type: ignore[attr-defined]
        await settle(pilot)
        while not pilot.app.screen.following.is_caught_up:  # type: ignore[attr-defined]
            await pilot.pause(0.05)
        pilot.app.screen.show_panes()  # type: ignore[attr-defined]
        await press(pilot, "left", "left")
        (HERE / "run.svg").write_text(
            plain_fonts(pilot.app.export_screenshot(title=f"tuilab attach {SHOWN}"))
        )


def plain_fonts(svg: str) -> str:
    """Return the picture with fonts that people have: nothing is fetched to show it."""
    return re.sub(
        r"font-family: ?[^;]+;",
        f"font-family: {FONTS};",
        re.sub(r"@font-face\s*\{[^}]*\}", "", svg),
    )


def draw_reports(root: Path, wanted: Sequence[str]) -> None:
    heights = {"report": 1400, "box": 1000}
    with tempfile.TemporaryDirectory() as folder:
        for name in heights.keys() & wanted:
            run = newest(root, REPORTED).name if name == "report" else "all"
            page = Path(folder) / f"{name}.html"
            subprocess.run([BIN / "tuilab", "report", run, "-o", str(page)], check=True)
            shoot(page, HERE / f"{name}.png", heights[name])


def shoot(page: Path, picture: Path, height: int) -> None:
    if CHROMIUM is None:
        sys.exit("a report is drawn by chromium, and none is on the PATH: apt install chromium")
    flags = [
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--hide-scrollbars",
        f"--user-data-dir={page.parent / 'profile'}",
    ]
    shot = [f"--window-size=1280,{height}", f"--screenshot={picture}"]
    subprocess.run([CHROMIUM, *flags, *shot, page.as_uri()], check=True, capture_output=True)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as own:
        root = Path(sys.argv[1] if len(sys.argv) > 1 else own)
        os.environ |= {
            "TERM": "xterm-256color",
            "COLORTERM": "truecolor",
            "LC_ALL": "C.UTF-8",
            "TUILAB_ROOT": str(root),
        }
        os.environ.pop("NO_COLOR", None)
        if len(sys.argv) < 2:
            make_runs(root)
        pictures = sys.argv[2:] or ["lab", "run", "report", "box"]
        asyncio.run(draw_screens(root, pictures))
        draw_reports(root, pictures)
