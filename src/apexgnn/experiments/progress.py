"""How far a long run has come, and how long it will take: a line per piece of work, plain where nobody watches.

The time left is the work that is left, in graphs explained and measured, at the pace of what was computed so far;
what the store already had counts as done at once.
"""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic


class Progress:
    """Counts steps of known weight and tells the time left.

    >>> told = []
    >>> progress = Progress({"a": 2.0, "b": 1.0}, told.append)
    >>> progress.done("a"), progress.done("b")
    (None, None)
    >>> [line.split(",")[0] for line in told]
    ['b: 100 % done']
    """

    def __init__(self, weights: dict[str, float], report: Callable[[str], None]) -> None:
        self._weights, self._report = dict(weights), report
        self._total = sum(weights.values())
        self._start = self._last = monotonic()
        self._finished, self._paid, self._spent = 0.0, 0.0, 0.0

    def done(self, name: str) -> None:
        """One step is finished; one that took no time was there already, says nothing of the pace and is not told."""
        now, weight = monotonic(), self._weights.pop(name, 0.0)
        took, self._last = now - self._last, now
        self._finished += weight
        if took > 0.05:
            self._paid += weight
            self._spent += took
        left = self._total - self._finished
        if left and took <= 0.05:
            return
        rest = f", about {_clock(left * self._spent / self._paid)} left" if self._paid and left else ""
        self._report(
            f"{name}: {100 * self._finished / self._total:.0f} % done, {_clock(now - self._start)} so far{rest}"
        )


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02d} s" if minutes else f"{rest} s"
