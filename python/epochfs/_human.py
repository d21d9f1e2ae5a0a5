"""Numbers for people, and a line of progress on stderr: as the commands in C write them."""

from __future__ import annotations

import collections
import sys
import time

BAR = 24              # characters
REWRITE, EACH = 0.2, 1.0  # seconds between two lines: on a terminal, elsewhere
SAMPLES = 11          # of the rate, a second apart


def _scaled(value: int, step: float, units: str, end: str) -> str:
    v = value / step
    if v < 1:
        return f"{value} B{end}"
    names = units.split()
    while v >= step - 0.5 and len(names) > 1:
        v, names = v / step, names[1:]
    return f"{v:.{1 if v < 99.95 else 0}f} {names[0]}{end}"


def bytes_of(value: int) -> str:
    """As in "1.5 MiB"."""
    return _scaled(value, 1024, "KiB MiB GiB TiB PiB EiB", "")


def seconds_of(s: int) -> str:
    """As in "3 min 4 s"."""
    if s < 60:
        return f"{s} s"
    if s < 3600:
        return f"{s // 60} min {s % 60} s"
    return f"{s // 3600} h {s // 60 % 60} min" if s < 86400 else f"{s // 86400} d {s // 3600 % 24} h"


def percent_of(done: int, total: int) -> int:
    """100 only where all is done."""
    return 100 if done >= total else min(99, int(done / total * 100))


class Progress:
    """Lines on stderr: on a terminal one that is written again, elsewhere one per second if asked for."""

    def __init__(self, what: str, asked_for: bool) -> None:
        self._what, self._rewrites = what, sys.stderr.isatty()
        self._shown = asked_for or self._rewrites
        self._seen: collections.deque[tuple[float, int]] = collections.deque(maxlen=SAMPLES)
        self._last = float("-inf")

    def show(self, done: int, total: int, ends: bool = False) -> None:
        """done of total bytes; ends: this is the last line."""
        now = time.monotonic()
        if not self._shown or (not ends and now - self._last < (REWRITE if self._rewrites else EACH)):
            return
        self._last = now
        if not self._seen or now - self._seen[-1][0] >= 1:
            self._seen.append((now, done))
        since, before = now - self._seen[0][0], self._seen[0][1]
        rate = int((done - before) / since) if since >= 0.5 and done > before else 0
        percent = percent_of(done, total)
        line = f"{percent:3} %  {self._what} {bytes_of(done)} of {bytes_of(total)}"
        if rate:
            line += ", " + _scaled(rate, 1000, "kB MB GB TB PB EB", "/s")
        if rate and done < total:
            line += f", {seconds_of(-(-(total - done) // rate))} left"
        if self._rewrites:
            line = f"\r[{'#' * (percent * BAR // 100):{BAR}}] {line}\033[K"
        sys.stderr.write(line + ("" if self._rewrites and not ends else "\n"))
        sys.stderr.flush()
