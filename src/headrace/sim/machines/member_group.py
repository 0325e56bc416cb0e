"""The brokers of a run of machines, the clients that change metadata, and the invariants of both."""

from functools import partial

from headrace.core.controller.commands import CreatableTopic, TopicResult
from headrace.core.controller.controller import Controller
from headrace.core.controller.records import Record
from headrace.core.controller.sessions import BrokerSession
from headrace.core.controller.topics import TopicDecision
from headrace.model.ids import NO_NODE, TopicId
from headrace.sim.checkers.violation import Violation, require
from headrace.sim.entropy import SeededEntropy
from headrace.sim.machines.members import SESSION_MS, SimulatedMember
from headrace.sim.machines.raft_cluster import RaftCluster

TOPIC_MS_MAX = 250
RESET_MS_MAX = 400
PARTITIONS_MAX = 3
TOPICS_MAX = 30
ALIVE_SHARE = 0.95
"""The part of a session in which a heartbeat proves that the broker is alive, with room for the drift of clocks."""

OPENED_IN_TIME = "no folder is opened, renamed or created before the image has reached the registration of the broker"
ALIVE_IS_NOT_FENCED = "a broker that is alive, connected and sends heartbeats is not fenced"
NOT_REFUSED = "a broker that is alone with its node id is registered"
CHANGES_ARE_READ = "an acknowledged change of metadata is in every later linearizable read"
EQUAL_IMAGES = "images at the same offset are equal"


class MemberGroup:
    def __init__(self, cluster: RaftCluster, entropy: SeededEntropy) -> None:
        self._cluster = cluster
        self._entropy = entropy
        self._changes: dict[bytes, tuple[Record, ...]] = {}
        self.members = [
            SimulatedMember(
                replica,
                agenda=cluster.agenda,
                links=cluster.links,
                changes=self._changes,
                observer=self,
                member_of=lambda node: self.members[node],
                draw=entropy.branch(f"member {replica.node_id}").below,
            )
            for replica in cluster.replicas
        ]
        self._topics = 0
        self.topics_max = TOPICS_MAX
        self.replication_factor = 1
        self._acknowledged: set[str] = set()
        for member in self.members:
            member.replica.resident = member
            member.started()
        cluster.on_crash = self._notice_crash
        cluster.known = lambda: frozenset(self._acknowledged)
        cluster.on_read = self._check_read
        self._create_topics()
        self._reset_connections()

    # Clients

    def _create_topics(self) -> None:
        for member in self.members:
            if member.controller is not None and self._topics < self.topics_max:
                member.replica.when_running(partial(self._create_topic, member))
        self._cluster.agenda.add(1 + self._entropy.below(TOPIC_MS_MAX), self._create_topics)

    def _create_topic(self, member: SimulatedMember) -> None:
        self._topics += 1
        new = CreatableTopic(
            name=f"topic-{self._topics}",
            partition_count=1 + self._entropy.below(PARTITIONS_MAX),
            replication_factor=self.replication_factor,
        )
        topic_id = TopicId(self._topics.to_bytes(16, "big"))

        def decide(controller: Controller) -> TopicDecision:
            return controller.create_topics([new], topic_ids=[topic_id])

        member.propose(decide, self._created)

    def _created(self, results: tuple[TopicResult, ...]) -> None:
        for result in results:
            if not result.error and result.name is not None:
                self._acknowledged.add(result.name)
                self._cluster.trace.count_fault("topic created")

    def _check_read(self, node: int, known: frozenset[str]) -> None:
        """Check a linearizable read, which shows everything that was acknowledged before it began."""
        image = self.members[node].image
        missing = sorted(name for name in known if name not in image.topics)
        require(not missing, CHANGES_ARE_READ, f"node {node} at {image.version} lacks {missing[:3]}")

    # Connections

    def _notice_crash(self, node: int) -> None:
        """The connections of a process that ends are reset, as far as the links carry it."""
        for member in self.members:
            if member.node_id != node:
                reset = partial(member.connection_reset, self.members[node])
                self._cluster.links.send_once(node, member.node_id, partial(member.replica.when_running, reset))

    def _reset_connections(self) -> None:
        """Reset a connection now and then, although both processes run on."""
        one, other = (self.members[self._entropy.below(len(self.members))] for _ in range(2))
        if one is not other:
            self._cluster.trace.count_fault("connection reset")
            one.replica.when_running(partial(one.connection_reset, other))
        self._cluster.agenda.add(1 + self._entropy.below(RESET_MS_MAX), self._reset_connections)

    # Invariants

    def opened(self, member: SimulatedMember) -> None:
        own = member.image.brokers.get(member.node_id)
        epoch = member.lifecycle.broker_epoch
        require(
            own is not None and own.broker_epoch >= epoch and member.image.version > epoch,
            OPENED_IN_TIME,
            f"node {member.node_id} with epoch {epoch} at {member.image.version}",
        )

    def fences(self, controller: SimulatedMember, session: BrokerSession) -> None:
        member = self.members[session.node_id]
        self._cluster.trace.count_fault("broker fenced")
        beat_ms = controller.beats.get(session)
        if not member.is_running or member.lifecycle.broker_epoch != session.broker_epoch or beat_ms is None:
            return
        ago_ms = controller.replica.local_ms() - beat_ms
        require(
            ago_ms >= ALIVE_SHARE * SESSION_MS,
            ALIVE_IS_NOT_FENCED,
            f"node {session.node_id} sent a heartbeat {ago_ms:.0f} ms ago",
        )

    def failed(self, member: SimulatedMember, message: str) -> None:
        raise Violation(NOT_REFUSED, f"node {member.node_id}: {message}")

    # After healing

    @property
    def is_healthy(self) -> bool:
        """Return whether every broker is unfenced and every partition has a leader, in the image of every member."""
        return all(_is_whole(member, len(self.members)) for member in self.members)

    def check_images(self) -> None:
        first, *others = self.members
        for other in others:
            if other.image.version == first.image.version:
                require(other.image == first.image, EQUAL_IMAGES, f"nodes {first.node_id} and {other.node_id} differ")


def _is_whole(member: SimulatedMember, count: int) -> bool:
    image = member.image
    if len(image.brokers) < count or any(broker.fenced for broker in image.brokers.values()):
        return False
    return all(partition.leader != NO_NODE for topic in image.topics.values() for partition in topic.partitions)
