"""A virtual network of directed links that delay, lose, duplicate, reorder and cut messages."""

from collections.abc import Callable
from dataclasses import dataclass

from headrace.sim.entropy import SeededEntropy
from headrace.sim.machines.agenda import Agenda
from headrace.sim.trace import Trace

REORDER_MS_MAX = 400
"""Extra delay of a message that others overtake."""


@dataclass(slots=True, kw_only=True)
class LinkHabits:
    """Rates are "one in": 0 means never."""

    delay_ms_max: int = 10
    lost_one_in: int = 0
    duplicated_one_in: int = 0
    reordered_one_in: int = 0


class LinkNetwork:
    __slots__ = ("_agenda", "_cuts", "_entropy", "_trace", "habits")

    def __init__(self, agenda: Agenda, entropy: SeededEntropy, trace: Trace) -> None:
        self._agenda = agenda
        self._entropy = entropy
        self._trace = trace
        self._cuts: set[tuple[int, int]] = set()
        self.habits = LinkHabits()

    def cut(self, source: int, to: int) -> None:
        """Drop everything that travels in this direction."""
        self._cuts.add((source, to))

    def is_cut(self, source: int, to: int) -> bool:
        return (source, to) in self._cuts

    def heal(self) -> None:
        self._cuts.clear()

    def send_once(self, source: int, to: int, deliver: Callable[[], None]) -> None:
        """Send over a connection, which neither loses nor duplicates a message unless the link is cut."""
        self._agenda.add(self._delay_ms(), lambda: self._arrive(source, to, deliver))

    def send(self, source: int, to: int, deliver: Callable[[], None]) -> None:
        """Send a message that may be lost or duplicated."""
        habits = self.habits
        if self._entropy.one_in(habits.lost_one_in):
            self._trace.count_fault("message lost")
            return
        self._agenda.add(self._delay_ms(), lambda: self._arrive(source, to, deliver))
        if self._entropy.one_in(habits.duplicated_one_in):
            self._trace.count_fault("message duplicated")
            self._agenda.add(self._delay_ms(), lambda: self._arrive(source, to, deliver))

    def _delay_ms(self) -> float:
        delay_ms = 0.1 + self._entropy.below(self.habits.delay_ms_max * 10) / 10
        if self._entropy.one_in(self.habits.reordered_one_in):
            self._trace.count_fault("message reordered")
            delay_ms += self._entropy.below(REORDER_MS_MAX)
        return delay_ms

    def _arrive(self, source: int, to: int, deliver: Callable[[], None]) -> None:
        if (source, to) in self._cuts:
            self._trace.count_fault("message cut off")
        else:
            deliver()
