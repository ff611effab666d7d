"""What the screens themselves cost: processor time and bytes sent, over the last few seconds."""

import time

_OVER_S = 3.0


class Cost:
    """Asked now and then, it says what was spent since it last counted."""

    def __init__(self) -> None:
        self._since = time.monotonic()
        self._cpu_s = time.process_time()
        self._bytes = 0
        self._words = ""

    def words(self, bytes_sent: int) -> str:
        """Return the cost in words; they change every few seconds."""
        now = time.monotonic()
        if now - self._since > _OVER_S:
            cpu_s = time.process_time()
            share = (cpu_s - self._cpu_s) / (now - self._since)
            rate = (bytes_sent - self._bytes) / (now - self._since) / 1000
            self._words = f"ui {share:.0%} {rate:.1f} kB/s"
            self._since, self._cpu_s, self._bytes = now, cpu_s, bytes_sent
        return self._words
