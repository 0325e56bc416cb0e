"""Several controller hosts in one process: virtual disks and clocks, and messages that a test can cut off."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from headrace.broker.cluster.controller_host import ControllerHost
from headrace.broker.cluster.metadata_log import SNAPSHOT_INTERVAL_BYTES, MetadataLog
from headrace.broker.cluster.proposal import Proposal, ProposalFailed
from headrace.broker.cluster.quorum import MetadataQuorum
from headrace.broker.timers import Timers
from headrace.core.controller.commands import BrokerHeartbeat, BrokerRegistration, CreatableTopic, TopicResult
from headrace.core.controller.delta import MetadataDelta
from headrace.core.controller.settings import ControllerSettings
from headrace.core.raft.ids import DirectoryId, ReplicaKey
from headrace.core.raft.message_codec import decode_message, encode_message
from headrace.core.raft.messages import Message
from headrace.core.raft.settings import RaftSettings
from headrace.model.ids import NodeId
from headrace.sim.world import VirtualMachine, World
from tests.core.controllers import CLUSTER_ID, new_broker

FOLDER = "data"
METADATA_FOLDER = "data/__cluster_metadata-0"
STEP_MS = 10
STEPS_MAX = 3_000


@dataclass(eq=False)
class QuorumNode:
    """One node: the part of `broker/node.py` that runs the quorum and the controller."""

    cluster: "QuorumCluster"
    node_id: NodeId
    machine: VirtualMachine
    founds: bool = False
    wipes: int = 0
    directory: str = ""
    """The directory id, if the folder was written elsewhere."""
    running: bool = False
    deltas: list[MetadataDelta] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)

    @property
    def key(self) -> ReplicaKey:
        return ReplicaKey(self.node_id, DirectoryId(self.directory or f"directory-{self.node_id}-{self.wipes}"))

    def boot(self, **raft: int) -> None:
        machine, others = self.machine, tuple(each for each in self.cluster.nodes if each != self.node_id)
        machine.disk.make_directory(FOLDER)
        machine.disk.sync_directory(".")
        log, self.replay = MetadataLog.open(
            machine.disk,
            FOLDER,
            me=self.key,
            founds=self.founds,
            wall_ms=machine.clock.wall_ms(),
            snapshot_interval_bytes=self.cluster.snapshot_interval_bytes,
        )
        self.timers = Timers(machine.clock)
        self.quorum = MetadataQuorum(
            log,
            self.replay,
            me=self.key,
            spawner=machine.spawner,
            timers=self.timers,
            clock=machine.clock,
            entropy=machine.entropy,
            settings=RaftSettings(entries_kept_max=self.cluster.entries_kept_max),
            peers=others,
            may_vote=True,
            send=self.cluster.send,
            notice=self.notices.append,
        )
        self.quorum.voter_target = self.cluster.target
        self.host = ControllerHost(
            self.quorum,
            self.replay,
            settings=ControllerSettings(),
            spawner=machine.spawner,
            clock=machine.clock,
            entropy=machine.entropy,
            notice=self.notices.append,
        )
        self.deltas.clear()
        self.host.subscribe(self.deltas.append)
        self.host.start()
        self.running = True

    def kill(self, *, power: bool = False) -> None:
        self.running = False
        self.machine.cut_power() if power else self.machine.kill()

    def wipe(self) -> None:
        """Lose the data folder of a node that is not running; it returns with another directory id."""
        self.wipes += 1
        self.founds = False  # a node with peers never founds
        self.machine = self.cluster.world.machine(f"node-{self.node_id}-{self.wipes}")

    def turn(self) -> None:
        self.timers.run_due(self.machine.clock.monotonic_ms())
        self.machine.spawner.run_completions()

    def create(self, name: str) -> Proposal[tuple[TopicResult, ...]]:
        return self.host.create_topics([CreatableTopic(name=name, partition_count=2)])

    @property
    def topics(self) -> list[str]:
        return list(self.host.image.topics)


class QuorumCluster:
    def __init__(
        self,
        count: int = 3,
        *,
        seed: int = 1,
        target: int = 3,
        snapshot_interval_bytes: int = SNAPSHOT_INTERVAL_BYTES,
        entries_kept_max: int = 10_000,
    ) -> None:
        self.world = World(seed)
        self.target = target
        self.snapshot_interval_bytes = snapshot_interval_bytes
        self.entries_kept_max = entries_kept_max
        self.sent: list[Message] = []
        self._in_flight: deque[bytes] = deque()
        self.cut: set[int] = set()
        """Nodes that no message reaches or leaves."""
        self.nodes: dict[NodeId, QuorumNode] = {}
        for number in range(1, count + 1):
            machine = self.world.machine(f"node-{number}")
            self.nodes[NodeId(number)] = QuorumNode(self, NodeId(number), machine, founds=number == 1)

    def node(self, node_id: int) -> QuorumNode:
        return self.nodes[NodeId(node_id)]

    def send(self, message: Message) -> None:
        self.sent.append(message)
        if not self.cut & {message.source.node_id, message.to.node_id}:
            self._in_flight.append(encode_message(message))

    def step(self) -> None:
        self.world.time.advance(STEP_MS)
        arriving, self._in_flight = self._in_flight, deque()
        for content in arriving:
            message = decode_message(content)
            receiver = self.nodes.get(message.to.node_id)
            if receiver is not None and receiver.running and not self.cut & {message.source.node_id, receiver.node_id}:
                receiver.quorum.deliver(message)
        for node in self.nodes.values():
            if node.running:
                node.turn()

    def run_until(self, condition: Callable[[], bool]) -> None:
        for _ in range(STEPS_MAX):
            if condition():
                return
            self.step()
        raise AssertionError("it does not come to that")

    def run_for(self, duration_ms: int) -> None:
        for _ in range(duration_ms // STEP_MS):
            self.step()

    @property
    def running(self) -> list[QuorumNode]:
        return [node for node in self.nodes.values() if node.running]

    @property
    def active(self) -> QuorumNode | None:
        connected = [node for node in self.running if node.host.is_active and node.node_id not in self.cut]
        return max(connected, key=lambda node: node.quorum.term, default=None)

    def leader(self) -> QuorumNode:
        self.run_until(lambda: self.active is not None)
        assert self.active is not None
        return self.active

    def boot(self) -> "QuorumCluster":
        """Start the founder, register its broker, and let the others join and become voters."""
        self.node(1).boot()
        leader = self.leader()
        leader.host.found_cluster()
        registration = leader.host.register_broker(new_broker(1), cluster_id=CLUSTER_ID)
        outcome = self.outcome(registration)
        assert isinstance(outcome, BrokerRegistration)
        offset = leader.host.image.version - 1
        beat = BrokerHeartbeat(node_id=NodeId(1), broker_epoch=outcome.broker_epoch, metadata_offset=offset)
        self.outcome(leader.host.heartbeat(beat))
        for node in self.nodes.values():
            if not node.running:
                node.boot()
        self.run_until(lambda: self.has_voters(min(self.target, len(self.nodes))))
        return self

    def has_voters(self, count: int) -> bool:
        """Return whether every running node knows a voter set of this size, of which all are running."""
        keys = {node.key for node in self.running}
        return all(len(node.quorum.voters) == count and {*node.quorum.voters} <= keys for node in self.running)

    def outcome(self, proposal: Proposal[object]) -> object:
        self.run_until(lambda: proposal.outcome is not None)
        return proposal.outcome

    def create(self, name: str) -> None:
        """Create a topic at whichever node is the active controller, as often as needed."""
        for _ in range(20):
            outcome = self.outcome(self.leader().create(name))
            if not isinstance(outcome, ProposalFailed):
                return
        raise AssertionError("no controller stays active")

    def settle(self) -> None:
        """Run until all running, connected nodes show the same."""
        self.settle_running([node for node in self.running if node.node_id not in self.cut])

    def settle_running(self, nodes: list[QuorumNode]) -> None:
        self.run_until(lambda: len({node.host.image.version for node in nodes}) == 1 and self.active is not None)
        assert all(node.host.image == nodes[0].host.image for node in nodes)
