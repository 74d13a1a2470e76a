"""Every error that a user of apexgnn can meet.

One wording for all of them: what was got, what was expected, where, and what to do about it.
All derive from `ApexError`; those that complain of an argument are also `ValueError`.

>>> raise InputError("x", got="3 NaN values", expected="finite features", fix="drop or impute those rows")
Traceback (most recent call last):
    ...
apexgnn.errors.InputError: x: got 3 NaN values; expected finite features. To fix: drop or impute those rows.
"""

from __future__ import annotations


class ApexError(Exception):
    """The root of all errors raised on purpose by apexgnn."""


class InputError(ApexError, ValueError):
    """An argument or a piece of data is not what it must be.

    Args:
        where: the argument, field, file or row that is wrong.
        got: what stands there.
        expected: what should.
        fix: what the user can do, where that is not obvious.
    """

    def __init__(self, where: str, *, got: str, expected: str, fix: str = "") -> None:
        self.where, self.got, self.expected, self.fix = where, got, expected, fix
        super().__init__(f"{where}: got {got}; expected {expected}." + (f" To fix: {fix}." if fix else ""))


class GraphError(InputError):
    """A graph is malformed: its features, edges, weights, batch vector or dtypes."""


class BaselineError(InputError):
    """A baseline has the wrong shape or is not finite."""


class TargetError(InputError):
    """A target class or a node index does not exist in the model's output."""


class CheckpointError(InputError):
    """A saved model is truncated, corrupted, from a later version, or not a model at all."""


class DataError(InputError):
    """A data set is missing, incomplete, or not the one that its checksum names."""


class MoleculeError(InputError):
    """A SMILES string cannot be turned into the graph that the model was trained on."""


class NotPolynomialError(ApexError, ValueError):
    """The model is not known to be polynomial in its node features, so no exact attribution exists.

    Args:
        operation: the function that stands in the way.
        module: path of the submodule in which it was called ("" is the model itself).
        reason: why it is refused, as the rest of a sentence that begins with the operation.
    """

    def __init__(self, operation: str, *, module: str, reason: str) -> None:
        self.operation, self.module, self.reason = operation, module, reason
        place = f"in '{module}'" if module else "in the model itself"
        super().__init__(
            f"{operation} {place} {reason}. Exact attribution covers models that are polynomial in x; "
            "for any other model use apexgnn.integrated_gradients, which approximates and says so."
        )


class NumericalError(ApexError, ArithmeticError):
    """The arithmetic left the range of the dtype: an infinite or undefined score or attribution."""


class MemoryBudgetError(ApexError, MemoryError):
    """The work does not fit the memory bound; the message gives the estimate."""


class TrainingError(ApexError, RuntimeError):
    """Training diverged or cannot be resumed."""


class MissingDependencyError(ApexError, ImportError):
    """An optional package is not installed; the message says how to get it."""
