"""The claims of a run with what is known of each: the answer that the run was made for."""

from textual.content import Content

from tuilab.reports.plain import evidence
from tuilab.summary import Claim, RunSummary
from tuilab.tui.following import Following
from tuilab.tui.marks import mark, plain
from tuilab.tui.widgets.pane import TextPane, View


class ClaimsPane(TextPane):
    """One claim after another: its mark, its words, what was measured."""

    NAME = "claims"

    def __init__(self, prediction: str = "") -> None:
        super().__init__("Claims")
        self._prediction = prediction

    def show(self, run: Following, view: View) -> None:
        claims = list(run.summary.claims.values())
        done = sum(claim.verdict is not None for claim in claims)
        self.border_subtitle = Content(f"{done}/{len(claims)}") if claims else None
        lines = [line for claim in claims for line in self._lines(claim, run.summary)]
        if self._prediction:
            lines.append(Content.assemble(("you predicted ", "$text-muted"), plain(self._prediction, 40, "bold")))
        self.put(lines or [Content.styled("no claims yet", "$text-muted")])

    def _lines(self, claim: Claim, summary: RunSummary) -> list[Content]:
        found = claim.verdict.verdict if claim.verdict else ""
        first = Content.assemble(mark(found or "pending"), " ", plain(claim.text, 400))
        if claim.verdict and found not in ("SUPPORTED",):
            first = Content.assemble(first, "  ", plain(found.lower(), 40, "bold"))
        words = standing_words(claim, summary)
        return [first, Content.assemble("  ", plain(words, 600, "$text-muted"))] if words else [first]


def standing_words(claim: Claim, summary: RunSummary) -> str:
    """Return what is known of a claim in a phrase: the verdict's numbers, or what there is so far."""
    if claim.verdict is not None:
        return evidence(claim)
    if claim.needs:
        return f"not testable here: {claim.needs}"
    if claim.declared is not None:
        return f"claimed {claim.declared.op.replace('_', ' ')} {claim.declared.bound:g}; being measured"
    return ""
