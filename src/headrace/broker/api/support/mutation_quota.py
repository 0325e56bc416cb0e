"""The quota of partitions that a client creates and deletes (KIP-599)."""

from collections.abc import Iterable

from headrace.broker.api.context import RequestContext
from headrace.core.controller.commands import TopicResult
from headrace.core.quotas.entities import MUTATION_RATE
from headrace.model.errors import ErrorCode
from headrace.model.ids import NO_TOPIC_ID, TopicId


class MutationQuota:
    """One request's use of the quota.

    From version `strict_from` of its API a request is refused in part while the quota is exceeded. Requests of older
    versions are carried out, and the client waits afterwards.
    """

    __slots__ = ("_bucket", "_charged", "_ctx", "_is_strict")

    def __init__(self, ctx: RequestContext, *, strict_from: int, charges: bool = True) -> None:
        self._ctx = ctx
        self._is_strict = ctx.version >= strict_from
        self._bucket = ctx.client_quotas.mutation_bucket(ctx.connection, ctx.client_id) if charges else None
        self._charged: dict[str | TopicId, int] = {}

    def admits(self, topic: str | TopicId, partitions: int) -> bool:
        """Charge the partitions of a topic; return False, and charge nothing, if the client has to try again later."""
        if self._bucket is None:
            return True
        now_ms = self._ctx.clock.monotonic_ms()
        if self._is_strict and self._bucket.debt_ms(now_ms):
            return False
        self._bucket.charge(partitions, now_ms)
        self._charged[topic] = self._charged.get(topic, 0) + partitions
        return True

    def refusal(self, topic: str | None, topic_id: TopicId = NO_TOPIC_ID) -> TopicResult:
        message = f"the quota {MUTATION_RATE} of this client is exceeded: try again after the throttle time"
        return TopicResult(topic, topic_id, ErrorCode.THROTTLING_QUOTA_EXCEEDED, message)

    def settle(self, results: Iterable[TopicResult]) -> None:
        """Give back what was charged for topics with an error, and let the client wait if there is a debt."""
        if self._bucket is None:
            return
        for result in results:
            if result.error is not ErrorCode.NONE:
                self._bucket.give_back(self._charged.pop(result.name or result.topic_id, 0))
        wait_ms = self._bucket.debt_ms(self._ctx.clock.monotonic_ms())
        if wait_ms:
            self._ctx.client_quotas.throttle(self._ctx.connection, wait_ms, MUTATION_RATE)
