"""What is wrong with a claim about a ratio in itself; free of slow imports, as every worker asks it."""

import math

from tuilab.record import events
from tuilab.text import show


def flaw(claim: events.ClaimDeclared) -> str:
    """Return why a claim about a ratio cannot be judged whatever is measured, or nothing."""
    if claim.op not in ("at_least", "at_most"):
        return f"a ratio is claimed with at_least= or at_most=, not {claim.op}=: no measured ratio is exact"
    if claim.over == claim.under:
        return f"a ratio takes two arms; both are {show(claim.over, 60)}"
    if not 0 < claim.bound < math.inf:
        return f"a ratio is above zero and finite; the claimed bound is {claim.bound:g}"
    if not 0 <= claim.margin < math.inf:
        return f"a margin is zero or more; the claimed one is {claim.margin:g}"
    return "" if 0.5 < claim.confidence < 1 else f"a confidence is between 0.5 and 1; the claimed one is {claim.confidence:g}"
