"""More about one run than its line in a list has room for."""

from collections import Counter

from textual.content import Content

from tuilab.ledger import Entry
from tuilab.reports.plain import size
from tuilab.store import short_id
from tuilab.tui.marks import mark, plain, verdict_words
from tuilab.tui.moments import exactly
from tuilab.tui.widgets.runline import changed_words


def details(entry: Entry, *, is_long: bool) -> list[Content]:
    """Return more about the run that the cursor is on: its title, its facts, how it ended."""
    facts = [exactly(entry.started_s), short_id(entry.run)]
    facts += [size(entry.bytes_total)] if entry.bytes_total is not None else []
    about = Content.assemble(("  ".join(facts), "dim"), "  ", plain(changed_words(entry), 600, "$text-secondary"))
    lines = [plain(entry.title or entry.scenario, 200, "bold"), about]
    if entry.state == "lost":
        lines.append(plain("lost: its supervisor is gone; what it did after its last record is not known", None, "$text-error"))
    elif entry.reason:
        lines.append(plain(f"{entry.state}: {entry.reason}", 400, "$text-warning"))
    elif not is_long:
        counts = Counter(verdict for _, verdict in entry.claims if verdict)
        lines.append(Content("   ").join([Content.assemble(verdict_words(v), f" {count}") for v, count in counts.items()]))
    claims = [Content.assemble(mark(verdict), " ", plain(text, 300)) for text, verdict in entry.claims]
    return [*lines, *(claims if is_long else [])]
