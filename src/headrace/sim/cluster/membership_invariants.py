"""Invariants of brokers as members of their cluster, seen at their disks and where a broker is fenced."""

import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from headrace.broker.cluster.proposal import Proposal
from headrace.broker.node import Node
from headrace.core.controller.commands import BrokerHeartbeat, BrokerResult, BrokerState
from headrace.core.controller.lifecycle import NO_BROKER_EPOCH
from headrace.core.controller.names import CLUSTER_METADATA_TOPIC
from headrace.model.ids import NodeId
from headrace.sim.checkers.violation import Violation, require
from headrace.sim.machines.member_group import ALIVE_IS_NOT_FENCED, ALIVE_SHARE, OPENED_IN_TIME
from headrace.sim.node import VirtualNode

_PARTITION_FOLDER = re.compile(r"^data/(?P<topic>[^/]+)-\d+$")


class MembershipInvariants:
    """Watches every process of every broker from its start on."""

    def __init__(self, nodes: Sequence[VirtualNode]) -> None:
        self._nodes = {NodeId(virtual.config.node_id): virtual for virtual in nodes}
        self._beats: dict[tuple[str, int, NodeId, int], float] = {}
        """When a process of a controller last got a heartbeat of a broker epoch, by its own clock."""
        for virtual in nodes:
            virtual.machine.disk.on_folder_named = partial(self._folder_named, virtual)
            virtual.on_composed = partial(self._watch, virtual)

    def _folder_named(self, virtual: VirtualNode, path: str) -> None:
        """Check that a process which creates or renames the folder of a partition knows its partitions."""
        folder = _PARTITION_FOLDER.match(path)
        if folder is None or folder["topic"] == CLUSTER_METADATA_TOPIC:
            return
        node, name = virtual.node, virtual.machine.name
        if node is None:
            raise Violation(OPENED_IN_TIME, f"{name} names {path} before it can know its partitions")
        broker = node.broker
        own = broker.image.brokers.get(broker.node_id)
        require(
            own is not None and own.incarnation == broker.lifecycle._describe(NO_BROKER_EPOCH).incarnation,
            OPENED_IN_TIME,
            f"{name} names {path} with the image at {broker.image.version}",
        )

    # Fencing

    def _watch(self, virtual: VirtualNode, node: Node) -> None:
        membership, controller = node.broker.membership, node.broker.controller
        process = (virtual.machine.name, virtual.machine.boots)
        heartbeat, fence = membership.heartbeat, controller.fence_broker

        def take_beat(beat: BrokerHeartbeat) -> Proposal[BrokerState]:
            self._beats[*process, beat.node_id, beat.broker_epoch] = virtual.machine.clock.monotonic_ms()
            return heartbeat(beat)

        def fence_broker(node_id: NodeId, broker_epoch: int) -> Proposal[BrokerResult]:
            self._fences(virtual, process, node_id, broker_epoch)
            return fence(node_id, broker_epoch)

        _replace(membership, "heartbeat", take_beat)
        _replace(controller, "fence_broker", fence_broker)

    def _fences(self, controller: VirtualNode, process: tuple[str, int], node_id: NodeId, broker_epoch: int) -> None:
        """Check that the process is gone, or that its last heartbeat is old."""
        self._nodes[node_id].world.trace.count_fault("broker fenced")
        node = self._nodes[node_id].node
        beat_ms = self._beats.get((*process, node_id, broker_epoch))
        if node is None or node.broker.lifecycle.broker_epoch != broker_epoch or beat_ms is None:
            return
        ago_ms = controller.machine.clock.monotonic_ms() - beat_ms
        session_ms = controller.config.cluster.session_timeout_ms
        require(
            ago_ms >= ALIVE_SHARE * session_ms,
            ALIVE_IS_NOT_FENCED,
            f"broker {node_id} sent a heartbeat {ago_ms:.0f} ms ago",
        )


def _replace(owner: object, name: str, method: Callable[..., Any]) -> None:
    """Replace a method of one object."""
    assert callable(getattr(owner, name))
    setattr(owner, name, method)
