"""Registered clients: positions, delivery modes, ownership, silence, and two requests that read at the same time."""

import asyncio
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, cast

import httpx
import pytest
from sqlalchemy import Engine, update

from headrace.client import Admin
from headrace.client.types import Outcome
from headrace.manager.catalog.database import Catalog
from headrace.manager.catalog.engine import WRITES, catalog_url, now_ms, open_engine
from headrace.manager.catalog.tables import clients, metadata
from headrace.manager.cluster_calls import ClusterCalls
from headrace.manager.limits import CLIENT_SILENCE_SECONDS_MAX, CLIENT_TURN_SECONDS, CLIENTS_PER_USER_MAX
from headrace.manager.problems import ApiProblem
from headrace.manager.registrations import (
    CONSUMER,
    PRODUCER,
    RegisteredClient,
    Registrations,
    add_client,
    end_turn,
    found_client,
    listed_clients,
    take_turn,
)
from headrace.testing import EmbeddedBroker
from tests.manager.manager_process import ManagerProcess
from tests.manager.people import TeamOfUsers
from tests.manager.test_streams import events, produce


def registered(manager: ManagerProcess, kind: str, topic: str, **more: Any) -> str:
    body = {"kind": kind, "name": "a client", "topic": topic, **more}
    id: str = manager.call("POST", "/v1/clients", json=body, status=201)["id"]
    return id


def read(manager: ManagerProcess, id: str, **params: Any) -> Any:
    return manager.call("POST", f"/v1/clients/{id}/reads", params=params)


def values(response: Any) -> list[Any]:
    return [record["value"] for record in response["records"]]


@pytest.mark.process
@pytest.mark.record_integrity
def test_at_least_once_reads_again_until_it_is_acknowledged(
    manager: ManagerProcess, broker: EmbeddedBroker, topic: str
) -> None:
    produce(manager, topic, *map(str, range(6)))
    id = registered(manager, "consumer", topic, partition=0)
    first = read(manager, id, max=4)
    assert values(first) == values(read(manager, id, max=4)) == ["0", "1", "2", "3"]
    manager.call("POST", f"/v1/clients/{id}/acks", json={"positions": first["positions"]}, status=204)
    assert values(read(manager, id)) == ["4", "5"]
    lag = manager.call("GET", f"/v1/groups/{id}/lag")
    assert [(each["partition"], each["committed"], each["lag"]) for each in lag] == [(0, 4, 2)]
    with ManagerProcess(broker.bootstrap_servers, "--catalog", catalog_of(manager)) as other:
        assert values(read(other, id)) == ["4", "5"]


def catalog_of(manager: ManagerProcess) -> str:
    return f"sqlite:///{Path(manager._folder.name) / 'headrace-manager.db'}"


@pytest.mark.process
@pytest.mark.record_integrity
def test_at_most_once_gives_every_record_to_one_of_many_requests(manager: ManagerProcess, topic: str) -> None:
    for partition in range(3):
        produce(manager, topic, *(f"{partition}-{number}" for number in range(20)), partition=partition)
    id = registered(manager, "consumer", topic, delivery="at-most-once")

    def ask(_number: int) -> list[Any]:
        answer = manager.http.post(f"/v1/clients/{id}/reads", params={"max": 7})
        assert answer.status_code in (200, 409), answer.text
        return values(answer.json()) if answer.status_code == 200 else []

    found: list[Any] = []
    with ThreadPoolExecutor(4) as threads:
        for _ in range(20):
            found += [value for part in threads.map(ask, range(4)) for value in part]
    assert sorted(found) == sorted(f"{part}-{number}" for part in range(3) for number in range(20))
    assert read(manager, id)["records"] == []


@pytest.mark.process
@pytest.mark.record_integrity
def test_a_stream_begins_at_the_position_that_was_acknowledged(manager: ManagerProcess, topic: str) -> None:
    produce(manager, topic, *map(str, range(10)))
    id = registered(manager, "consumer", topic)
    url = f"{manager.url}/v1/clients/{id}/stream"
    with httpx.stream("GET", url, timeout=60) as response:
        first = [next(found) for found in [events(response.iter_lines())] for _ in range(4)]
    assert [json.loads(event["data"])["value"] for event in first] == ["0", "1", "2", "3"]
    manager.call("POST", f"/v1/clients/{id}/acks", json={"positions": first[1]["id"]}, status=204)
    with httpx.stream("GET", url, timeout=60) as response:
        again = events(response.iter_lines())
        assert [json.loads(next(again)["data"])["value"] for _ in range(8)] == [str(number) for number in range(2, 10)]
        produce(manager, topic, "live")
        assert json.loads(next(again)["data"])["value"] == "live"
    with httpx.stream("GET", url, headers={"last-event-id": first[3]["id"]}, timeout=60) as response:
        assert json.loads(next(events(response.iter_lines()))["data"])["value"] == "4"
    lag = manager.call("GET", f"/v1/groups/{id}")["lag"]
    assert lag == 9, "a stream itself acknowledges nothing"
    careless = registered(manager, "consumer", topic, delivery="at-most-once")
    assert "reads" in manager.call("GET", f"/v1/clients/{careless}/stream", status=409)["detail"]
    assert manager.call("GET", "/v1/clients/headrace-client-0/stream", status=404)


@pytest.mark.process
def test_a_producer_has_its_topic_and_delivery(manager: ManagerProcess, topic: str) -> None:
    id = registered(manager, "producer", topic, partition=1)
    stored = manager.call("POST", f"/v1/clients/{id}/records", json={"records": [{"value": "a"}, {"value": "b"}]})
    assert [each["partition"] for each in stored["records"]] == [1, 1]
    wrong = manager.call("POST", f"/v1/clients/{id}/records", json={"value": "a", "partition": 2}, status=400)
    assert "partition 1 alone" in wrong["detail"]
    once = registered(manager, "producer", topic, delivery="exactly-once")
    refused = manager.call("POST", f"/v1/clients/{once}/records", json={"value": "c"}, status=400)
    assert "Idempotency-Key" in refused["detail"]
    headers = {"idempotency-key": f"key-{once}"}
    places = [manager.call("POST", f"/v1/clients/{once}/records", json={"value": "c"}, headers=headers) for _ in "12"]
    assert places[0] == places[1]


@pytest.mark.process
def test_what_is_not_possible_says_why(manager: ManagerProcess, topic: str) -> None:
    for body, status, detail in (
        ({"topic": "missing"}, 404, "does not exist"),
        ({"topic": topic, "partition": 9}, 404, "no partition 9"),
        ({"topic": topic, "delivery": "exactly-once"}, 400, "offset"),
        ({"topic": topic, "time": "yesterday"}, 400, "time"),
        ({"topic": topic, "kind": "spectator"}, 400, "kind"),
    ):
        wanted = {"kind": "consumer", "name": "n", **body}
        assert detail in manager.call("POST", "/v1/clients", json=wanted, status=status)["detail"]
    consumer = registered(manager, "consumer", topic, **{"from": "latest"})
    producer = registered(manager, "producer", topic)
    assert {each["id"] for each in manager.call("GET", "/v1/clients")} >= {consumer, producer}
    assert "is a consumer" in manager.call("POST", f"/v1/clients/{consumer}/records", json={}, status=409)["detail"]
    assert "is a producer" in manager.call("POST", f"/v1/clients/{producer}/reads", status=409)["detail"]
    acks = f"/v1/clients/{consumer}/acks"
    assert "does not read" in manager.call("POST", acks, json={"positions": "7:1"}, status=400)["detail"]
    manager.call("POST", acks, json={"positions": "x"}, status=400)
    manager.call("POST", f"/v1/clients/{consumer}/heartbeat", status=204)
    manager.call("DELETE", f"/v1/clients/{consumer}", status=204)
    assert "register it" in manager.call("POST", f"/v1/clients/{consumer}/reads", status=404)["detail"]
    manager.call("GET", f"/v1/groups/{consumer}", status=404)


@pytest.mark.process
def test_a_client_belongs_to_its_user(team: TeamOfUsers, topic: str) -> None:
    body = {"kind": "consumer", "name": "mine", "topic": topic}
    call = team.manager.call
    id = call("POST", "/v1/clients", json=body, headers=team.bearer("editor"), status=201)["id"]
    call("POST", "/v1/clients", json=body, headers=team.bearer("viewer"), status=403)
    for method, path in (("GET", ""), ("POST", "/reads"), ("POST", "/heartbeat"), ("DELETE", "")):
        call(method, f"/v1/clients/{id}{path}", headers=team.bearer("admin"), status=404)
    assert call("GET", "/v1/clients", headers=team.bearer("admin")) == []
    assert [each["id"] for each in call("GET", "/v1/clients", headers=team.bearer("editor"))] == [id]


# The table


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    made = open_engine(catalog_url(f"sqlite:///{tmp_path / 'catalog.db'}")).execution_options(**WRITES)
    metadata.create_all(made)
    yield made
    made.dispose()


def client(id: str, owner: str = "ada", kind: str = CONSUMER) -> RegisteredClient:
    return RegisteredClient(id, owner, kind, "n", "t", None, "at-least-once", 0, 0)


def grow_old(engine: Engine, id: str) -> None:
    with engine.begin() as connection:
        silent_ms = now_ms(connection) - CLIENT_SILENCE_SECONDS_MAX * 1_000 - 1_000
        connection.execute(update(clients).where(clients.c.id == id).values(seen_ms=silent_ms))


def test_a_silent_client_is_not_found(engine: Engine) -> None:
    with engine.begin() as connection:
        for id, owner in (("a", "ada"), ("b", "ada"), ("c", "bob")):
            add_client(connection, client(id, owner))
    grow_old(engine, "a")
    with engine.begin() as connection:
        assert [each.id for each in listed_clients(connection, "ada")] == ["b"]
        assert found_client(connection, "a", "ada") is None
        assert found_client(connection, "c", "ada") is None
        assert found_client(connection, "b", "ada") is not None


def test_a_user_has_a_limited_number_of_clients(engine: Engine) -> None:
    with engine.begin() as connection:
        for number in range(CLIENTS_PER_USER_MAX):
            add_client(connection, client(str(number)))
        with pytest.raises(ApiProblem, match="at most"):
            add_client(connection, client("more"))
        add_client(connection, client("other", "bob"))


def test_one_request_reads_at_a_time_and_a_lost_turn_is_noticed(engine: Engine) -> None:
    with engine.begin() as connection:
        add_client(connection, client("a"))
        assert take_turn(connection, "a", "first")
        assert not take_turn(connection, "a", "second")
        late = now_ms(connection) - CLIENT_TURN_SECONDS * 1_000
        connection.execute(update(clients).values(turn_ends_ms=late))
        assert take_turn(connection, "a", "second")
        assert not end_turn(connection, "a", "first"), "the first has lost its turn"
        assert end_turn(connection, "a", "second")
        assert take_turn(connection, "a", "third")


def test_silent_clients_are_removed_with_their_positions(engine: Engine) -> None:
    with engine.begin() as connection:
        for id, kind in (("consumer", CONSUMER), ("producer", PRODUCER), ("alive", CONSUMER)):
            add_client(connection, client(id, kind=kind))
    for id in ("consumer", "producer"):
        grow_old(engine, id)
    deleted: list[str] = []

    class Groups:
        def delete_groups(self, names: list[str]) -> dict[str, Outcome]:
            deleted.extend(names)
            return {}

    class Cluster:
        async def run(self, call: Any) -> Any:
            return call(cast(Admin, Groups()))

    class OneManager:
        async def change(self, call: Any) -> Any:
            with engine.begin() as connection:
                return call(connection)

    made = Registrations(cast(Catalog, OneManager()), cast(ClusterCalls, Cluster()))
    assert sorted(asyncio.run(made.remove_silent())) == ["consumer", "producer"]
    assert deleted == ["consumer"]
    with engine.begin() as connection:
        assert [each.id for each in listed_clients(connection, "ada")] == ["alive"]
