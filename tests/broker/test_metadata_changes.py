"""ListMetadataChanges: waits for a change, says what changed, and admits when it does not know all of it."""

from typing import Any

from headrace.broker.metadata_changes import ChangeKind
from headrace.core.controller.delta import MetadataDelta
from headrace.model.limits import METADATA_CHANGES_KEPT_MAX, METADATA_CHANGES_UNASKED_MS_MAX
from headrace.wire.apis import ApiKey
from headrace.wire.messages.list_metadata_changes import ListMetadataChangesRequest, ListMetadataChangesResponse
from tests.broker.virtual import TOPIC_RESOURCE, VirtualBroker

WAIT_MS = 20_000


def send(client: Any, after: int, wait_ms: int = WAIT_MS) -> int:
    request = ListMetadataChangesRequest(after_version=after, wait_ms=wait_ms)
    correlation: int = client.send(ApiKey.LIST_METADATA_CHANGES, 0, request)
    return correlation


def changes(client: Any, after: int, wait_ms: int = WAIT_MS) -> ListMetadataChangesResponse:
    response: ListMetadataChangesResponse = client.wait(send(client, after, wait_ms))
    return response


def waits(broker: VirtualBroker) -> int:
    return len(broker.node.broker.metadata_changes.waiting)


def test_a_follower_learns_of_each_change_once() -> None:
    broker = VirtualBroker()
    follower, other = broker.client(), broker.client()
    first = changes(follower, -1)
    assert not first.is_complete
    assert [(each.broker_id, each.is_fenced) for each in first.brokers or ()] == [(broker.node.config.node_id, False)]
    waiting = send(follower, first.version)
    broker.steps()
    assert waits(broker) == 1
    assert other.create_topic("t", partitions=2).error_code == 0
    created = follower.wait(waiting)
    assert created.is_complete
    assert [(each.name, each.change, each.partition_count) for each in created.topics] == [
        ("t", ChangeKind.TOPIC_CREATED, 2)
    ]
    assert created.version > first.version
    assert created.brokers is None
    assert other.alter_configs(TOPIC_RESOURCE, "t", {"retention.ms": 1_000}) == 0
    configured = changes(follower, created.version)
    assert [(each.resource_type, each.resource_name) for each in configured.configs] == [(TOPIC_RESOURCE, "t")]
    assert configured.topics == ()
    assert other.delete_topic("t") == 0
    deleted = changes(follower, configured.version)
    assert [(each.name, each.change) for each in deleted.topics] == [("t", ChangeKind.TOPIC_DELETED)]
    assert deleted.topics[0].topic_id == created.topics[0].topic_id
    both = changes(follower, first.version)
    assert [each.change for each in both.topics] == [ChangeKind.TOPIC_CREATED, ChangeKind.TOPIC_DELETED]
    assert both.version == deleted.version


def test_without_a_change_it_ends_in_time_and_leaves_nothing() -> None:
    broker = VirtualBroker()
    client, gone = broker.client(), broker.client()
    version = changes(client, -1).version
    waiting = send(client, version)
    send(gone, version)
    broker.steps()
    assert waits(broker) == 2
    gone.close()
    broker.steps()
    assert waits(broker) == 1
    broker.pass_time(WAIT_MS)
    found = client.wait(waiting)
    assert (found.is_complete, found.version) == (True, version)
    assert waits(broker) == 0


def test_a_follower_that_missed_too_much_gets_a_snapshot() -> None:
    broker = VirtualBroker().with_topic()
    client = broker.client()
    first = changes(client, -1).version
    for number in range(3):
        assert client.alter_configs(TOPIC_RESOURCE, "t", {"retention.ms": 1_000 + number}) == 0
    assert len(changes(client, first).configs) == 1, "a change that comes again is kept once"
    many = MetadataDelta(topic_configs_changed=tuple(f"t{number}" for number in range(METADATA_CHANGES_KEPT_MAX)))
    broker.node.broker.metadata_changes.image_changed(many, broker.node.broker.image.version)
    assert client.create_topic("last").error_code == 0
    lost = changes(client, first)
    assert not lost.is_complete
    assert lost.brokers is not None
    assert changes(client, lost.version, wait_ms=0).is_complete


def test_nothing_is_kept_while_no_client_asks() -> None:
    broker = VirtualBroker().with_topic()
    client = broker.client()
    kept = broker.node.broker.metadata_changes._version_of
    assert client.create_topic("unnoticed").error_code == 0
    assert not kept
    version = changes(client, -1).version
    assert client.create_topic("noticed").error_code == 0
    assert kept
    broker.pass_time(METADATA_CHANGES_UNASKED_MS_MAX + 1)
    assert client.create_topic("too-late").error_code == 0
    assert not kept
    assert not changes(client, version).is_complete


def test_a_stop_answers_those_that_wait() -> None:
    broker = VirtualBroker()
    client = broker.client()
    waiting = send(client, changes(client, -1).version)
    broker.steps()
    broker.node.begin_stop()
    assert client.wait(waiting).is_complete
