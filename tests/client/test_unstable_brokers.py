"""Leaders that send a client to each other and groups that never settle, on real connections: waits end in time."""

import threading
import time
from contextlib import ExitStack
from functools import partial

import pytest

from headrace.client import Consumer, Producer
from headrace.client.errors import DeadlineExceeded
from headrace.model.errors import ErrorCode
from headrace.wire.apis import ApiKey
from headrace.wire.messages import consumer_group_heartbeat, join_group, sync_group

from .hostile import ScriptedServer
from .patience import retry_until_deadline
from .test_unstable_leaders import Flapping, RestlessCoordinator

pytestmark = [pytest.mark.process, pytest.mark.usefixtures("front")]

WAIT_S_MAX = 25
"""Below what a client waits by default."""

REQUESTS_PER_SECOND_MAX = 150
LEADER_KEYS = {
    ApiKey.METADATA,
    ApiKey.INIT_PRODUCER_ID,
    ApiKey.PRODUCE,
    ApiKey.FETCH,
    ApiKey.LIST_OFFSETS,
    ApiKey.OFFSET_FOR_LEADER_EPOCH,
}
GROUP_KEYS = {
    ApiKey.METADATA,
    ApiKey.FIND_COORDINATOR,
    ApiKey.JOIN_GROUP,
    ApiKey.SYNC_GROUP,
    ApiKey.HEARTBEAT,
    ApiKey.LEAVE_GROUP,
    ApiKey.CONSUMER_GROUP_HEARTBEAT,
}


def give_up(bootstrap: str, delivery_timeout_ms: float) -> None:
    with Producer(bootstrap, delivery_timeout_ms=delivery_timeout_ms, linger_ms=0) as producer:
        delivery = producer.send("t", b"v", partition=0)
        with pytest.raises(DeadlineExceeded, match="NOT_LEADER_OR_FOLLOWER"):
            delivery.result()


@pytest.mark.parametrize("names_leader", [True, False])
def test_leaders_that_send_us_to_each_other(names_leader: bool) -> None:
    world, lock = Flapping(names_leader=names_leader), threading.Lock()

    def answering(node: int) -> ScriptedServer:
        def answer(request: object) -> object:
            with lock:
                return world.answer(node, request)

        return ScriptedServer(LEADER_KEYS, answer)

    with ExitStack() as closing:
        servers = {node: closing.enter_context(answering(node)) for node in (1, 2)}
        world.addresses = {node: ("127.0.0.1", server.port) for node, server in servers.items()}
        bootstrap = servers[1].address
        began = time.monotonic()
        retry_until_deadline(partial(give_up, bootstrap))
        with Consumer("t", bootstrap_servers=bootstrap, auto_offset_reset="earliest") as consumer:
            assert consumer.poll(timeout_ms=600) == []
        assert world.requests < REQUESTS_PER_SECOND_MAX * (time.monotonic() - began), (
            "no broker is asked without a pause"
        )


@pytest.mark.parametrize(
    ("protocol", "at", "code"),
    [
        ("classic", join_group.JoinGroupRequest, ErrorCode.REBALANCE_IN_PROGRESS),
        ("classic", sync_group.SyncGroupRequest, ErrorCode.ILLEGAL_GENERATION),
        ("consumer", consumer_group_heartbeat.ConsumerGroupHeartbeatRequest, ErrorCode.FENCED_MEMBER_EPOCH),
    ],
)
def test_a_group_that_never_settles(protocol: str, at: type, code: ErrorCode) -> None:
    world = RestlessCoordinator(code, at=at)
    with ScriptedServer(GROUP_KEYS, lambda request: world.answer(1, request)) as server:
        world.address = ("127.0.0.1", server.port)
        began = time.monotonic()
        with Consumer("t", bootstrap_servers=server.address, group_id="g", group_protocol=protocol) as consumer:
            assert consumer.poll(timeout_ms=600) == []
            assert consumer.assignment() == ()
        elapsed_s = time.monotonic() - began
    assert elapsed_s < WAIT_S_MAX
    assert world.requests < REQUESTS_PER_SECOND_MAX * elapsed_s, "no broker is asked without a pause"
