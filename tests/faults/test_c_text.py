"""Nothing that a scenario says, is called or is given steers the terminal."""

from pathlib import Path

import pytest

from tests.engine import until, write_scenario
from tests.faults.oracle import check, is_well
from tests.faults.ptys import Terminal, is_restored, open_terminal
from tests.faults.sites import Site, latest

pytestmark = pytest.mark.faults

EVIL = "\x1b[2J\x1b]0;owned\x07\x9b31m\x85\x00\x08\r\x7f\u202e\u2028\u2066\ufeff\ud800 [/bold] \U0001f469"


EVIL_BODIES = {
    "an exception": "raise type('E' + EVIL, (Exception,), {})(EVIL)",
    "an exit": "sys.exit(EVIL)",
    "a missing need": "lab.needs(False, EVIL.replace(chr(0xd800), ''))",
    "half a character": "lab.stage(EVIL)",
    "a long exception": "raise ValueError(chr(1) * 100_000)",
    "an exception without a text": "class E(Exception):\n    __str__ = None\nraise E",
    "names": """
EVIL = globals()["EVIL"].replace(chr(0xd800), "")
lab.stage(EVIL)
lab.progress(1, 2, unit=EVIL)
lab.text(EVIL, title=EVIL)
lab.image(EVIL, [[0.0, 1.0], [2.0, 3.0]]) if hasattr(__import__("torch"), "__version__") else None
for step in range(30):
    lab.log(step, arm=EVIL, **{EVIL: step})
    lab.log(step, **{EVIL: float("nan")})
lab.record(events.MemoryMeasured(name=EVIL, values={"peak_bytes": 1.0, EVIL: 2.0}))
lab.record(events.ArtifactSaved(name=EVIL, bytes_total=1, sha256=EVIL))
lab.record(events.GpuFound(uuid=EVIL, index=0, name=EVIL, slice=EVIL))
lab.record(events.Unavailable(what=EVIL, reason=EVIL))
lab.claim("lacking", lacks=EVIL)
lab.claim("equal", EVIL, equals=EVIL)
lab.claim("other", EVIL, equals="x")
lab.record(events.ClaimDeclared(text=EVIL + "3", over=EVIL, under="b", op="at_least", bound=1.0))
for n in range(20): lab.record(events.BlockTimed(arm=(EVIL, "b")[n % 2], round=n // 2, slot=0, loops=1, wall_ns=1000 + n, cpu_ns=9))
subprocess.Popen(["sleep", "600"], start_new_session=True, executable="/bin/sleep")
subprocess.Popen(["\x1b[2J\x9b", "600"], start_new_session=True, executable="/bin/sleep")
print(EVIL)
""",
}


@pytest.mark.parametrize("body", EVIL_BODIES.values(), ids=EVIL_BODIES.keys())
def test_52_53_nothing_that_a_scenario_says_steers_the_terminal(site: Site, body: str) -> None:
    claims = {key: EVIL.replace(chr(0xD800), "") for key in ("lacking", "equal", "other")}
    path = write_scenario(
        site.folder, body, f"from tuilab.record import events\nEVIL = {EVIL!r}\n", claims=claims
    )

    fronts = [
        site.run("run", str(path), "--headless", "--plot"),
        site.run("attach", "--json"),
        site.run("attach", "--jsonl"),
    ]
    fronts += [
        site.run(*words)
        for words in (("runs",), ("verify",), ("attach", "--plot"), ("runs", "--json"), ("list",))
    ]

    assert all(map(is_well, fronts)), [front for front in fronts if not is_well(front)]
    is_fine = body in (EVIL_BODIES["names"], EVIL_BODIES["a missing need"])
    watch = check(
        site,
        latest(site),
        "succeeded" if is_fine else "failed",
        is_forged=body == EVIL_BODIES["names"],
    )
    assert "records could not be written" not in watch.summary.reason
    assert "before run() returned" not in watch.summary.reason


RAW = EVIL.translate({0: None, 0x0D: None, 0xD800: None, ord("/"): None})


@pytest.fixture
def evil_file(site: Site) -> Path:
    """A scenario whose title, lesson, labels, defaults, choices, claims, arms and folder try to steer the terminal."""
    folder = site.folder / "own" / f"topic{RAW}"
    folder.mkdir(parents=True)
    path = folder / "name.py"
    path.write_text(f'''"""Title {RAW}

Lesson {RAW}

## Predict
{RAW} how many?

## Look for
- [evil] claim {RAW}

## Source
{RAW}
"""
from typing import Literal
from tuilab import Lab

def run(
    lab: Lab,
    text: str = "default {RAW}",  # label {RAW}
    choice: Literal["a {RAW}", "b"] = "b",  # label {RAW}
    rows: int = 5,  # rows {RAW}, 1..9
) -> None:
    lab.claim("evil", True)
    lab.race(**{{"arm {RAW}": lambda: 1}}) if rows > 5 else None
''')
    return path


def test_52_53_62_nothing_in_a_scenarios_source_or_path_steers_the_terminal(
    site: Site, evil_file: Path
) -> None:
    raw, path, root = RAW, str(evil_file), f"{site.folder}/{RAW}"
    own = ("--scenarios", str(site.folder / "own"))
    words = [
        ("run", path, "--headless"), ("run", path, "--headless", "--root", root), ("run", path, "--headless", "--text", raw),
        ("run", path, "--rows", raw), ("run", path, "--choice", raw), ("run", path, raw), ("run", path, f"--{raw}"), ("run", raw),
        ("list", *own), ("list", "--json", *own), ("show", path, "--source"), ("show", raw), ("check", path), ("check", raw), (raw,),
        ("attach", raw), ("stop", raw), ("rm", raw), ("verify", raw), ("new", raw), ("runs",), ("attach", "--plot"), ("attach", "--json"),
        ("runs", "--root", raw), ("runs", "--limit", raw), ("runs", "--root", root), ("attach", "--root", root),
    ]  # fmt: skip
    fronts = [site.run(*line) for line in words]

    (evil_file.parent / f"name{raw}.py").write_text(evil_file.read_text())
    fronts += [site.run(*line, *own) for line in (("list",), ("show", "all"), ("check", "all"))]
    fronts += [site.run("run", str(evil_file.parent / f"name{raw}.py"), "--headless")]
    bad = [(front.args[1:], front.stdout, front.stderr) for front in fronts if not is_well(front)]
    assert not bad, ascii(bad)
    assert [front.returncode for front in fronts[:3]] == [0, 0, 0]
    until(lambda: not site.living())


@pytest.mark.parametrize("verb", ["run", "verify"])
def test_52_help_and_verify_do_not_steer_the_terminal(
    site: Site, evil_file: Path, verb: str
) -> None:
    root = f"{site.folder}/{RAW}"
    site.run("run", str(evil_file), "--headless", "--root", root)

    done = site.run(
        *(("run", str(evil_file), "--help") if verb == "run" else ("verify", "--root", root))
    )

    assert is_well(done)


@pytest.mark.parametrize(
    "value",
    ["x" * 100_000, "\ud800", "\udcff", "\x01" * 20_000],
    ids=["long", "half", "not UTF-8", "controls"],
)
def test_62_an_odd_parameter_runs_or_is_one_sentence(site: Site, value: str) -> None:
    path = site.folder / "form.py"
    path.write_text(
        '"""Form."""\nfrom tuilab import Lab\ndef run(lab: Lab, text: str = "x") -> None:\n    lab.log(0, size=len(text))\n'
    )

    done = site.run(
        "run",
        str(path),
        "--headless",
        "--quiet",
        "--text",
        value if value != "\ud800" else "\udced\udca0\udc80",
    )

    assert is_well(done), done.stderr
    assert done.returncode == 0 or (done.returncode in (2, 5) and done.stderr.count("\n") == 1)
    until(lambda: not site.living())
    for run_dir in site.root.iterdir() if site.root.exists() else []:
        check(site, run_dir, "succeeded")


# ---- where colours are on and a live line is drawn

SEEN_EVIL = "\x1b[2J\x1b]0;owned\x07\x9b31m\x85\x08\r\x7f\u202e\u2028\u2066\ufeff [/bold] [red]"


def test_52_53_nothing_of_a_run_steers_a_real_terminal(
    site: Site, terminals: "list[Terminal]"
) -> None:
    """The same channels as in a pipe, where colours are on and a live line is drawn."""
    more = f"from tuilab.record import events\nSEEN_EVIL = {SEEN_EVIL!r}\n"
    body = """
lab.stage(EVIL)
lab.progress(1, 2, unit=EVIL)
lab.text(EVIL, title=EVIL)
for step in range(30): lab.log(step, arm=EVIL, **{EVIL: step})
lab.claim("evil", EVIL, equals="x")
time.sleep(0.5)
raise ValueError(EVIL)
"""
    path = write_scenario(site.folder, body, more, claims={"evil": SEEN_EVIL})
    fronts = [open_terminal(site, terminals, "run", str(path), "--headless", "--plot")]
    fronts[0].front.wait(timeout=60)
    fronts += [
        open_terminal(site, terminals, *words)
        for words in (("attach", "--plot"), ("runs",), ("verify",), ("list",))
    ]

    assert [terminal.front.wait(timeout=60) for terminal in fronts] == [4, 4, 0, 0, 0]
    assert all(map(is_restored, fronts))
    check(site, latest(site), "failed")
