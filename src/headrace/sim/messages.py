"""Messages between coordinators and the leaders of partitions: delayed, lost, or without a response, as the seed draws.

On one broker both run in the same process, and still the response comes in a later turn, as it does in a cluster. Here
some take up to 200 turns, and some never arrive.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from headrace.broker.cluster.proposal import Proposal
from headrace.broker.coordinators.markers import MarkerDelivery
from headrace.broker.node import Node
from headrace.core.transactions.records import Partition
from headrace.model.errors import ErrorCode
from headrace.sim.entropy import SeededEntropy
from headrace.sim.spawner import LONG_DELAY_TURNS_MAX
from headrace.sim.trace import Trace

TURN_MS = 40
"""Approximate duration of a turn."""
CHECK, MARKER = "coordinator's check", "marker"
MARKER_TWICE = "marker sent twice"
TROUBLED = "message of a coordinator delayed, lost or repeated"


class Messages:
    """`delays_one_in` and `losses_one_in` are rates, 0 for never. The running node uses them."""

    def __init__(self, entropy: SeededEntropy, trace: Trace) -> None:
        self.delays_one_in = 0
        self.losses_one_in = 0
        self._entropy = entropy
        self._trace = trace

    def carry(self, node: Node) -> None:
        """Intercept the messages within this node."""
        self._carry_checks(node)
        self._carry_markers(node)

    def heal(self) -> None:
        """Stop delays and losses from now on."""
        self.delays_one_in = self.losses_one_in = 0

    def _delay_ms(self, kind: str) -> float:
        if not self._entropy.one_in(self.delays_one_in):
            return 0.0
        self._meet(f"{kind} delayed")
        return TURN_MS * self._entropy.below(LONG_DELAY_TURNS_MAX + 1)

    def _is_lost(self, kind: str) -> bool:
        if not self._entropy.one_in(self.losses_one_in):
            return False
        self._meet(f"{kind} lost")
        return True

    def _meet(self, fault: str) -> None:
        self._trace.count_fault(fault)
        self._trace.count_fault(TROUBLED)

    def _carry_checks(self, node: Node) -> None:
        transactions, timers = node.broker.transactions, node.broker.timers
        check = transactions.check

        def carried(
            transactional_id: str, producer_id: int, producer_epoch: int, partitions: Sequence[Partition], *, add: bool
        ) -> Proposal[Mapping[Partition, ErrorCode]]:
            answered: Proposal[Mapping[Partition, ErrorCode]] = Proposal()
            asked = check(transactional_id, producer_id, producer_epoch, partitions, add=add)
            if not self._is_lost(CHECK):
                delay_ms = self._delay_ms(CHECK)

                def told(outcome: Any) -> None:
                    if delay_ms:
                        timers.after(delay_ms, lambda: answered.complete(outcome))
                    else:
                        answered.complete(outcome)

                asked.then(told)
            return answered

        transactions.check = carried  # type: ignore[method-assign]

    def _carry_markers(self, node: Node) -> None:
        """Deliver markers. A marker that is lost, or whose response is, is sent again, as by a sender that waits for a
        response.
        """
        sender, timers = node.broker.transactions.markers, node.broker.timers
        deliver = sender.deliver

        def carried(deliveries: list[MarkerDelivery]) -> None:
            arriving = []
            for delivery in deliveries:
                if self._is_lost(MARKER):
                    sender.retry(delivery)
                elif self._entropy.one_in(self.losses_one_in):
                    self._meet(MARKER_TWICE)
                    sender.unwritten += 1
                    sending = delivery.sending
                    repeated = type(sending)(sending.marker, lambda: None, sending.is_void)
                    arriving.append(MarkerDelivery(delivery.partition, repeated))
                    sender.retry(delivery)
                elif delay_ms := self._delay_ms(MARKER):
                    timers.after(delay_ms, partial(deliver, [delivery]))
                else:
                    arriving.append(delivery)
            deliver(arriving)

        sender.deliver = carried  # type: ignore[method-assign]
