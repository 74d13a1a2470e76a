"""One pass of polynomials through a model: what is wanted of it, and what it leaves behind."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from weakref import WeakValueDictionary

from torch import Tensor

from apexgnn.aggregation import Bags
from apexgnn.errors import NotPolynomialError
from apexgnn.path.resolution import Grid


@dataclass(slots=True, eq=False)
class Path:
    """One pass along the path: the points where values are wanted, and where in the model it is now.

    What row sums need is sorted once a pass and kept in `sorted`; new zeros, which need not be added, in `zeros`.
    How many entries were made of each degree is counted in `entries`, from which the memory of a pass at more
    points can be told before it is run.

    >>> from apexgnn.path import lobatto
    >>> Path(Grid(lobatto(4))).refuse("relu", "is piecewise").operation
    'relu'
    """

    grid: Grid
    where: Callable[[], str] = lambda: ""
    refusal: NotPolynomialError | None = None
    sorted: list[tuple[Tensor, int, Bags]] = field(default_factory=list)
    entries: Counter[int] = field(default_factory=Counter)
    zeros: WeakValueDictionary[int, Tensor] = field(default_factory=WeakValueDictionary)

    def blank(self, fresh: Tensor) -> Tensor:
        """Note that a new tensor holds zeros."""
        self.zeros[id(fresh)] = fresh
        return fresh

    def is_blank(self, value: Tensor) -> bool:
        """Whether these are new zeros into which nothing has been written yet."""
        return self.zeros.get(id(value)) is value and value._version == 0

    def refuse(self, operation: str, why: str) -> NotPolynomialError:
        """Write the refusal down, and return it to be raised."""
        error = NotPolynomialError(operation, module=self.where(), reason=why)
        self.refusal = self.refusal or error
        return error
