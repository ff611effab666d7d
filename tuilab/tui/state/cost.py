"""What the screens themselves cost: processor time and bytes sent, over the last few seconds."""

import time

_OVER_S = 3.0


class Cost:
    """Asked now and then, it says what was spent since it last counted."""

    def __init__(self) -> None:
        self._since = time.monotonic()
        self._cpu_s = time.process_time()
        self._bytes = 0
        self._words: tuple[str, ...] = ()

    def words(self, bytes_sent: int) -> tuple[str, ...]:
        """Return the cost in words, then in fewer; they change every few seconds."""
        now = time.monotonic()
        if now - self._since > _OVER_S:
            cpu_s = time.process_time()
            share = f"{100 * (cpu_s - self._cpu_s) / (now - self._since):.0f} %"
            rate = f"{(bytes_sent - self._bytes) / (now - self._since) / 1000:.1f} kB/s"
            self._words = f"tuilab itself: {share} of a core, {rate} sent", f"tuilab {share}, {rate}"
            self._since, self._cpu_s, self._bytes = now, cpu_s, bytes_sent
        return self._words
