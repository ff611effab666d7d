"""Find out whether a claim about a ratio can be judged at all.

Every worker checks its claims, so this module imports nothing that is slow to load.
"""

import math

from tuilab.record import events
from tuilab.text.display import show


def find_flaw(claim: events.ClaimDeclared) -> str:
    """Return why a claim cannot be judged whatever is measured, or an empty string."""
    if claim.op not in ("at_least", "at_most"):
        wrong = f"a ratio is claimed with at_least= or at_most=, not {claim.op}="
        return f"{wrong}: no measured ratio is exact"
    if claim.over == claim.under:
        return f"a ratio needs two different arms; both are {show(claim.over, 60)}"
    if not 0 < claim.bound < math.inf:
        return f"the claimed bound of a ratio has to be above 0 and finite, not {claim.bound:g}"
    if not 0 <= claim.margin < math.inf:
        return f"the margin of a ratio has to be 0 or more and finite, not {claim.margin:g}"
    if not 0.5 < claim.confidence < 1:
        return f"the confidence has to be between 0.5 and 1, not {claim.confidence:g}"
    return ""
