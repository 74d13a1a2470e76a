"""Closed choices: enumerations that take strings and list what is valid when the string is not.

>>> class Masking(Choice):
...     BASELINE = "baseline"
...     EDGES = "edges"
>>> Masking("edges") is Masking.EDGES
True
>>> Masking("nodes")
Traceback (most recent call last):
    ...
apexgnn.errors.InputError: masking: got 'nodes'; expected one of 'baseline', 'edges'.
"""

from __future__ import annotations

from enum import StrEnum

from apexgnn.errors import InputError


class Choice(StrEnum):
    """An enumeration of strings; its name in lower case is the argument that the error names.

    >>> class Ranking(Choice):
    ...     SIGNED = "signed"
    >>> str(Ranking("signed"))
    'signed'
    """

    @classmethod
    def _missing_(cls, value: object) -> Choice:
        valid = ", ".join(repr(str(member)) for member in cls)
        raise InputError(cls.__name__.lower(), got=repr(value), expected=f"one of {valid}")
