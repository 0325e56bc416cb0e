"""Duties of the active controller for replicas: balance leaders, and raise internal topics.

Leaders are balanced topic by topic, a slice in each turn, so that a cluster of any size keeps answering.
"""

from collections.abc import Callable, Iterator
from itertools import islice

from headrace.broker.cluster.controller_host import ControllerHost
from headrace.broker.cluster.proposal import ProposalFailed
from headrace.broker.logs import NodeLogger
from headrace.broker.timers import Timers
from headrace.core.controller.reassignments import topics_to_raise
from headrace.core.controller.settings import ControllerSettings

TOPICS_PER_TURN = 100
"""Topics whose leaders are compared with the preferred ones in one turn."""


class ReplicaCare:
    def __init__(
        self,
        *,
        controller: ControllerHost,
        timers: Timers,
        logger: NodeLogger,
        settings: Callable[[], ControllerSettings],
        balance_interval_ms: Callable[[], float | None],
    ) -> None:
        """`balance_interval_ms` returns None while leaders are not balanced."""
        self._controller = controller
        self._timers = timers
        self._logger = logger
        self._settings = settings
        self._balance_interval_ms = balance_interval_ms
        self._activations = 0
        """Counts the times that this node became active: what began before the last one is over."""
        self._balance_due_ms = 0.0

    def activity_changed(self) -> None:
        self._activations += 1
        self._postpone_balance()

    def _postpone_balance(self) -> None:
        self._balance_due_ms = self._timers.now_ms() + (self._balance_interval_ms() or 0)

    def check(self) -> None:
        """Do what is due; called every second or so while this node is active."""
        if topics_to_raise(self._controller.image, self._settings()):
            self._controller.raise_internal_topics().then(self._raised)
        if self._balance_interval_ms() is not None and self._timers.now_ms() >= self._balance_due_ms:
            self._postpone_balance()
            self._balance(self._activations, iter(tuple(self._controller.image.topics)))

    def _raised(self, outcome: int | ProposalFailed) -> None:
        if isinstance(outcome, int) and outcome:
            self._logger.info(f"{outcome} partitions of internal topics get replicas on further hosts")

    def _balance(self, activation: int, topics: Iterator[str]) -> None:
        """Elect preferred leaders for the next topics that need it; the rest follows when that is committed."""
        if activation != self._activations:
            return
        image = self._controller.image
        names = list(islice(topics, TOPICS_PER_TURN))
        if not names:
            return
        unbalanced = [name for name in names if name in image.topics and image.topics[name].partitions.led_by_others()]
        if unbalanced:
            self._controller.balance_leaders(unbalanced).then(lambda _outcome: self._balance(activation, topics))
        else:
            self._timers.next_turn(lambda: self._balance(activation, topics))
