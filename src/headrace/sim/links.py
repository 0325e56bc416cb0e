"""Directed links between virtual hosts: delay, loss, resets and cuts."""

from headrace.sim.clock import VirtualTime
from headrace.sim.entropy import SeededEntropy
from headrace.sim.trace import Trace

RETRANSMISSION_MS = 200
"""Wait before a lost packet is sent again; doubled with every further loss."""
LOSSES_IN_A_ROW_MAX = 4


class VirtualLink:
    """One direction between two hosts, which all their connections share. Rates are "one in": 0 means never.

    A connection loses no bytes: a lost packet delays everything behind it, and a cut holds everything back.
    """

    __slots__ = ("_entropy", "_time", "_trace", "delay_ms_max", "is_cut", "lost_one_in", "reset_one_in", "to")

    def __init__(self, to: str, time: VirtualTime, entropy: SeededEntropy, trace: Trace) -> None:
        self.to = to
        """The host at its end."""
        self._time = time
        self._entropy = entropy
        self._trace = trace
        self.delay_ms_max = 0
        self.lost_one_in = 0
        self.reset_one_in = 0
        """The rate of delivered pieces after which the connection is reset."""
        self.is_cut = False

    @property
    def is_instant(self) -> bool:
        """Return whether bytes can arrive in the turn in which they were sent."""
        return not (self.is_cut or self.delay_ms_max or self.lost_one_in)

    @property
    def now_ms(self) -> float:
        return self._time.now_ms

    def arrival_ms(self) -> float:
        """Draw when a packet that is sent now arrives."""
        delay_ms = self._entropy.below(self.delay_ms_max + 1)
        if self._entropy.one_in(self.lost_one_in):
            self._trace.count_fault("packet lost")
            delay_ms += RETRANSMISSION_MS << self._entropy.below(LOSSES_IN_A_ROW_MAX)
        return self._time.now_ms + delay_ms

    def resets(self) -> bool:
        """Draw whether the connection of a delivered piece is reset."""
        if not self._entropy.one_in(self.reset_one_in):
            return False
        self._trace.count_fault("connection between brokers reset")
        return True

    def heal(self) -> None:
        self.delay_ms_max = self.lost_one_in = self.reset_one_in = 0
        self.is_cut = False


class VirtualLinks:
    """The links of a world, created when they are first used."""

    __slots__ = ("_entropy", "_links", "_time", "_trace")

    def __init__(self, time: VirtualTime, entropy: SeededEntropy, trace: Trace) -> None:
        self._time = time
        self._entropy = entropy
        self._trace = trace
        self._links: dict[tuple[str, str], VirtualLink] = {}

    def between(self, source: str, to: str) -> VirtualLink:
        """Return the link for what `source` sends to `to`."""
        link = self._links.get((source, to))
        if link is None:
            link = VirtualLink(to, self._time, self._entropy.branch(f"{source} to {to}"), self._trace)
            self._links[source, to] = link
        return link

    def heal(self) -> None:
        """End the faults of every link."""
        for link in self._links.values():
            link.heal()
