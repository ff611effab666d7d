"""Faults that the process of a scenario makes itself: in its output, or in processes that it starts."""

from collections.abc import Callable

from tests.faults.oracle import view
from tests.faults.soaked.place import HOLDS, ExpectedRun, Place

ENDS = {
    "os._exit(0)": "failed",
    "os._exit(9)": "failed",
    "sys.exit(3)": "failed",
    "raise ValueError('\\x1b[2J' * 50)": "failed",
    "raise KeyboardInterrupt": "failed",
    "def f(): f()\nf()": "failed",
    "ctypes.string_at(0)": "killed",
    "os.abort()": "killed",
    "os.kill(os.getpid(), signal.SIGKILL)": "killed",
    "os.kill(os.getpid(), 40)": "killed",
}
HARMLESS = [
    "for fd in (0, 1, 2): os.close(fd)",
    "os.umask(0)",
    "signal.signal(signal.SIGTERM, signal.SIG_IGN)",
    "here = os.path.join(os.getcwd(), 'gone')\nos.mkdir(here)\nos.chdir(here)\nos.rmdir(here)",
    "held = [os.pipe() for _ in range(200)]",
    "for _ in range(5000): print('x' * 200)",
    "os.write(1, b'\\xff\\x00\\r' * 100_000)",
    "for value in (float('nan'), float('inf'), 1e308, 5e-324, -0.0): lab.log(step, odd=value)",
    "for number in range(500): lab.log(number, **{f'name {number % 50}': 1.0})",
    "lab.artifact('large.bin', bytes(3_000_000))\nlab.text('x' * 100_000)",
    "lab.arm('a', arm)()",
    # It has a temporary folder, which stays when Python is killed.
    "import multiprocessing\nheld = multiprocessing.Manager()",
    "try: lab.arm('b', dies)()\nexcept Exception as problem: lab.text(str(problem))",
]
ARMS = "def arm(lab): lab.log(0, half=0.0)\ndef dies(lab): os.kill(os.getpid(), signal.SIGKILL)\n"
LEAVES = [
    "for _ in range(5): subprocess.Popen(['sleep', '600'])",
    "subprocess.Popen(['sleep', '600'], start_new_session=True)",
    "if os.fork() == 0:\n    os.setsid()\n    if os.fork(): os._exit(0)\n    time.sleep(600)",
    "if os.fork() == 0:\n    signal.signal(signal.SIGTERM, signal.SIG_IGN)\n    time.sleep(600)",
    "for _ in range(60):\n    if os.fork() == 0: os._exit(0)",
    "from multiprocessing import shared_memory\nheld = shared_memory.SharedMemory(create=True, size=4096)",
]
ENDLESS = [
    "while True: print('x' * 1000)",
    "while True: os.write(2, b'y' * 4096)",
    "while True: lab.log(step, more=1.0)",
    "while True: lab.stage(str(time.monotonic()))",
    "while True: pass",
    "while True:\n    if os.fork() == 0: os._exit(0)\n    os.wait()",
]


def end_by_itself(place: Place) -> list[ExpectedRun]:
    act = place.chance.choice(list(ENDS))
    run_dir = place.begin(place.scenario(act))
    return [ExpectedRun(run_dir, (ENDS[act],))]


def behave_oddly(place: Place) -> list[ExpectedRun]:
    act = place.chance.choice(HARMLESS)
    run_dir = place.begin(place.scenario(act, ARMS))
    return [ExpectedRun(run_dir, ("succeeded",))]


def leave_processes(place: Place) -> list[ExpectedRun]:
    """Start processes, then end or be killed: the processes end as well."""
    leaves = place.chance.choice(LEAVES)
    if place.chance.random() < 0.5:
        run_dir = place.begin(place.scenario(leaves))
        return [ExpectedRun(run_dir, ("succeeded",))]
    run_dir = place.begin(place.scenario(f"{leaves}\nos.kill(os.getpid(), signal.SIGKILL)"))
    return [ExpectedRun(run_dir, ("killed",))]


def go_on_for_ever(place: Place) -> list[ExpectedRun]:
    endless = place.chance.choice(ENDLESS)
    run_dir = place.begin(place.scenario(f"{HOLDS}\n{endless}"))
    # The gate tells that it has started. A reader would never reach the end of its record.
    place.wait_at_gate(run_dir)
    place.open_gate()
    options = place.chance.choice([(), ("--now",)])
    view("stop", run_dir.name, *options)
    return [ExpectedRun(run_dir, ("stopped",))]


def time_out(place: Place) -> list[ExpectedRun]:
    run_dir = place.begin(place.scenario("time.sleep(600)"), "--timeout", "1")
    return [ExpectedRun(run_dir, ("failed",))]


def repeat(place: Place) -> list[ExpectedRun]:
    """Run two repeats, each of which may fail."""
    act = place.chance.choice(["pass", "if os.getpid() % 2: os._exit(1)", "os._exit(1)"])
    run_dir = place.begin(place.scenario(act), "--repeat", "2")
    return [ExpectedRun(run_dir, ("succeeded", "failed"))]


FAULTS: tuple[Callable[[Place], list[ExpectedRun]], ...] = (
    end_by_itself, behave_oddly, leave_processes, go_on_for_ever, time_out, repeat,
)  # fmt: skip
