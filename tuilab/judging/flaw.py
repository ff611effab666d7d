"""What is wrong with a claim about a ratio in itself; free of slow imports, as every worker asks it."""

import math

from tuilab.record import events
from tuilab.text import show


def flaw(claim: events.ClaimDeclared) -> str:
    """Return why a claim about a ratio cannot be judged whatever is measured, or nothing."""
    if claim.op not in ("at_least", "at_most"):
        return f"a ratio is claimed with at_least= or at_most=, not {claim.op}=: no measured ratio is exact"
    if claim.over == claim.under:
        return f"a ratio needs two different arms; both are {show(claim.over, 60)}"
    if not 0 < claim.bound < math.inf:
        return f"the claimed bound of a ratio has to be above 0 and finite, not {claim.bound:g}"
    if not 0 <= claim.margin < math.inf:
        return f"the margin of a ratio has to be 0 or more and finite, not {claim.margin:g}"
    return "" if 0.5 < claim.confidence < 1 else f"the confidence has to be between 0.5 and 1, not {claim.confidence:g}"
