"""A judge that does not come: what a run is told to lack, and what it is not."""

from pathlib import Path

import pytest

from tests.engine import look
from tests.made_runs import started
from tuilab.engine import attendants
from tuilab.engine.attendants import Attendants
from tuilab.record.journal.writer import Writer


@pytest.mark.parametrize(
    ("is_look", "told"),
    [(True, {}), (False, {"verdicts": "cannot start the judge: no more processes"})],
)
def test_a_look_that_failed_leaves_no_word_of_verdicts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_look: bool, told: dict[str, str]
) -> None:
    """They are still to come."""

    def refuse(*_: object) -> None:
        raise OSError(11, "no more processes")

    monkeypatch.setattr(attendants, "spawn_judge", refuse)
    (tmp_path / "journal").mkdir()
    journal = Writer(tmp_path / "journal" / "supervisor.jsonl")
    journal.append(started())

    of_the_run = Attendants(tmp_path, journal, children=None)  # type: ignore[arg-type]
    was_judged = of_the_run.judge(print, is_look=is_look, is_called_off=lambda: False)

    assert not was_judged
    assert look(tmp_path).summary.unavailable == told
