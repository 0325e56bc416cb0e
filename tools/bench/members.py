"""Group members without a consumer: many members in one loop, each on its own connection."""

import selectors
import socket
import time
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

from headrace.bench.errors import RunRejected
from headrace.bench.links import ANSWER_SECONDS_MAX, CLIENT_ID, host_and_port
from headrace.core.groups.subscriptions import CONSUMER_PROTOCOL_TYPE, assigned_partitions, assignment_of
from headrace.model.errors import ErrorCode, error_name
from headrace.wire.frames import SIZE_BYTES, read_response_header, request_frame
from headrace.wire.messages import consumer_group_heartbeat, heartbeat, join_group, sync_group
from headrace.wire.primitives.layouts import INT16, Buffer
from headrace.wire.primitives.writers import write_array, write_nullable_bytes, write_string

JOIN_VERSION = 5
SYNC_VERSION = 3
HEARTBEAT_VERSION = 3
CONSUMER_HEARTBEAT_VERSION = 1
REBALANCE_TIMEOUT_MS = 60_000
RECEIVE_BYTES = 64 << 10
TICK_SECONDS_MAX = 0.05
STRATEGY = "range"
Owned = frozenset[tuple[bytes | str, int]]


class Member:
    """A connection with at most one request in flight."""

    def __init__(self, address: str, group: str, topic: str, number: int) -> None:
        self.group, self.topic, self.number = group, topic, number
        self.owned: Owned = frozenset()
        self.generation = -1
        self.settled_at = 0.0
        """Time of the last assignment in the current generation."""
        self.heard_at = 0.0
        """Time of the last heartbeat response."""
        self.beat_at = 0.0
        self._codec: ModuleType | None = None
        self._version = 0
        self._received = bytearray()
        self.socket = socket.create_connection(host_and_port(address), ANSWER_SECONDS_MAX)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    @property
    def waits(self) -> bool:
        return self._codec is not None

    def ask(self, codec: ModuleType, request: object, version: int) -> None:
        assert self._codec is None, "one request at a time"
        self._codec, self._version = codec, version
        client_id = f"{CLIENT_ID}-{self.number}"
        self.socket.sendall(request_frame(codec.API_KEY, version, 0, client_id, codec.encode_request(request, version)))

    def receive(self) -> None:
        part = self.socket.recv(RECEIVE_BYTES)
        if not part:
            raise RunRejected("the broker closed the connection of a member")
        self._received += part
        size = int.from_bytes(self._received[:SIZE_BYTES], "big")
        if len(self._received) < SIZE_BYTES or len(self._received) < SIZE_BYTES + size:
            return
        body = bytes(self._received[SIZE_BYTES : SIZE_BYTES + size])
        del self._received[: SIZE_BYTES + size]
        codec, self._codec = self._codec, None
        assert codec is not None
        _, at = read_response_header(body, 0, len(body), api_key=codec.API_KEY, api_version=self._version)
        self.answered(codec.decode_response(body, at, len(body), self._version))

    def begin(self) -> None:
        raise NotImplementedError

    def beat(self) -> None:
        raise NotImplementedError

    def answered(self, answer: Any) -> None:
        raise NotImplementedError

    def settle(self, owned: Owned, generation: int) -> None:
        self.owned, self.generation, self.settled_at = owned, generation, time.monotonic()

    def heard(self, interval_seconds: float) -> None:
        self.heard_at = time.monotonic()
        self.beat_at = self.heard_at + interval_seconds

    def close(self) -> None:
        self.socket.close()


class ClassicMember(Member):
    """An eager member of the classic protocol: joins, syncs, sends heartbeats, and rejoins on a rebalance."""

    def __init__(
        self, address: str, group: str, topic: str, number: int, *, partitions: int, session_ms: int, interval_ms: int
    ) -> None:
        super().__init__(address, group, topic, number)
        self._partitions = partitions
        self._session_ms, self._interval_seconds = session_ms, interval_ms / 1000
        self._member_id = ""
        self._joined_generation = -1

    def begin(self) -> None:
        self.beat_at = float("inf")
        protocol = join_group.JoinGroupRequestProtocol(name=STRATEGY, metadata=_subscription(self.topic))
        request = join_group.JoinGroupRequest(
            group_id=self.group,
            session_timeout_ms=self._session_ms,
            rebalance_timeout_ms=REBALANCE_TIMEOUT_MS,
            member_id=self._member_id,
            protocol_type=CONSUMER_PROTOCOL_TYPE,
            protocols=(protocol,),
        )
        self.ask(join_group, request, JOIN_VERSION)

    def beat(self) -> None:
        request = heartbeat.HeartbeatRequest(
            group_id=self.group, generation_id=self.generation, member_id=self._member_id
        )
        self.ask(heartbeat, request, HEARTBEAT_VERSION)

    def answered(self, answer: Any) -> None:
        if isinstance(answer, join_group.JoinGroupResponse):
            self._joined(answer)
        elif isinstance(answer, sync_group.SyncGroupResponse):
            if answer.error_code == ErrorCode.REBALANCE_IN_PROGRESS:
                self.begin()
                return
            _check(answer.error_code)
            owned: Owned = frozenset(assigned_partitions(bytes(answer.assignment)) or ())
            self.settle(owned, self._joined_generation)
            self.heard(self._interval_seconds)
        elif answer.error_code == ErrorCode.REBALANCE_IN_PROGRESS:
            self.begin()
        else:
            _check(answer.error_code)
            self.heard(self._interval_seconds)

    def _joined(self, answer: join_group.JoinGroupResponse) -> None:
        if answer.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            self._member_id = answer.member_id
            self.begin()
            return
        _check(answer.error_code)
        self._member_id, self._joined_generation = answer.member_id, answer.generation_id
        assignments: tuple[sync_group.SyncGroupRequestAssignment, ...] = ()
        if answer.leader == answer.member_id:
            assignments = self._assign([each.member_id for each in answer.members])
        request = sync_group.SyncGroupRequest(
            group_id=self.group,
            generation_id=self._joined_generation,
            member_id=self._member_id,
            assignments=assignments,
        )
        self.ask(sync_group, request, SYNC_VERSION)

    def _assign(self, member_ids: Sequence[str]) -> tuple[sync_group.SyncGroupRequestAssignment, ...]:
        return tuple(
            sync_group.SyncGroupRequestAssignment(
                member_id=member_id,
                assignment=assignment_of(
                    [(self.topic, part) for part in range(place, self._partitions, len(member_ids))], 0
                ),
            )
            for place, member_id in enumerate(member_ids)
        )


class ConsumerMember(Member):
    """A member of the KIP-848 protocol, which revokes partitions as soon as the coordinator asks for it."""

    def begin(self) -> None:
        self.beat_at = float("inf")
        request = consumer_group_heartbeat.ConsumerGroupHeartbeatRequest(
            group_id=self.group,
            member_id=self._member_id,
            member_epoch=0,
            rebalance_timeout_ms=REBALANCE_TIMEOUT_MS,
            subscribed_topic_names=(self.topic,),
            topic_partitions=(),
        )
        self.ask(consumer_group_heartbeat, request, CONSUMER_HEARTBEAT_VERSION)

    @property
    def _member_id(self) -> str:
        return f"{self.group}-{self.number}"

    def beat(self) -> None:
        by_topic: dict[bytes, list[int]] = {}
        for topic_id, partition in sorted(self.owned):
            assert isinstance(topic_id, bytes)
            by_topic.setdefault(topic_id, []).append(partition)
        request = consumer_group_heartbeat.ConsumerGroupHeartbeatRequest(
            group_id=self.group,
            member_id=self._member_id,
            member_epoch=self.generation,
            topic_partitions=tuple(
                consumer_group_heartbeat.ConsumerGroupHeartbeatRequestTopicPartitions(
                    topic_id=topic_id, partitions=tuple(partitions)
                )
                for topic_id, partitions in by_topic.items()
            ),
        )
        self.ask(consumer_group_heartbeat, request, CONSUMER_HEARTBEAT_VERSION)

    def answered(self, answer: Any) -> None:
        _check(answer.error_code)
        owned = self.owned
        if answer.assignment is not None:
            owned = frozenset(
                (bytes(topic.topic_id), partition)
                for topic in answer.assignment.topic_partitions
                for partition in topic.partitions
            )
        lets_go = bool(self.owned - owned)
        if owned != self.owned or answer.member_epoch != self.generation:
            self.settle(owned, answer.member_epoch)
        self.heard(0.0 if lets_go else answer.heartbeat_interval_ms / 1000)


class Fleet:
    """All members of a group in one loop."""

    def __init__(self, members: Sequence[Member]) -> None:
        self.members = list(members)
        self._selector = selectors.DefaultSelector()
        for member in self.members:
            self._selector.register(member.socket, selectors.EVENT_READ, member)

    def begin(self) -> None:
        for member in self.members:
            member.begin()

    def spread(self, interval_seconds: float) -> None:
        """Spread the heartbeats over the interval, like those of members that started at different times."""
        now = time.monotonic()
        for place, member in enumerate(self.members):
            member.beat_at = now + interval_seconds * place / len(self.members)

    def lose(self, member: Member) -> None:
        """Let a member die: it sends nothing any more."""
        self._selector.unregister(member.socket)
        self.members.remove(member)
        member.close()

    def run_until(self, reached: Callable[[], bool], *, seconds_max: float, what: str) -> None:
        deadline = time.monotonic() + seconds_max
        while not reached():
            now = time.monotonic()
            if now > deadline:
                raise RunRejected(f"{what} did not occur within {seconds_max:g} s")
            for member in self.members:
                if member.beat_at <= now and not member.waits:
                    member.beat()
            for key, _ in self._selector.select(TICK_SECONDS_MAX / 10):
                key.data.receive()

    def close(self) -> None:
        for member in self.members:
            member.close()
        self._selector.close()


def _subscription(topic: str) -> bytes:
    subscription: list[Buffer] = [INT16.pack(0)]
    write_array(subscription.append, (topic,), write_string)
    write_nullable_bytes(subscription.append, None)
    return b"".join(subscription)


def _check(error_code: int) -> None:
    if error_code:
        raise RunRejected(f"a member was refused: {error_name(error_code)}")
