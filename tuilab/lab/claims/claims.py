"""The claims of one worker as they are made: found in the lesson, recorded, and awaited where arms have still to race."""

import warnings
from collections.abc import Callable, Mapping, Sequence, Set
from pathlib import Path
from typing import Any

from tuilab.catalogue.scenario import Stated, Value
from tuilab.catalogue.source import read_stated
from tuilab.catalogue.stated import SECTION, is_key, named
from tuilab.lab.claims.claimed import (
    ADVISE_INSTEAD,
    About,
    Bounds,
    Extras,
    Record,
    advice,
    answer_of,
    exact_claim,
    not_testable,
    other_values,
    ratio_claim,
    refuse,
)
from tuilab.lab.claims.raced_values import setting_raced
from tuilab.lab.given import checked, words
from tuilab.lab.once import Once
from tuilab.probes.settings import read_setting
from tuilab.record import events

_CALLER = 4  # frames from the warning up to the scenario: what looks a claim up, what makes it, the lab


class Claims:
    """What the lesson states, what was claimed, and which arms have to race for it; `raced` are those that did."""

    def __init__(
        self, source: Path, append: Callable[[events.Event], object], raced: Set[str], once: Once,
        measure_cores: Callable[[int], object], params: Mapping[str, Value],
    ) -> None:  # fmt: skip
        self._source = source
        self._append = append
        self._raced = raced
        self._once = once
        self._measure_cores = measure_cores
        self._params = params  # the values of this run, by name
        self._stated: Sequence[Stated] | None = None  # read with the first claim
        self._keys: set[str] = set()
        self._awaited: dict[str, events.ClaimDeclared] = {}  # by claim: whose arms have still to race

    def claim(
        self, key: str, got: Any, bounds: Bounds, *, tolerance: float, unit: str, lacks: str, at: Any,
        extras: Extras, others: Mapping[str, Any],
    ) -> None:  # fmt: skip
        """Claim something about a value; of `others` only those of the old form, in which a ratio was claimed here, too."""
        self._tell_of_old_advice(extras)
        if "ratio" in others and got is bounds.equals is bounds.between is None and not (tolerance or unit):
            about = self._about(key, "claim_ratio", is_old=True)
            low, high = bounds.at_least, bounds.at_most
            return self._claim_ratio(about, at_least=low, at_most=high, lacks=lacks, at=at, extras=extras, **others)
        refuse(others)
        about = self._about(key, "claim")
        lacks = other_values(at, self._params) or lacks
        return self._add(exact_claim(about, got, bounds, tolerance=tolerance, unit=unit, lacks=lacks), extras)

    def claim_ratio(self, key: str, ratio: str, **given: Any) -> None:
        """Claim something about two arms that have not raced."""
        self._tell_of_old_advice(given["extras"])
        self._claim_ratio(self._about(key, "claim_ratio"), ratio, **given)

    def advise(self, name: str, values: Mapping[Any, Any], **given: Any) -> None:
        """Hold values of a setting against each other; those that are arms have not raced."""
        record = setting_raced(name, values, self._raced, **given)
        if record.candidates[0].arm:
            self._once.refuse("advise with arms")
        self._append(record)
        if record.cores:
            self._measure_cores(record.cores)

    def give_up(self, arms: Set[str], lacks: str) -> None:
        """Record of the claims about arms that will not race that they cannot be tested here."""
        for declared in [declared for declared in self._awaited.values() if arms & {declared.over, declared.under}]:
            about = About(declared.key, declared.text, declared.is_old, declared.is_once)
            self._append(not_testable(about, lacks))
            del self._awaited[declared.claim_id]

    def check_raced(self) -> None:
        """Raise ValueError for a claim about an arm that never raced."""
        for claim, declared in self._awaited.items():
            if missing := {declared.over, declared.under} - self._raced:
                others = ", ".join(sorted(self._raced)) or "none"
                raise ValueError(
                    f"“{claim}” names {' and '.join(sorted(missing))}, which no lab.race has as an arm; raced arms: {others}"
                )

    @staticmethod
    def _tell_of_old_advice(extras: Extras) -> None:
        if words("advises", extras.advises):
            warnings.warn(ADVISE_INSTEAD, FutureWarning, stacklevel=_CALLER)

    def _about(self, key: str, method: str, *, is_old: bool = False) -> About:
        """Return which claim a call is about; tell at its line what to write where it is of the old form."""
        found = self._find(key)
        about = About(*found, is_old or found.key != key, self._once.is_on)
        if about.is_old:
            warnings.warn(advice(about, method), FutureWarning, stacklevel=_CALLER)
        return about

    def _find(self, key: str) -> Stated:
        """Return the bullet that a call names; ValueError where none has its key, or it was claimed before."""
        if not words("key", key, events.CLAIM_LIMIT):
            raise ValueError("key takes the key of a bullet, not an empty text")
        if self._stated is None:
            self._stated = read_stated(self._source)
        found, keys = named(key, self._stated), [claim.key for claim in self._stated if claim.key]
        if found is None and keys and is_key(key):
            raise ValueError(f"no bullet under {SECTION} has the key [{key}]; the keys are {', '.join(keys)}")
        found = found or Stated("", key)
        if found.key in self._keys:
            raise ValueError(f"the key [{found.key}] is claimed twice; make each claim once in a run")
        return found

    def _claim_ratio(
        self, about: About, ratio: str, *, margin: float = 0.03, cores: int = 0, extras: Extras, lacks: str,
        at: Any, **given: Any,
    ) -> None:  # fmt: skip
        self._once.refuse("claim_ratio")
        lacks = other_values(at, self._params) or lacks
        record = ratio_claim(about, ratio, self._raced, margin=margin, cores=cores, lacks=lacks, **given)
        self._add(record, extras)
        if isinstance(record, events.ClaimDeclared) and record.cores:
            self._measure_cores(record.cores)

    def _add(self, record: Record, extras: Extras) -> None:
        """Append the record of a claim, and before it the setting that the claim advises and the question that it answers."""
        if words("advises", extras.advises):
            setting = "=".join(read_setting(extras.advises))
            self._append(checked(events.SettingAdvised(key=record.key, text=record.text, setting=setting)))
        if extras.answers is not None:
            answer = answer_of(record, extras.answers)
            self._append(checked(events.QuestionAnswered(key=record.key, text=record.text, value=answer)))
        self._append(record)
        if record.key:
            self._keys.add(record.key)
        if isinstance(record, events.ClaimDeclared):
            self._awaited[record.claim_id] = record
