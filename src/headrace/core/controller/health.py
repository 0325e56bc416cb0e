"""The health of brokers that run, from the figures in their heartbeats: which are impaired. No I/O.

A broker is impaired when its loop, its disk or its space has been bad in every heartbeat for a while, and sound again
when all of them were good for a longer while. Good is less than half of what is bad: leaders do not swing.
"""

from typing import NamedTuple

from headrace.core.controller.sessions import BrokerSession

TURN_MS_MAX = 1_000
"""A turn of a broker's loop that takes longer is bad: nothing else is served meanwhile."""
APPEND_MS_MAX = 1_000
"""Writes of logs in one turn that take longer are bad."""
SYNC_MS_MAX = 5_000
"""A sync that takes longer is bad: a busy disk needs a second or two for what a broker syncs in the background."""
GOOD_SHARE = 0.5
IMPAIRED_AFTER_MS = 10_000
SOUND_AFTER_MS = 30_000


class HealthReport(NamedTuple):
    """Figures of a broker since its last heartbeat."""

    turn_ms: int = 0
    """The longest turn of its loop."""
    append_ms: int = 0
    """The longest time that the writes of one turn took."""
    is_full: bool = False
    """True while none of its directories takes records."""
    sync_ms: int = 0
    """The age of the oldest sync that is under way."""

    @property
    def is_bad(self) -> bool:
        return self.is_full or self._slowness > 1

    @property
    def is_good(self) -> bool:
        return not self.is_full and self._slowness <= GOOD_SHARE

    @property
    def _slowness(self) -> float:
        """The worst figure as a share of what is bad."""
        return max(self.turn_ms / TURN_MS_MAX, self.append_ms / APPEND_MS_MAX, self.sync_ms / SYNC_MS_MAX)

    @property
    def text(self) -> str:
        """Describe what is bad."""
        found = {
            "its directories are full": self.is_full,
            f"a turn of its loop took {self.turn_ms} ms": self.turn_ms > TURN_MS_MAX,
            f"the writes of a turn took {self.append_ms} ms": self.append_ms > APPEND_MS_MAX,
            f"a sync takes {self.sync_ms} ms": self.sync_ms > SYNC_MS_MAX,
        }
        return " and ".join(text for text, is_so in found.items() if is_so)


SOUND = HealthReport()


class BrokerHealths:
    """The health of every broker of which the active controller has heard."""

    def __init__(self) -> None:
        self._since: dict[BrokerSession, float] = {}
        """The times from which on all reports of a broker ask for another state."""

    def clear(self) -> None:
        self._since.clear()

    def heard(self, session: BrokerSession, report: HealthReport, *, is_impaired: bool, now_ms: float) -> bool | None:
        """Take a report; return the state that the broker should have from now on, None if it keeps its own."""
        if not (report.is_good if is_impaired else report.is_bad):
            self._since.pop(session, None)
            return None
        since_ms = self._since.setdefault(session, now_ms)
        if now_ms - since_ms < (SOUND_AFTER_MS if is_impaired else IMPAIRED_AFTER_MS):
            return None
        del self._since[session]
        return not is_impaired

    def forget(self, session: BrokerSession) -> None:
        self._since.pop(session, None)
