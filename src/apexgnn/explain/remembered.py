"""What was learned about a model the last time it was seen, for as long as the model lives."""

from __future__ import annotations

from typing import Any, Generic, TypeVar
from weakref import WeakKeyDictionary

T = TypeVar("T")


class Remembered(Generic[T]):
    """A note per model. It is only ever a guess: the model may have changed since.

    >>> class Model: ...
    >>> notes, model = Remembered[int](), Model()
    >>> notes.put(model, 3)
    >>> notes.get(model), notes.get(Model())
    (3, None)
    """

    def __init__(self) -> None:
        self._notes: WeakKeyDictionary[Any, T] = WeakKeyDictionary()

    def get(self, model: Any) -> T | None:
        """The note, or None."""
        try:
            return self._notes.get(model)
        except TypeError:  # a callable that cannot be referred to weakly
            return None

    def put(self, model: Any, note: T) -> None:
        """Take a note."""
        try:
            self._notes[model] = note
        except TypeError:
            return
