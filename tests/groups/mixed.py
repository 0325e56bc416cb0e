"""Members of both protocols in one group, as good clients behave."""

from struct import pack
from typing import Any

from headrace.core.groups.commands import JoinResult, SyncResult
from headrace.core.groups.subscriptions import assigned_partitions, assignment_of
from headrace.model.errors import ErrorCode
from tests.groups.consumers import ConsumerHarness
from tests.groups.harness import GROUP

REJOIN = ErrorCode.REBALANCE_IN_PROGRESS


def subscription(*topics, owned=None, version=1):
    """As a consumer of the classic protocol writes it."""
    content = pack(">hi", version, len(topics)) + b"".join(_text(topic) for topic in topics) + pack(">i", -1)
    if version >= 1:
        by_topic: dict[Any, Any] = {}
        for topic, partition in owned or ():
            by_topic.setdefault(topic, []).append(partition)
        content += pack(">i", len(by_topic))
        for topic, partitions in by_topic.items():
            content += _text(topic) + pack(f">i{len(partitions)}i", len(partitions), *partitions)
    if version >= 2:
        content += pack(">i", -1)
    if version >= 3:
        content += pack(">h", -1)
    return content


def _text(text):
    return pack(">h", len(text)) + text.encode()


class MixedHarness(ConsumerHarness):
    """Classic members are `eager` (they let go of everything before they join) unless they are called cooperative."""

    def __init__(self, **settings):
        super().__init__(**{"initial_rebalance_delay_ms": 0, **settings})
        self.held = {}
        """Partitions that each classic client reads."""
        self.joined = set()
        """Classic clients that have joined and not asked for their assignment yet."""
        self.cooperative = set()

    def _learn(self, ticket, response):
        super()._learn(ticket, response)
        if response.__class__ is JoinResult and response.error is ErrorCode.NONE:
            self.joined.add(ticket.name)
        elif response.__class__ is SyncResult and response.error is ErrorCode.NONE:
            self.held[ticket.name] = tuple(map(tuple, assigned_partitions(response.assignment) or ()))

    def answer(self, name, kind):
        """Return the last answer to the client, if there was one since it asked."""
        return next((each for ticket, each in self.outcomes if (ticket.name, ticket.kind) == (name, kind)), None)

    def come(self, name, **options):
        """A classic client joins, for the first time or again; returns its answer, if that comes soon."""
        owned = self.held.setdefault(name, ()) if name in self.cooperative else ()
        if name not in self.cooperative:
            self.held[name] = ()
        self.joined.discard(name)
        self.outcomes.clear()
        self.join(name, required=False, protocols=(("range", subscription("t", owned=owned)),), **options)
        return self.answer(name, "join")

    def collect(self, name):
        """It asks for its assignment; one that leads decides for all, partition by partition."""
        assignments = None
        self.joined.discard(name)
        if self.member(name).leads and self.group is not None and self.group.members:
            names = {each.member_id: each.name for each in self.members.values()}
            present = [names[member_id] for member_id in self.group.members if member_id in names]
            # No member is there if a restart brought back only one that has left.
            shares: dict[Any, list[Any]] = {each: [] for each in present}
            for partition in range(self.catalog.topics["t"] if present else 0):
                shares[present[partition % len(present)]].append(("t", partition))
            assignments = {each: assignment_of(parts, 1) for each, parts in shares.items()}
        self.outcomes.clear()
        self.sync(name, assignments)
        return self.answer(name, "sync")

    def live(self, name):
        """One round of a classic client: its assignment if that is due, or a heartbeat and what it asks for."""
        if name in self.joined:
            self.collect(name)
        self.outcomes.clear()
        self.heartbeat(name)
        error = self.answer(name, "heartbeat")
        if error in (REJOIN, ErrorCode.ILLEGAL_GENERATION):
            self.come(name)
        if name in self.joined:
            self.collect(name)
        return error

    def form(self, *names):
        """A classic group of these, agreed and stable."""
        for name in names:
            self.come(name)
        for _ in range(3):
            for name in names:
                self.live(name)
        assert self.group.state.value == "Stable"

    def settle_all(self, classic=(), consumers=(), rounds=8):
        for _ in range(rounds):
            for name in classic:
                self.live(name)
            for name in consumers:
                self.beat(name)

    def reads(self):
        """{client: partitions of t} of everyone that reads something."""
        found = {name: sorted(partition for _, partition in parts) for name, parts in self.held.items() if parts}
        for name, consumer in self.consumers.items():
            if consumer.owned:
                found[name] = sorted(partition for _, partition in consumer.owned)
        return found

    @property
    def kind(self):
        if GROUP in self.machine.tables.consumer_groups:
            return "consumer"
        return "classic" if GROUP in self.machine.tables.classic_groups else None
