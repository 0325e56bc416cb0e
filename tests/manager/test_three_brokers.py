"""A manager of three brokers: a leader is killed under load, and the dead broker leaves the cluster."""

import json
import threading
from collections import Counter
from collections.abc import Iterator

import httpx
import pytest

from headrace.testing import EmbeddedCluster
from tests.manager.keyed_load import KeyedLoad, awaited
from tests.manager.manager_process import ManagerProcess
from tests.manager.test_streams import events

pytestmark = [pytest.mark.process, pytest.mark.record_integrity]
REPLICAS = 3


@pytest.fixture(scope="module")
def cluster() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster(brokers=3, config={"offsets.topic.replication.factor": "3"}) as running:
        yield running


@pytest.fixture(scope="module")
def manager(cluster: EmbeddedCluster) -> Iterator[ManagerProcess]:
    with ManagerProcess(cluster.bootstrap_servers) as running:
        yield running


class ResumedStream:
    """Reads Server-Sent Events as EventSource does: it connects again with the last id until it is stopped."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._is_stopped = False
        self.has_begun = threading.Event()
        self.found: list[dict[str, str]] = []
        self._thread = threading.Thread(target=self._run, daemon=True)

    def _run(self) -> None:
        last: dict[str, str] = {}
        while not self._is_stopped:
            try:
                with httpx.stream("GET", self._url, headers=last, timeout=60) as response:
                    self.has_begun.set()
                    for event in events(response.iter_lines()):
                        self.found.append(event)
                        last = {"last-event-id": event["id"]} if "id" in event else last
                        if self._is_stopped:
                            return
            except httpx.TransportError:
                continue

    def __enter__(self) -> "ResumedStream":
        self._thread.start()
        assert self.has_begun.wait(60)
        return self

    def __exit__(self, *_: object) -> None:
        self._is_stopped = True


def test_a_killed_leader_loses_and_repeats_nothing(cluster: EmbeddedCluster, manager: ManagerProcess) -> None:
    topic = cluster.create_topic("replicated", partitions=3, replicas=REPLICAS)
    leader = cluster.leader(topic, 0)
    streamed = f"{manager.url}/v1/topics/{topic}/stream?from=earliest&as=json"
    changed = f"{manager.url}/v1/events?kind=partition&topic={topic}"
    with ResumedStream(streamed) as records, ResumedStream(changed) as changes, KeyedLoad([manager], topic) as load:
        awaited(lambda: len(load.acknowledged) >= 10)
        cluster.kill(leader)
        acknowledged = len(load.acknowledged)
        awaited(lambda: len(load.acknowledged) >= acknowledged + 10)
        awaited(lambda: new_leader(changes.found) not in (None, leader, -1))
        load.stop()
        read = manager.call("GET", f"/v1/topics/{topic}/records?max=10000&as=json")
        stored = Counter(record["value"] for record in read["records"])
        assert stored.keys() >= set(load.acknowledged)
        assert set(stored.values()) == {1}
        awaited(lambda: len(values(records.found)) >= len(stored))
        assert Counter(values(records.found)) == stored
    # The dead broker leaves: first from the voters, then from the brokers.
    awaited(lambda: manager.call("GET", "/v1/cluster")["fenced_brokers"] == [leader])
    assert manager.call("GET", "/v1/cluster")["health"] == "yellow"
    quorum = manager.call("DELETE", f"/v1/cluster/quorum/voters/{leader}")
    assert leader not in [voter["node_id"] for voter in quorum["voters"]]
    manager.call("DELETE", f"/v1/brokers/{leader}", status=204)
    awaited(lambda: leader not in [broker["node_id"] for broker in manager.call("GET", "/v1/brokers")])


def new_leader(changes: list[dict[str, str]]) -> int | None:
    """Return the last leader of partition 0 that the events have named."""
    leaders = [json.loads(event["data"]) for event in [*changes] if event["event"] == "partition"]
    return next((int(each["leader"]) for each in reversed(leaders) if each["partition"] == 0), None)


def values(found: list[dict[str, str]]) -> list[int]:
    return [json.loads(event["data"])["value"] for event in [*found] if event.get("event") != "problem"]


def test_a_broker_is_invited(cluster: EmbeddedCluster, manager: ManagerProcess) -> None:
    response = manager.http.post("/v1/brokers/invitations", json={"valid_seconds": 600})
    assert response.status_code == 201, response.text
    assert response.headers["cache-control"] == "no-store"
    assert len(response.json()["token"]) > 30
    assert response.json()["token"] not in str(manager.call("GET", "/v1/audit"))
