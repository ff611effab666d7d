"""The claims of one worker: found in the lesson, recorded, and checked for missing races."""

from collections.abc import Callable, Mapping, Set
from pathlib import Path
from typing import Any

from tuilab.catalogue.scenario import StatedClaim, Value
from tuilab.catalogue.source import read_stated_claims
from tuilab.catalogue.stated_claims import why_unknown
from tuilab.lab.arguments import checked, words
from tuilab.lab.claims.claimed import (
    About,
    Bounds,
    Record,
    answer_of,
    exact_claim,
    not_testable,
    other_values,
    ratio_claim,
)
from tuilab.lab.claims.raced_values import setting_raced
from tuilab.lab.first_repeat import Once
from tuilab.record import events


class Claims:
    """The bullets of the lesson, the claims made, and those whose arms must still race.

    An arm is one of the functions that a race times against each other. A bullet of the lesson
    states a claim and its key.
    """

    def __init__(
        self,
        source: Path,
        append: Callable[[events.Event], object],
        raced: Set[str],
        once: Once,
        measure_cores: Callable[[int], object],
        params: Mapping[str, Value],
    ) -> None:
        self._source = source
        self._append = append
        self._raced = raced
        self._once = once
        self._measure_cores = measure_cores
        self._params = params  # the values of this run, by name
        self._stated: dict[str, StatedClaim] = {}  # bullets by key, read at the first claim
        self._has_read_stated = False
        self._keys: set[str] = set()
        self._awaited: dict[str, events.ClaimDeclared] = {}  # by claim: the arms must still race

    def claim(
        self,
        key: str,
        got: Any,
        bounds: Bounds,
        *,
        tolerance: float,
        unit: str,
        lacks: str,
        at: Any,
        answers: float | None,
    ) -> None:
        """Record a claim about a value; raise TypeError or ValueError if it cannot be made.

        With values in `at` that the run does not have, or with `lacks`, it is recorded as not
        testable.
        """
        about = self._about(key)
        lacks = other_values(at, self._params) or lacks
        record = exact_claim(about, got, bounds, tolerance=tolerance, unit=unit, lacks=lacks)
        self._add(record, answers)

    def claim_ratio(
        self,
        key: str,
        ratio: str,
        *,
        margin: float,
        cores: int,
        lacks: str,
        at: Any,
        answers: float | None,
        **bounds: Any,
    ) -> None:
        """Record a claim about two arms that have not raced, which a race has to decide.

        Raises ValueError in a part that only the first repeat runs. If the claim needs several
        cores, this measures how many can be used at once.
        """
        about = self._about(key)
        self._once.refuse("claim_ratio")
        lacks = other_values(at, self._params) or lacks
        record = ratio_claim(
            about, ratio, self._raced, margin=margin, cores=cores, lacks=lacks, **bounds
        )
        self._add(record, answers)
        if isinstance(record, events.ClaimDeclared) and record.cores:
            self._measure_cores(record.cores)

    def advise(self, name: str, values: Mapping[Any, Any], **given: Any) -> None:
        """Record the values of a setting that are compared; arms must not have raced.

        Raises ValueError with arms in a part that only the first repeat runs.
        """
        record = setting_raced(name, values, self._raced, **given)
        if record.candidates[0].arm:
            self._once.refuse("advise with arms")
        self._append(record)
        if record.cores:
            self._measure_cores(record.cores)

    def give_up(self, arms: Set[str], lacks: str) -> None:
        """Record that claims about arms that will not race are not testable here.

        These claims do not wait for a race any more.
        """
        for claim_id, declared in list(self._awaited.items()):
            if arms & {declared.over, declared.under}:
                about = About(declared.key, declared.text, declared.is_once)
                self._append(not_testable(about, lacks))
                del self._awaited[claim_id]

    def check_raced(self) -> None:
        """Raise ValueError for a claim about an arm that never raced."""
        for claim, declared in self._awaited.items():
            missing = {declared.over, declared.under} - self._raced
            if missing:
                raced_names = ", ".join(sorted(self._raced)) or "none"
                raise ValueError(
                    f"“{claim}” names {' and '.join(sorted(missing))}, which no lab.race has as an"
                    f" arm; raced arms: {raced_names}"
                )

    def _about(self, key: str) -> About:
        """Return the claim with a key.

        Raise ValueError if no bullet has it, or it was claimed before.
        """
        if not words("key", key, events.CLAIM_LIMIT):
            raise ValueError("key takes the key of a bullet, not an empty text")
        if not self._has_read_stated:
            # Backwards, so that of two bullets with one key the first counts.
            for claim in reversed(read_stated_claims(self._source)):
                if claim.key:
                    self._stated[claim.key] = claim
            self._has_read_stated = True
        if key not in self._stated:
            raise ValueError(why_unknown(key, list(self._stated.values())))
        if key in self._keys:
            raise ValueError(f"the key [{key}] is claimed twice; make each claim once in a run")
        return About(key, self._stated[key].text, self._once.is_on)

    def _add(self, record: Record, answers: float | None) -> None:
        """Append the record of a claim, and before it the question that the claim answers.

        A claim about arms is awaited from now on: `check_raced` complains if they never race.
        """
        if answers is not None:
            answer = answer_of(record, answers)
            self._append(
                checked(events.QuestionAnswered(key=record.key, text=record.text, value=answer))
            )
        self._append(record)
        self._keys.add(record.key)
        if isinstance(record, events.ClaimDeclared):
            self._awaited[record.claim_id] = record
