"""Changes of the cluster as events: each comes, once, and a client that was away learns what it missed."""

import asyncio
import json
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import takewhile

import httpx
import pytest

from headrace.client import Admin
from headrace.client.types import ChangedPartition, ChangedTopic, MetadataChanges, RegisteredBroker, TopicChangeKind
from headrace.manager.change_events import ChangeEvents, ChangeStream
from headrace.manager.cluster_address import ClusterAddress
from headrace.manager.limits import CHANGE_EVENTS_KEPT_MAX
from headrace.model.ids import TopicPartition
from headrace.testing import EmbeddedBroker
from tests.manager.manager_process import ManagerProcess
from tests.manager.test_streams import Event, events


@contextmanager
def changes(manager: ManagerProcess, **request: object) -> Iterator[Iterator[Event]]:
    with httpx.stream("GET", f"{manager.url}/v1/events", timeout=60, **request) as response:
        assert response.status_code == 200, response.read()
        yield events(response.iter_lines())


@pytest.mark.process
def test_changes_of_topics_and_groups_arrive(manager: ManagerProcess, broker: EmbeddedBroker) -> None:
    with changes(manager) as found:
        begin = next(found)
        assert begin["event"] == "begin"
        name = broker.create_topic("noticed", partitions=2)
        created = next(found)
        assert (created["event"], json.loads(created["data"])) == (
            "topic",
            {"topic": name, "change": "created", "partitions": 2},
        )
        manager.call("PATCH", f"/v1/topics/{name}", json={"partitions": 3})
        assert json.loads(next(found)["data"]) == {"topic": name, "change": "grew", "partitions": 3}
        manager.call("PATCH", f"/v1/topics/{name}", json={"configs": {"retention.ms": "1000"}})
        configured = next(found)
        assert (configured["event"], json.loads(configured["data"])) == ("configs", {"topic": name})
        manager.call("POST", "/v1/groups/noticed-group/reset", json={"to": "earliest", "topics": {name: []}})
        group = next(event for event in found if event["event"] == "group")
        assert json.loads(group["data"]) == {"group": "noticed-group", "state": "Empty", "before": None}
        manager.call("DELETE", f"/v1/topics/{name}", status=204)
        deleted = next(event for event in found if event["event"] == "topic" and name in event["data"])
        assert json.loads(deleted["data"])["change"] == "deleted"


@pytest.mark.process
def test_a_client_that_comes_back_gets_what_it_missed(manager: ManagerProcess, broker: EmbeddedBroker) -> None:
    with changes(manager, params={"kind": "topic"}) as found:
        last = next(found)["id"]
    for number in range(3):
        broker.create_topic(f"missed-{number}")
    with changes(manager, params={"kind": "topic"}, headers={"last-event-id": last}) as found:
        names = [json.loads(next(found)["data"])["topic"] for _ in range(3)]
    assert names == [f"missed-{number}" for number in range(3)]
    with changes(manager, params={"after": 0}) as found:
        assert next(found)["event"] == "reset"


@pytest.mark.process
def test_a_filter_lets_topics_and_kinds_pass(manager: ManagerProcess, broker: EmbeddedBroker) -> None:
    with changes(manager, params={"kind": "topic", "topic": ["kept-a", "kept-b"]}) as found:
        next(found)
        for name in ("other", "kept-a", "another", "kept-b"):
            broker.create_topic(name)
        assert [json.loads(next(found)["data"])["topic"] for _ in range(2)] == ["kept-a", "kept-b"]
    for wrong in ({"kind": "rumour"}, {"after": -1}, {"topic": ["t"] * 101}):
        manager.call("GET", "/v1/events", params=wrong, status=400)


@pytest.mark.process
def test_streams_of_changes_end_with_the_manager(broker: EmbeddedBroker) -> None:
    with ManagerProcess(broker.bootstrap_servers) as manager, changes(manager) as found:
        next(found)
        manager.process.terminate()
        assert list(found) == []
        assert manager.stop() == 0


def changed(version: int, **parts: object) -> MetadataChanges:
    empty: dict[str, object] = {"topics": (), "partitions": (), "configs": (), "brokers": None, "is_complete": True}
    return MetadataChanges(version=version, **{**empty, **parts})  # type: ignore[arg-type]


def taken(stream: ChangeStream) -> list[bytes]:
    """Return the events that wait for the client of a stream."""

    async def all_events() -> list[bytes]:
        stream.end()
        return [content async for content in stream.events()]

    return [part for part in b"".join(asyncio.run(all_events())).split(b"\n\n") if part]


def followed(*found: MetadataChanges) -> ChangeEvents:
    made = ChangeEvents(ClusterAddress("127.0.0.1:1"))
    made._version = made._kept_after = 0
    for each in found:
        made._take(each)
    return made


def created(topic: str) -> ChangedTopic:
    return ChangedTopic(TopicChangeKind.CREATED, topic, bytes(16), 1)


def test_the_state_of_partitions_and_brokers_is_in_the_event() -> None:
    made = followed(
        changed(
            5, partitions=(ChangedPartition("t", 1, 2, 7, (1, 2), (2,)),), brokers=(RegisteredBroker(1, True, False),)
        )
    )
    stream = ChangeStream(frozenset(("partition", "broker")), frozenset())
    made._catch_up(stream, 0)
    partition, broker = taken(stream)
    assert partition.startswith(b"id: 5\nevent: partition\ndata: ")
    state = json.loads(partition.partition(b"data: ")[2])
    assert state == {"topic": "t", "partition": 1, "leader": 2, "leader_epoch": 7, "replicas": [1, 2], "isr": [2]}
    assert json.loads(broker.partition(b"data: ")[2]) == {"brokers": [{"broker": 1, "fenced": True, "stopping": False}]}


@pytest.mark.parametrize(("after", "seen"), [(0, 3), (1, 2), (3, 0)])
def test_a_stream_continues_after_its_last_event(after: int, seen: int) -> None:
    made = followed(*(changed(version, topics=(created(f"t{version}"),)) for version in (1, 2, 3)))
    stream = ChangeStream(frozenset(("topic",)), frozenset())
    made._catch_up(stream, after)
    assert len(taken(stream)) == seen


def test_what_is_not_known_any_more_is_not_skipped_silently() -> None:
    many = [changed(version, topics=(created(f"t{version}"),)) for version in range(1, CHANGE_EVENTS_KEPT_MAX + 11)]
    made = followed(*many)
    for after, first in ((9, b"reset"), (10, b"topic"), (CHANGE_EVENTS_KEPT_MAX + 11, b"reset")):
        stream = ChangeStream(frozenset(("topic",)), frozenset())
        made._catch_up(stream, after)
        assert b"event: " + first in taken(stream)[0], after
    lost = followed(changed(1, topics=(created("t"),)), changed(9, is_complete=False))
    stream = ChangeStream(frozenset(("topic",)), frozenset())
    lost._catch_up(stream, 1)
    assert b"event: reset" in taken(stream)[0]


def test_a_slow_client_gets_a_reset_instead_of_a_gap() -> None:
    made = followed()
    stream = ChangeStream(frozenset(("topic",)), frozenset())
    made._streams.add(stream)
    for version in range(1, CHANGE_EVENTS_KEPT_MAX + 3):
        made._take(changed(version, topics=(created(f"t{version}"),)))
    waiting = taken(stream)
    assert b"event: reset" in waiting[0]
    assert [part.split(b"\n")[0] for part in takewhile(lambda part: b"topic" in part, waiting[1:])] == [
        b"id: %d" % (CHANGE_EVENTS_KEPT_MAX + 2)
    ]


def test_a_group_is_reported_when_its_state_changes() -> None:
    made = followed()
    stream = ChangeStream(frozenset(("group",)), frozenset())
    made._streams.add(stream)
    for states in ({"a": "Empty"}, {"a": "Empty"}, {"a": "Stable", "b": "Empty"}, {"b": "Empty"}):
        made._compare(states)
    found = [json.loads(part.partition(b"data: ")[2]) for part in taken(stream)]
    assert [(each["group"], each["state"]) for each in found] == [("a", "Stable"), ("b", "Empty"), ("a", "Dead")]


@pytest.mark.process
def test_the_groups_are_known_before_a_stream_begins(broker: EmbeddedBroker) -> None:
    """Otherwise a group that is created right after the event `begin` could be in the first list."""

    async def begun() -> dict[str, str] | None:
        made = ChangeEvents(ClusterAddress(broker.bootstrap_servers))
        stream = made.stream(kinds=("group",), topics=(), after_version=None)
        try:
            await anext(stream)
            return made._groups
        finally:
            await stream.aclose()
            await made.close()

    with Admin(broker.bootstrap_servers) as admin:
        admin.commit_group_offsets("before-the-stream", {TopicPartition(broker.create_topic("grouped"), 0): 0})
    found = asyncio.run(begun())
    assert found is not None
    assert found["before-the-stream"] == "Empty"
