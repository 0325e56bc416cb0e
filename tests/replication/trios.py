"""Three virtual brokers of one cluster, and a topic with a replica on each."""

from headrace.core.controller.commands import CreatableTopic
from headrace.core.controller.settings import ControllerSettings
from headrace.core.replication.follower import Follower
from headrace.core.replication.leader import Leader
from headrace.model.ids import NodeId
from headrace.wire.records.builder import NewRecord, build_batch
from tests.peers.nodes import PeerWorld

TOPIC = "t"
LAG_MS = 1_000


class Trio:
    def __init__(self, *, seed=1, configs=(), settings=None, has_racks=False):
        """With racks, broker 2 is in the rack "rack2", and so on."""
        self.peers = PeerWorld(seed)
        common = {"replica.lag.time.max.ms": str(LAG_MS), "headrace.controllers.target": "1", **(settings or {})}
        self.nodes = {
            number: self.peers.node(
                number,
                peers=() if number == 1 else (1,),
                settings=common | ({"broker.rack": f"rack{number}"} if has_racks else {}),
            )
            for number in (1, 2, 3)
        }
        self.peers.run_until(lambda: all(each.node.ready for each in self.nodes.values()))
        self.controller = self.nodes[1].node.broker.controller
        self.controller.configure(ControllerSettings(replication_factor_max=3))
        self.create(configs)

    def create(self, configs=()):
        assignment = [(0, [NodeId(2), NodeId(1), NodeId(3)])]
        self.controller.create_topics([CreatableTopic(name=TOPIC, assignments=assignment, configs=configs)])
        self.peers.run_until(lambda: all(self.has(number) for number in self.nodes))

    def has(self, number):
        local = self.nodes[number].node.broker.partitions.by_name.get(TOPIC.encode())
        return local is not None and 0 in local.replicas

    def replica(self, number):
        return self.nodes[number].node.broker.partitions.by_name[TOPIC.encode()].replicas[0]

    def role(self, number):
        return self.replica(number).role

    @property
    def leader(self):
        (leader,) = [number for number in self.nodes if isinstance(self.role(number), Leader)]
        return leader

    @property
    def followers(self):
        return [number for number in self.nodes if isinstance(self.role(number), Follower)]

    def append(self, *values):
        """Append a batch at the leader; it is written at the end of the leader's turn."""
        return self.append_at(self.leader, *values)

    def append_at(self, number, *values):
        batch = bytearray(build_batch([NewRecord(timestamp=0, key=None, value=value) for value in values]))
        return self.replica(number).append_own(batch, 0)

    def run_until(self, reached):
        self.peers.run_until(reached)

    def log_bytes(self, number):
        """Return the batches of a replica's log; one that filled its disk has other segments than the others."""
        log, disk = self.replica(number).log, self.nodes[number].machine.disk
        return b"".join(bytes(disk.read(log.files.handle(each.log), each.size, 0)) for each in log.segments)
