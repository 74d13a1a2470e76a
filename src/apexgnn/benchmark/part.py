"""A part of the benchmark: what it measures, what it promises, and how it is shown."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from matplotlib.figure import Figure

Record = dict[str, Any]  # what a part measured, ready for JSON
Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Settings:
    """How a run is made.

    Attributes:
        threads: of torch.
        quick: small sizes and few repetitions: seconds instead of minutes, and numbers that mean little.
        seed: of weights and graphs.

    >>> Settings(quick=True).pick(60, 3)
    3
    """

    threads: int = 2
    quick: bool = False
    seed: int = 0

    def pick(self, full: Any, quick: Any) -> Any:
        """One value for a full run, another for a quick one."""
        return quick if self.quick else full


@dataclass(frozen=True, slots=True)
class Claim:
    """What is wanted of a measured number: at most, or at least, a bound.

    >>> Claim("gradients", 1.2, 1.8).met, Claim("times as fast", 4.0, 5.0, at_most=False).met
    (True, False)
    """

    what: str
    value: float
    bound: float
    at_most: bool = True
    unit: str = ""

    @property
    def met(self) -> bool:
        """Whether it is so."""
        return self.value <= self.bound if self.at_most else self.value >= self.bound

    def __str__(self) -> str:
        wanted = f"{'≤' if self.at_most else '≥'} {self.bound:g}{self.unit}"
        return f"{self.what} | {self.value:.3g}{self.unit} | {wanted} | {'met' if self.met else '**missed**'}"


@dataclass(frozen=True, slots=True)
class Part:
    """One part; each can be run by itself.

    Attributes:
        name: for the command line and the files.
        title: the heading.
        measure: takes the measurements.
        text: the tables and sentences, in Markdown.
        claims: what is wanted of the numbers.
        figure: the picture, if there is one.
    """

    name: str
    title: str
    measure: Callable[[Settings, Say], Record]
    text: Callable[[Record], str]
    claims: Callable[[Record], list[Claim]]
    figure: Callable[[Record], Figure] | None = None


def plural(count: int, what: str = "graph") -> str:
    """A number with its noun.

    >>> plural(1), plural(10_000)
    ('1 graph', '10,000 graphs')
    """
    return f"{count:,} {what}{'s' * (count != 1)}"


def table(header: list[str], rows: list[list[str]]) -> str:
    """A table in Markdown; all columns but the first lean to the right.

    >>> print(table(["n", "ms"], [["8", "1.5"]]))
    | n | ms |
    |:--|--:|
    | 8 | 1.5 |
    """
    lines = ["| " + " | ".join(row) + " |" for row in [header, *rows]]
    return "\n".join([lines[0], "|:--|" + "--:|" * (len(header) - 1), *lines[1:]])
