"""Times in words: ages and durations."""

import time

_MINUTE, _HOUR, _DAY = 60, 3600, 86400


def ago(then_s: float | None, now_s: float) -> str:
    """Return how long ago a moment was, in at most ten characters; from 30 days on, its date."""
    if then_s is None:
        return "n/a"
    age_s = now_s - then_s
    if age_s < -_MINUTE:
        return "in future"  # this clock was set back, or that of another machine is ahead
    if age_s < _MINUTE:
        return "just now"
    if age_s < _HOUR:
        return f"{age_s // _MINUTE:.0f} min ago"
    if age_s < _DAY:
        return f"{age_s // _HOUR:.0f} h ago"
    if age_s < 2 * _DAY:
        return "yesterday"
    if age_s < 30 * _DAY:
        return f"{age_s // _DAY:.0f} d ago"
    return time.strftime("%Y-%m-%d", time.localtime(then_s))


def lasting(span_s: float | None) -> str:
    """Return a duration in at most seven characters."""
    if span_s is None:
        return "n/a"
    if span_s < 99.95:
        return f"{span_s:.1f} s"
    if span_s < 10 * _MINUTE:
        return f"{span_s / _MINUTE:.1f} min"
    if span_s < 100 * _MINUTE:
        return f"{span_s / _MINUTE:.0f} min"
    return f"{span_s / _HOUR:.1f} h"
