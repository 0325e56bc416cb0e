"""Raft replicas whose messages, syncs and time move only when a test says so."""

from collections import deque
from typing import Any

from headrace.core.raft.entries import StateSnapshot, Stored
from headrace.core.raft.events import DeadlinePassed, Received, SnapshotChunkRead, SnapshotTaken, Synced
from headrace.core.raft.ids import DirectoryId, Index, ReplicaKey, voter_set
from headrace.core.raft.machine import RaftMachine
from headrace.core.raft.settings import RaftSettings
from headrace.model.ids import NodeId
from headrace.sim.machines.replica_disk import ReplicaDisk

ELECTION_TIMEOUT_MS = 1_000
CHUNK_BYTES = 8
STEPS_MAX = 10_000


def key(text):
    """`2` is node 2 with its first directory, `2/b` the one after its folder was lost."""
    node, _, directory = text.partition("/")
    return ReplicaKey(NodeId(int(node)), DirectoryId(directory or "a"))


class Replica:
    """One machine with its disk. Syncs happen at once unless `holds_syncs`."""

    def __init__(self, me, stored, peers, append_entries_max=1_000):
        self.key = me
        self.disk = ReplicaDisk(stored)
        self._peers = peers
        self._settings = RaftSettings(
            election_timeout_ms=ELECTION_TIMEOUT_MS, heartbeat_ms=100, append_entries_max=append_entries_max
        )
        self.machine = None
        self.holds_syncs = False
        self.unsynced: deque[Any] = deque()
        self.applied = []

    @property
    def state(self):
        return self.machine.state

    def start(self, now_ms):
        content = self.disk.snapshots[self.disk.stored.snapshot.index]
        self.applied = content.decode().split() if content else []
        self.machine = RaftMachine(
            me=self.key,
            stored=self.disk.stored,
            draw=lambda bound: 0,
            now_ms=now_ms,
            settings=self._settings,
            peers=self._peers,
        )

    def crash(self):
        """Lose everything that is not synced."""
        self.machine = None
        self.disk.forget_unsynced()
        self.unsynced.clear()


class Harness:
    """A cluster. `messages` are on their way until `deliver`; `outcomes` and `lines` tell what happened."""

    def __init__(self, voters=3, observers=0, append_entries_max=1_000):
        nodes = range(1, voters + observers + 1)
        founders = voter_set(*(key(str(node)) for node in range(1, voters + 1)))
        self.now_ms = 0.0
        self.replicas = {}
        self.messages: deque[Any] = deque()
        self.outcomes = []
        self.sent = []
        self.cuts = set()
        for node in nodes:
            stored = Stored(snapshot=StateSnapshot(voters=founders if node <= voters else ()))
            peers = tuple(NodeId(each) for each in nodes if each != node)
            self.replicas[node] = Replica(key(str(node)), stored, peers, append_entries_max)
            self.replicas[node].start(self.now_ms)

    def __getitem__(self, node):
        return self.replicas[node]

    # Events

    def step(self, node, event):
        replica = self.replicas[node]
        if replica.machine is None:
            return
        effects = replica.machine.step(event, self.now_ms)
        if effects.write is not None:
            replica.disk.submit(effects.write)
            replica.unsynced.append(effects.write.number)
        self._send(effects.send)
        for read in effects.read_snapshots:
            self._read_snapshot(node, read)
        if effects.restore is not None:
            replica.applied = replica.disk.incoming_snapshot().decode().split()
        replica.applied += [entry.payload.decode() for entry in effects.committed if entry.payload]
        self.outcomes += effects.outcomes
        if not replica.holds_syncs:
            self.sync(node)

    def _send(self, messages):
        self.sent += messages
        self.messages += messages

    def sync(self, node):
        replica = self.replicas[node]
        while replica.unsynced:
            number = replica.unsynced.popleft()
            for write in replica.disk.sync(number):
                self._send(write.then_send)
            self.step(node, Synced(number=number))

    def _read_snapshot(self, node, read):
        content = self.replicas[node].disk.snapshots.get(read.snapshot_index)
        end = read.position + CHUNK_BYTES
        chunk = SnapshotChunkRead(
            follower=read.follower,
            snapshot_index=read.snapshot_index,
            position=read.position,
            chunk=None if content is None else content[read.position : end],
            is_last=content is not None and end >= len(content),
        )
        self.step(node, chunk)

    def snapshot(self, node):
        replica = self.replicas[node]
        self.step(node, SnapshotTaken(index=Index(replica.state.applied_index)))
        replica.disk.keep_snapshot(replica.state.log.snapshot, " ".join(replica.applied).encode())

    def tick(self, node):
        """Let the replica's next deadline pass."""
        replica = self.replicas[node]
        self.now_ms = max(self.now_ms, replica.machine.next_deadline_ms())
        self.step(node, DeadlinePassed())

    def wait(self, duration_ms):
        """Let time pass for everyone; deadlines and messages come in their order."""
        end_ms = self.now_ms + duration_ms
        for _ in range(STEPS_MAX):
            self.deliver()
            due = [
                (replica.machine.next_deadline_ms(), node)
                for node, replica in self.replicas.items()
                if replica.machine is not None
            ]
            deadline_ms, node = min(due)
            if deadline_ms > end_ms:
                break
            self.now_ms = max(self.now_ms, deadline_ms)
            self.step(node, DeadlinePassed())
        self.now_ms = end_ms

    def deliver(self):
        """Deliver everything, with what it causes."""
        for _ in range(STEPS_MAX):
            if not self.messages:
                return
            self.deliver_one()
        raise AssertionError("messages do not end")

    def deliver_one(self):
        message = self.messages.popleft()
        if (message.source.node_id, message.to.node_id) not in self.cuts:
            self.step(message.to.node_id, Received(message=message))

    def elect(self, node):
        """Have a replica win an election."""
        self.now_ms += 2 * ELECTION_TIMEOUT_MS
        self.tick(node)
        self.deliver()

    # Faults

    def cut(self, first, second):
        """Lose everything between two groups of nodes."""
        self.cuts |= {(a, b) for a in first for b in second} | {(b, a) for a in first for b in second}

    def heal(self):
        self.cuts.clear()

    def crash(self, node):
        self.replicas[node].crash()

    def start(self, node):
        self.replicas[node].start(self.now_ms)

    def wipe(self, node, directory):
        """Lose the folder; the node returns with a new directory id."""
        old = self.replicas[node]
        peers = tuple(NodeId(each) for each in self.replicas if each != node)
        self.replicas[node] = Replica(ReplicaKey(old.key.node_id, DirectoryId(directory)), Stored(), peers)
        self.replicas[node].start(self.now_ms)

    def take_outcomes(self):
        outcomes, self.outcomes = self.outcomes, []
        return outcomes
