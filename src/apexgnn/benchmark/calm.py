"""Whether anything else was running while a measurement was taken.

The kernel counts the processor time that everybody used, and what this process used itself; the difference is what
others took. A measurement is *disturbed* if they took more than a tenth of one processor. That is decided by the
machine and never by the result, so taking disturbed measurements again favours nobody. Where the kernel does not tell
(it is not Linux) everything counts as calm.
"""

from __future__ import annotations

import os
from pathlib import Path
from time import perf_counter, sleep

SHARE = 0.1  # of one processor
GRAIN = 0.02  # seconds: the kernel counts in hundredths, on every processor
WINDOW = 0.3  # seconds for which it must be calm before it is tried again


class Watch:
    """What others did since it was made; `patience` is how long it will wait for calm in all.

    >>> Watch(patience=0.0).others() >= 0
    True
    """

    def __init__(self, *, patience: float) -> None:
        self.patience, self.waited = patience, 0.0
        self.restart()

    def restart(self) -> None:
        """Count from now on."""
        self._start, self._everybody, self._own = perf_counter(), _everybody(), _own()

    def others(self) -> float:
        """Seconds of processor time that others used."""
        return max(0.0, (_everybody() - self._everybody) - (_own() - self._own))

    def disturbed(self) -> bool:
        """Whether they used so much that times are not to be trusted."""
        return self.others() > SHARE * (perf_counter() - self._start) + GRAIN

    def wait(self) -> bool:
        """Wait for calm; False when patience has run out."""
        while self.waited < self.patience:
            self.restart()
            sleep(WINDOW)
            self.waited += WINDOW
            if not self.disturbed():
                self.restart()
                return True
        self.restart()
        return False


def _own() -> float:
    return sum(os.times()[:2])


def _everybody() -> float:
    """user, nice, system, irq, softirq and steal of all processors; 0 where the kernel does not tell."""
    try:
        fields = Path("/proc/stat").read_text().split(maxsplit=9)
        ticks = [int(fields[k]) for k in (1, 2, 3, 6, 7, 8)]
    except (OSError, ValueError, IndexError):
        return 0.0
    return sum(ticks) / os.sysconf("SC_CLK_TCK")
