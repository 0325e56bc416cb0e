"""Reading a long message in steps: a body that stops its reader after some elements, and lets it go on later.

The generated readers are plain functions and cannot pause. So a reader that is stopped begins again, and every array
in it goes on from the elements that it had: what is read twice are the few fields before the array.
"""

from collections.abc import Callable
from typing import Any

from headrace.wire.errors import ProtocolError


class Paused(Exception):
    """The step has read as many elements as it may; the reader goes on in another one."""


class SteppedBody(bytes):
    """The bytes of a message; `elements_max` bounds what all its arrays together may have."""

    elements_max: int
    _left: int
    _read: int
    _numbers_to: int
    """How far arrays of numbers are counted: one that is read again counts once."""
    _arrays: dict[int, tuple[list[Any], int]]
    """Arrays that are not read to their end, or whose owner is not, by where their elements begin: the elements so far
    and the position behind them."""

    @classmethod
    def of(cls, content: memoryview, *, elements_max: int) -> "SteppedBody":
        body = cls(content)
        body.elements_max = elements_max
        body._left = body._read = 0
        body._arrays = {}
        body._numbers_to = -1
        return body

    def allow(self, elements: int) -> None:
        """Begin a step that may read this number of elements."""
        self._left = elements

    def read_elements(
        self, position: int, count: int, read: Callable[[Any, int], tuple[Any, int]]
    ) -> tuple[tuple[Any, ...], int]:
        elements, at = self._arrays.get(position, ([], position))
        try:
            while len(elements) < count:
                if self._left <= 0:
                    raise Paused
                element, end = read(self, at)
                self.account_for(1)
                elements.append(element)
                for inner in [begin for begin in self._arrays if begin >= at]:
                    del self._arrays[inner]
                at = end
        except Paused:
            self._arrays[position] = (elements, at)
            raise
        self._arrays[position] = (elements, at)
        return tuple(elements), at

    def account_for(self, elements: int) -> None:
        """Count what was read; ProtocolError if the message has too much of it."""
        self._left -= elements
        self._read += elements
        if self._read > self.elements_max:
            raise ProtocolError(f"the request has more than {self.elements_max} elements: send several requests")

    def count_numbers(self, position: int, numbers: int) -> None:
        """As `account_for`, for an array of numbers, which is read at once."""
        if position > self._numbers_to:
            self._numbers_to = position
            self.account_for(numbers)
