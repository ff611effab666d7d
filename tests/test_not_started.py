"""A run that cannot be recorded is not started, and says so once."""

import errno
import os
from pathlib import Path

import pytest

from tuilab.engine import supervisor
from tuilab.engine.messages import RunOrder
from tuilab.errors import CannotRecord
from tuilab.runs import queue


def test_full_disk_is_named_once_and_nothing_is_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    source = tmp_path / "probe.py"
    source.write_text("def run(lab): ...\n")
    order = RunOrder(scenario="probe", topic="t", title="A probe", path=str(source), params={}, root=str(tmp_path / "runs"))
    monkeypatch.setattr(supervisor, "take_ticket", lambda *_: queue._tell_problem(tmp_path, fail))  # noqa: SLF001

    with pytest.raises(CannotRecord) as raised:
        supervisor._begin(order, None)  # noqa: SLF001

    words = f"cannot write to {tmp_path / 'runs'}: No space left on device; name another folder with --root DIR or TUILAB_ROOT"
    assert str(raised.value) == f"nothing was started: {words}"
    assert [*(tmp_path / "runs").iterdir()] == []
