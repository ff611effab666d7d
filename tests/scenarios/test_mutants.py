"""A claim that cannot fail claims nothing: where no parameter refutes it, a mistake in the experiment does, and only it.

A mistake is one replaced text in a copy of the lesson, which is run in this process with the values of `--quick`: nothing here
is timed. A claim that the box cannot test, for want of a package, is not asked for.
"""

from importlib import import_module
from pathlib import Path

import pytest

from tests.lessons import claimed, source_of
from tests.scenarios.mistakes.mistake import Mistake
from tuilab.catalogue import catalog
from tuilab.record.exact_claims import holds

TOPICS = sorted(
    {path.stem for path in (Path(__file__).parent / "mistakes").glob("*.py")}
    - {"__init__", "mistake"}
)
MISTAKES: list[Mistake] = [
    one for topic in TOPICS for one in import_module(f"tests.scenarios.mistakes.{topic}").MISTAKES
]
QUICK = {
    found.id: {one.name: one.quick for one in found.params if one.quick is not None}
    for found in catalog.load()
}


@pytest.mark.lessons
@pytest.mark.parametrize(
    "mistake", MISTAKES, ids=[f"{mistake.lesson} {mistake.refutes}" for mistake in MISTAKES]
)
def test_a_mistake_in_the_experiment_refutes_the_claims_that_tell_of_it(
    tmp_path: Path, mistake: Mistake
) -> None:
    source = source_of(mistake.lesson)
    assert mistake.right in source

    claims = claimed(
        tmp_path, source.replace(mistake.right, mistake.wrong), **QUICK[mistake.lesson]
    )

    assert {key for key, claim in claims.items() if not holds(claim)} == set(
        mistake.refutes.split(", ")
    ) & claims.keys()
