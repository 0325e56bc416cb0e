"""Read a long message in steps: the body interrupts its reader after some elements, and lets it continue later.

The generated readers are plain functions and cannot pause. So an interrupted reader starts again, and every array in it
continues after the elements it already has: only the few fields before the array are read twice.
"""

from collections.abc import Callable
from typing import Any

from headrace.wire.errors import ProtocolError


class Paused(Exception):
    """The step has read as many elements as it may; the reader continues in the next step."""


class SteppedBody(bytes):
    """The bytes of a message; `elements_max` limits the elements of all its arrays together."""

    elements_max: int
    _left: int
    _read: int
    _numbers_to: int
    """The position up to which arrays of numbers are counted: one that is read again counts once."""
    _arrays: dict[int, tuple[list[Any], int]]
    """Arrays that are not complete, or whose owner is not, by the position of their first element: the elements so far
    and the next position.
    """

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
        """Count what was read; ProtocolError if the message has too many elements."""
        self._left -= elements
        self._read += elements
        if self._read > self.elements_max:
            raise ProtocolError(f"the request has more than {self.elements_max} elements: send several requests")

    def count_numbers(self, position: int, numbers: int) -> None:
        """Count an array of numbers, which is read at once; otherwise as `account_for`."""
        if position > self._numbers_to:
            self._numbers_to = position
            self.account_for(numbers)
