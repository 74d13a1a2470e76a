"""Times of contenders that take turns.

A machine is never quite the same from one minute to the next, so nobody is timed alone: contenders are called in
turn, round after round, and the order shifts from round to round. A sample is as many calls in a row as last
`SHORTEST` seconds together, timed as a whole, after one call that is not timed, for what is fast is fast only when
its data are at hand, and that holds for all alike. Slow contenders take part in fewer rounds, spread evenly.
Median and minimum are of the samples' means per call. A sample during which others used the processors is taken
again (see `calm`), as long as patience lasts.
"""

from __future__ import annotations

import gc
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from statistics import median
from time import perf_counter
from typing import Any

from apexgnn.benchmark.calm import Watch
from apexgnn.benchmark.part import Settings

SHORTEST = 0.03
NOISY = 1.5  # a median above this multiple of the minimum is pointed out
PATIENCE = 20.0  # seconds that may be spent on waiting for others to finish
SLOW = 0.5  # what takes longer needs no second call to warm up

Call = Callable[[], Any]


@dataclass(frozen=True, slots=True)
class Times:
    """Seconds per call.

    Attributes:
        median, minimum: of the samples.
        samples: how many there are.
        calls: how many calls make a sample.
        disturbed: how many of the samples others disturbed, after patience had run out.
    """

    median: float
    minimum: float
    samples: int
    calls: int
    disturbed: int

    @property
    def noisy(self) -> bool:
        """Whether the samples disagree so much that something else was running."""
        return self.median > NOISY * self.minimum

    @property
    def ms(self) -> str:
        """Milliseconds, median (minimum), with ~ before what is noisy.

        >>> Times(median=0.002, minimum=0.001, samples=3, calls=1, disturbed=0).ms
        '~2.00 (1.00)'
        """
        return f"{'~' * self.noisy}{1e3 * self.median:.2f} ({1e3 * self.minimum:.2f})"


def timed(
    contenders: Mapping[str, Call], settings: Settings, *, seconds: float, least: int = 3, most: int = 60
) -> dict[str, Times]:
    """Times of all contenders, as thoroughly as the settings ask for; `seconds` is for each of them."""
    if settings.quick:
        return interleaved(contenders, seconds=seconds / 50, least=1, most=3)
    return interleaved(contenders, seconds=seconds, least=least, most=most, patience=PATIENCE)


def interleaved(
    contenders: Mapping[str, Call], *, seconds: float, least: int = 3, most: int = 60, patience: float = 0.0
) -> dict[str, Times]:
    """Times of all contenders.

    Args:
        contenders: what to call, by name.
        seconds: about how long each may take in all.
        least, most: samples of each.
        patience: how many seconds may be spent on waiting for others to finish.

    >>> times = interleaved({"a": lambda: sum(range(10)), "b": lambda: None}, seconds=0.05, most=3)
    >>> list(times), times["a"].samples, times["a"].minimum <= times["a"].median
    (['a', 'b'], 3, True)
    """
    watch = Watch(patience=patience)
    watch.wait()
    plans = {name: _plan(call, seconds=seconds, least=least, most=most) for name, call in contenders.items()}
    rounds = max(samples for _, samples in plans.values())
    taken: dict[str, list[float]] = {name: [] for name in contenders}
    bad = dict.fromkeys(contenders, 0)
    names = list(contenders)
    for turn in range(rounds):
        shift = turn % len(names)
        for name in names[shift:] + names[:shift]:
            calls, samples = plans[name]
            if (turn + 1) * samples // rounds > turn * samples // rounds:
                value, disturbed = _undisturbed(contenders[name], calls, watch)
                taken[name].append(value)
                bad[name] += disturbed
    return {
        name: Times(median(values), min(values), len(values), plans[name][0], bad[name])
        for name, values in taken.items()
    }


def _plan(call: Call, *, seconds: float, least: int, most: int) -> tuple[int, int]:
    """Calls per sample, and samples: one call to warm up, if it is short, and one to see how long it takes."""
    once = _sample(call, 1)
    if once < SLOW:
        once = _sample(call, 1)
    calls = max(1, math.ceil(SHORTEST / once))
    return calls, min(most, max(least, int(seconds / (once * (calls + 1)))))


def _undisturbed(call: Call, calls: int, watch: Watch) -> tuple[float, bool]:
    """A sample, taken until nobody disturbed it or patience has run out; and whether somebody did."""
    while True:
        watch.restart()
        value = _sample(call, calls)
        if not watch.disturbed():
            return value, False
        if not watch.wait():
            return value, True


def _sample(call: Call, calls: int) -> float:
    """Mean seconds of so many calls in a row; what takes long is warm by itself."""
    if calls > 1:
        call()
    collects = gc.isenabled()
    gc.disable()
    try:
        start = perf_counter()
        for _ in range(calls):
            call()
        return (perf_counter() - start) / calls
    finally:
        if collects:
            gc.enable()
