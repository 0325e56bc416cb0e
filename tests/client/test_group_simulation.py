"""Groups that come and go in the simulator, by seed: no partition has two owners, and every record is read."""

from random import Random
from typing import Any

import pytest

from headrace.client.config import ConsumerConfig
from headrace.client.loop import LoopConsumer

from .test_loop_front import RunContext

MEMBERS_MAX = 4
ACTIONS = 12
STEPS_BETWEEN = 60
PROTOCOLS: dict[str, dict[str, Any]] = {
    "range": {"partition_assignment_strategy": "range"},
    "roundrobin": {"partition_assignment_strategy": "roundrobin"},
    "cooperative": {"partition_assignment_strategy": "cooperative-sticky"},
    "kip-848": {"group_protocol": "consumer"},
}


class Group:
    """The members of one group, each on a machine of its own."""

    def __init__(self, context: RunContext, options: dict[str, Any]) -> None:
        self.context = context
        self.config = ConsumerConfig(
            group_id="g", auto_offset_reset="earliest", heartbeat_interval_ms=200, session_timeout_ms=6_000, **options
        )
        self.members: list[LoopConsumer] = []
        self.read: set[int] = set()

    def join(self) -> None:
        member = self.context.add_client().consumer(self.config)
        member.subscribe("t")
        self.members.append(member)

    def leave(self, place: int) -> None:
        member = self.members.pop(place)
        ended: list[Any] = []
        member.commit(None, ended=lambda _: member.leave(ended=ended.append))
        self.context.world.run_until(lambda: self.turn() or bool(ended))

    def turn(self) -> bool:
        """Every member takes what there is; no partition has two owners."""
        owners: dict[Any, int] = {}
        for place, member in enumerate(self.members):
            self.read.update(int(record.value) for record in member.take(5))
            assert member._group is not None
            for partition in member._group.owned():
                assert partition not in owners, f"{partition} belongs to members {owners[partition]} and {place}"
                owners[partition] = place
        return False


@pytest.mark.parametrize("protocol", sorted(PROTOCOLS))
@pytest.mark.parametrize("seed", [1, 2])
def test_members_that_come_and_go(seed: int, protocol: str) -> None:
    draw = Random(seed)
    context = RunContext(seed)
    group = Group(context, PROTOCOLS[protocol])
    sent = 0
    for _ in range(ACTIONS):
        action = draw.choice(("join", "join", "leave", "send", "kill"))
        if action == "join" and len(group.members) < MEMBERS_MAX:
            group.join()
        elif action == "leave" and len(group.members) > 1:
            group.leave(draw.randrange(len(group.members)))
        elif action == "send":
            context.send(range(sent, sent + 6))
            sent += 6
        elif action == "kill":
            context.broker.machine.kill()
            context.broker.boot()
        for _ in range(STEPS_BETWEEN):
            context.world.step()
            group.turn()
    if not group.members:
        group.join()
    context.send(range(sent, sent + 3))
    everything = set(range(sent + 3))
    context.world.run_until(lambda: group.turn() or group.read == everything)
