"""What the Run screen tells above its panes, which run that is and how far, and below them, how new what they show is."""

from pathlib import Path

from textual.content import Content

from tuilab.record.told import device_notices, gpu_errors, progress_words, repeat_words
from tuilab.runs import store
from tuilab.text import show
from tuilab.tui.looks.marks import plain, state_words
from tuilab.tui.state.following import Following
from tuilab.tui.state.playback import Playback
from tuilab.words import clock

_OLD_S = 2.0  # data older than this is told to be


def name_of(run_dir: Path, following: Following | Playback) -> Content:
    """Return which run that is, its state, and the stage that it is in or the reason why it ended."""
    summary = following.summary
    run = summary.run
    name = f"{show(run.topic)}/{show(run.scenario)}" if run else "?"
    stage = show(summary.stages[-1].name, 40) if summary.stages and not following.is_over else ""
    id = Content.styled(f" · {store.short_id(run_dir.name)}  ", "$text-muted")
    notice = "".join(f"{words}  " for words in device_notices(summary)[:1])
    error = "".join(f"{words}  " for words in gpu_errors(summary)[-1:])  # before all that may not fit
    left = Content.assemble(
        (name, "bold"), id, state_words(following.state), "  ", (error, "$text-error"), (notice, "$text-warning"), stage
    )
    if following.is_over and summary.reason:
        left = Content.assemble(left, plain(summary.reason, 200, "$text-muted"))
    if summary.damage.is_any:
        left = Content.assemble(left, ("  the record is not whole", "$text-error"))
    return left


def progress_of(following: Following | Playback) -> Content:
    """Return how far a run is."""
    summary = following.summary
    if not following.is_caught_up:
        return Content.styled(f"reading, {summary.records} records", "$text-warning")
    parts = [] if following.is_over else [progress_words(summary)]
    parts.append(clock(following.elapsed_s))
    parts += [f"of {clock(following.whole_s)}"] if isinstance(following, Playback) else []
    parts.append(repeat_words(summary))
    return Content("  ".join(part for part in parts if part))


def note_of(following: Following | Playback, cost: str, *, is_frozen: bool, is_link_slow: bool) -> Content:
    """Return how a run is shown: frozen, played again, or as it happens with what is old about it and what it costs."""
    if is_frozen:
        return Content.styled("frozen", "bold $text-warning")
    if isinstance(following, Playback):
        word = "end" if following.is_over else "playing" if following.is_playing else "paused"
        return Content.styled(f"{word}, speed {following.speed:.3g}", "$text-accent")
    if following.is_over:
        return Content("")
    old = f"data {following.age_s:.0f} s old  " if following.age_s > _OLD_S else ""
    slow = "slow link, drawing less  " if is_link_slow else ""
    return Content.assemble((old + slow, "$text-warning"), (cost, "$text-muted"))
