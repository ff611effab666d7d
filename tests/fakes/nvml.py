"""A fake NVIDIA driver: build `nvml.c` as libnvidia-ml.so.1, and switch its faults by a file."""

import os
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.fakes.compiled import compile_library


@dataclass(frozen=True)
class FakeNvml:
    """The library's folder and the file that it reads on every call."""

    folder: Path
    switches: Path

    @property
    def environment(self) -> dict[str, str]:
        """The environment of a process that shall see the fake driver."""
        variables = {
            "LD_LIBRARY_PATH": str(self.folder),
            "TUILAB_FAKE_NVML": str(self.switches),
            "BOX": str(self.box),
        }
        return {**os.environ, **variables}

    @property
    def box(self) -> Path:
        """The folder that probes use as `/`. Its /proc names the pid namespace of a process."""
        return self.switches.with_name("box")

    @property
    def log(self) -> Path:
        """Where the questions are noted if it is switched on: `log={nvml.log}`."""
        return self.switches.with_suffix(".log")

    def set_namespace(self, name: str = "pid:[4026531836]") -> None:
        """Put processes that take `box` for `/` into a container, or out of one."""
        link = self.box / "proc/self/ns/pid"
        link.parent.mkdir(parents=True, exist_ok=True)
        link.unlink(missing_ok=True)
        link.symlink_to(name)

    def set(self, *lines: str) -> None:
        """Exchange the switches at once, for processes that run too."""
        new = self.switches.with_suffix(".new")
        new.write_text("".join(f"{line}\n" for line in lines))
        new.replace(self.switches)


@pytest.fixture(scope="session")
def nvml_library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the library once; return its folder."""
    folder = tmp_path_factory.mktemp("nvml")
    source = Path(__file__).with_name("nvml.c")
    library = folder / "libnvidia-ml.so.1"
    compile_library(source, library, lack="the fake NVIDIA driver cannot be built")
    return folder


@pytest.fixture
def nvml(nvml_library: Path, tmp_path: Path) -> FakeNvml:
    """A fake driver with one healthy GPU."""
    fake = FakeNvml(nvml_library, tmp_path / "nvml.txt")
    fake.set("gpus=1")
    fake.set_namespace()
    return fake
