"""Two brokers with the partitions of one topic as lists, and the connections of one client to them.

Requests are served and answered one by one, when a test says so: what is sent may be served late, what is answered may
arrive late or never, leaders move, logs are trimmed. Answers of one connection keep their order, as brokers do.
"""

from collections import deque
from collections.abc import Callable
from typing import Any

from headrace.client.core.calls import ANY_BROKER, Call, PendingCall
from headrace.client.errors import BrokerUnreachable
from headrace.model.errors import ErrorCode
from headrace.wire.messages import fetch, list_offsets, metadata, offset_for_leader_epoch
from headrace.wire.records.builder import NewRecord, build_batch

from .test_fetch_sessions import BrokerSession

TOPIC, TOPIC_ID = "t", bytes(range(16))
NODES = (1, 2)
BATCHES_PER_ANSWER_MAX = 2
BROKEN = BrokerUnreachable("the connection broke")


class ModelLog:
    """One record in each batch; the value is the offset."""

    def __init__(self) -> None:
        self.batches: list[bytes] = []
        self.start = 0
        self.leader = NODES[0]
        self.epoch = 0
        self.epoch_starts = [(0, 0)]

    @property
    def end(self) -> int:
        return len(self.batches)

    def append(self) -> None:
        record = NewRecord(1_000, None, b"%d" % self.end)
        self.batches.append(bytes(build_batch([record], base_offset=self.end, leader_epoch=self.epoch)))

    def move(self) -> None:
        self.leader = NODES[1] if self.leader == NODES[0] else NODES[0]
        self.epoch += 1
        self.epoch_starts.append((self.epoch, self.end))

    def trim(self) -> None:
        self.start = (self.start + self.end + 1) // 2

    def read(self, node: int, offset: int, epoch: int) -> tuple[int, bytes]:
        error = self.refusal(node, epoch)
        if error:
            return error, b""
        if not self.start <= offset <= self.end:
            return ErrorCode.OFFSET_OUT_OF_RANGE, b""
        return ErrorCode.NONE, b"".join(self.batches[offset : offset + BATCHES_PER_ANSWER_MAX])

    def refusal(self, node: int, epoch: int) -> ErrorCode:
        if node != self.leader:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        if epoch == self.epoch or epoch < 0:
            return ErrorCode.NONE
        return ErrorCode.FENCED_LEADER_EPOCH if epoch < self.epoch else ErrorCode.UNKNOWN_LEADER_EPOCH

    def end_of(self, epoch: int) -> int:
        return next((start for later, start in self.epoch_starts if later > epoch), self.end)


class ModelCluster:
    def __init__(self, partitions: int) -> None:
        self.logs = [ModelLog() for _ in range(partitions)]
        self.sessions: dict[int, BrokerSession] = {}
        """Of one client; a test with several gives each of them a cluster-wide `answer` of its own."""

    def answer(self, node: int, message: Any) -> Any:
        match message:
            case metadata.MetadataRequest():
                return self._metadata()
            case fetch.FetchRequest():
                return self._fetch(node, message)
            case list_offsets.ListOffsetsRequest():
                return self._offsets(node, message)
            case offset_for_leader_epoch.OffsetForLeaderEpochRequest():
                return self._epoch_ends(node, message)
        raise AssertionError(f"no broker answers {message}")

    def _metadata(self) -> metadata.MetadataResponse:
        partitions = tuple(
            metadata.MetadataResponsePartition(partition_index=index, leader_id=log.leader, leader_epoch=log.epoch)
            for index, log in enumerate(self.logs)
        )
        topic = metadata.MetadataResponseTopic(name=TOPIC, topic_id=TOPIC_ID, partitions=partitions)
        brokers = tuple(metadata.MetadataResponseBroker(node_id=node, host="h", port=node) for node in NODES)
        return metadata.MetadataResponse(brokers=brokers, topics=(topic,))

    def _fetch(self, node: int, request: fetch.FetchRequest) -> fetch.FetchResponse:
        session = self.sessions.setdefault(node, BrokerSession())
        reply = session.serve(request)
        if reply.error_code:
            return reply
        told = []
        for (_topic, _topic_id, index), (epoch, offset, _bytes_max) in session.known.items():
            log = self.logs[index]
            error, records = log.read(node, offset, epoch)
            if error or records:
                told.append(
                    fetch.FetchResponsePartition(
                        partition_index=index, error_code=error, records=records, high_watermark=log.end
                    )
                )
        topic = fetch.FetchResponseTopic(topic=TOPIC, topic_id=TOPIC_ID, partitions=tuple(told))
        return fetch.FetchResponse(session_id=session.session_id, responses=(topic,) if told else ())

    def _offsets(self, node: int, request: list_offsets.ListOffsetsRequest) -> list_offsets.ListOffsetsResponse:
        found = []
        for wanted in request.topics[0].partitions:
            log = self.logs[wanted.partition_index]
            error = log.refusal(node, wanted.current_leader_epoch)
            offset = log.start if wanted.timestamp == -2 else log.end
            found.append(
                list_offsets.ListOffsetsResponsePartition(
                    partition_index=wanted.partition_index, error_code=error, offset=-1 if error else offset
                )
            )
        topic = list_offsets.ListOffsetsResponseTopic(name=TOPIC, partitions=tuple(found))
        return list_offsets.ListOffsetsResponse(topics=(topic,))

    def _epoch_ends(self, node: int, request: offset_for_leader_epoch.OffsetForLeaderEpochRequest) -> Any:
        found = []
        for wanted in request.topics[0].partitions:
            log = self.logs[wanted.partition]
            found.append(
                offset_for_leader_epoch.OffsetForLeaderEpochResponsePartition(
                    partition=wanted.partition,
                    error_code=log.refusal(node, wanted.current_leader_epoch),
                    leader_epoch=wanted.leader_epoch,
                    end_offset=log.end_of(wanted.leader_epoch),
                )
            )
        topic = offset_for_leader_epoch.OffsetForLeaderEpochResponseTopic(topic=TOPIC, partitions=tuple(found))
        return offset_for_leader_epoch.OffsetForLeaderEpochResponse(topics=(topic,))


class Wires:
    """Connections of one client, by node and channel. `serve` gets a request and a function that takes its answer."""

    def __init__(self, serve: Callable[[int, Any, Callable[[Any], None]], None]) -> None:
        self._serve = serve
        self._sent: dict[tuple[int, int], deque[PendingCall]] = {}
        self._answers: dict[tuple[int, int], deque[tuple[PendingCall, Any]]] = {}
        self._parked: dict[tuple[int, int], PendingCall] = {}

    def send(self, pending: PendingCall) -> None:
        call: Call = pending.call
        node = NODES[0] if call.target == ANY_BROKER else call.target
        self._sent.setdefault((node, call.channel), deque()).append(pending)

    def is_quiet(self) -> bool:
        return not any(self._sent.values()) and not any(self._answers.values())

    def serve(self, choice: int) -> None:
        """The broker takes the next request of one connection, unless it still works on the one before."""
        ready = [key for key, sent in self._sent.items() if sent and key not in self._parked]
        if not ready:
            return
        key = ready[choice % len(ready)]
        pending = self._sent[key].popleft()
        self._parked[key] = pending

        def answer(reply: Any) -> None:
            if self._parked.get(key) is pending:
                del self._parked[key]
                self._answers.setdefault(key, deque()).append((pending, reply))

        self._serve(key[0], pending.call.message, answer)

    def deliver(self, choice: int, now_ms: float) -> None:
        ready = [key for key, answers in self._answers.items() if answers]
        if ready:
            pending, reply = self._answers[ready[choice % len(ready)]].popleft()
            pending.completed(reply, now_ms)

    def cut(self, choice: int, now_ms: float) -> None:
        """A connection breaks: no answer comes any more, whatever the broker has done or will do."""
        keys = sorted({*self._sent, *self._answers, *self._parked})
        if not keys:
            return
        key = keys[choice % len(keys)]
        lost = [pending for pending, _reply in self._answers.pop(key, ())]
        if key in self._parked:
            lost.append(self._parked.pop(key))
        lost += self._sent.pop(key, ())
        for pending in lost:
            pending.completed(BROKEN, now_ms)
