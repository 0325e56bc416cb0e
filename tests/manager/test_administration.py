"""Topics, configs, brokers, groups and transactions over HTTP, through a manager process and a real broker."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

import headrace
from headrace.client.errors import ClientError
from headrace.testing import EmbeddedBroker
from tests.manager.manager_process import ManagerProcess

pytestmark = pytest.mark.process


@contextmanager
def open_transaction(broker: EmbeddedBroker, topic: str, transactional_id: str) -> Iterator[None]:
    with headrace.Producer(broker.bootstrap_servers, transactional_id=transactional_id) as producer:
        transaction = producer.transaction()
        producer.send(topic, b"1").result()
        yield
        with pytest.raises(ClientError):
            transaction.commit()


def test_a_topic_is_created_described_changed_and_deleted(manager: ManagerProcess) -> None:
    response = manager.http.post("/v1/topics", json={"name": "life", "partitions": 2, "configs": {"retention.ms": "9"}})
    assert (response.status_code, response.headers["location"]) == (201, "/v1/topics/life")
    assert response.json()["partitions"] == 2
    described = manager.call("GET", "/v1/topics/life")
    assert described["own_configs"] == {"retention.ms": "9"}
    assert [(each["partition"], each["end_offset"]) for each in described["partitions"]] == [(0, 0), (1, 0)]
    assert manager.call("GET", "/v1/topics/life/partitions") == described["partitions"]
    changed = manager.call("PATCH", "/v1/topics/life", json={"partitions": 3, "configs": {"retention.ms": None}})
    assert (len(changed["partitions"]), changed["own_configs"]) == (3, {})
    manager.call("DELETE", "/v1/topics/life", status=204)
    manager.call("GET", "/v1/topics/life", status=404)


def test_a_dry_run_changes_nothing(manager: ManagerProcess, topic: str) -> None:
    manager.call("POST", "/v1/topics?dry_run=true", json={"name": "dry"})
    manager.call("GET", "/v1/topics/dry", status=404)
    manager.call("PATCH", f"/v1/topics/{topic}?dry_run=true", json={"partitions": 9})
    assert len(manager.call("GET", f"/v1/topics/{topic}")["partitions"]) == 3


def test_topics_are_listed_page_by_page(manager: ManagerProcess, broker: EmbeddedBroker) -> None:
    for number in range(5):
        broker.create_topic(f"page-{number}", partitions=1)
    first = manager.call("GET", "/v1/topics", params={"search": "page-", "limit": 3})
    rest = manager.call("GET", "/v1/topics", params={"search": "page-", "after": first["next"]})
    names = [each["name"] for page in (first, rest) for each in page["topics"]]
    assert (names, first["total"], rest["next"]) == ([f"page-{number}" for number in range(5)], 5, None)


def test_an_unchanged_list_is_not_sent_again(manager: ManagerProcess, topic: str) -> None:
    etag = manager.http.get("/v1/topics").headers["etag"]
    again = manager.http.get("/v1/topics", headers={"if-none-match": etag})
    assert (again.status_code, again.content) == (304, b"")
    manager.call("POST", "/v1/topics", json={"name": f"{topic}-more"}, status=201)
    assert manager.http.get("/v1/topics", headers={"if-none-match": etag}).status_code == 200


def test_a_declared_list_of_topics_is_planned_and_applied(manager: ManagerProcess) -> None:
    wanted = {"topics": [{"name": "declared", "partitions": 2, "configs": {"retention.ms": "1000"}}]}
    planned = manager.call("PUT", "/v1/topics?dry_run=true", json=wanted)
    assert [(step["action"], step["topic"]) for step in planned["steps"]] == [("create", "declared")]
    assert not planned["applied"]
    assert manager.call("PUT", "/v1/topics", json=wanted)["applied"]
    assert manager.call("PUT", "/v1/topics", json=wanted)["steps"] == []
    fewer = {"topics": [{"name": "declared", "partitions": 1}]}
    refused = manager.call("PUT", "/v1/topics", json=fewer, status=409)
    assert "partitions can only grow; nothing was changed" in refused["detail"]
    wrong = manager.call("PUT", "/v1/topics", json={"topics": [{"name": "a", "partition": 1}]}, status=400)
    assert 'did you mean "partitions"?' in wrong["detail"]


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "detail"),
    [
        ("POST", "/v1/topics", {"name": "a/b"}, 400, "INVALID_TOPIC_EXCEPTION"),
        ("POST", "/v1/topics", {"name": "x", "partitions": 0}, 400, "body.partitions"),
        ("POST", "/v1/topics", {"name": "x", "partition": 1}, 400, "body.partition"),
        ("POST", "/v1/topics", {"name": "x", "replication_factor": 9}, 400, "INVALID_REPLICATION_FACTOR"),
        ("POST", "/v1/topics", {"name": "x", "configs": {"retention": "1"}}, 400, "retention"),
        ("POST", "/v1/topics", "x", 400, "body"),
        ("PATCH", "/v1/topics/missing", {"partitions": 9}, 404, "GET /v1/topics lists all"),
        ("PATCH", "/v1/topics/missing", {}, 400, "nothing to change"),
        ("DELETE", "/v1/topics/missing", None, 404, "GET /v1/topics lists all"),
        ("GET", "/v1/topics/missing/configs", None, 404, "GET /v1/topics lists all"),
        ("GET", "/v1/topics?limit=0", None, 400, "query.limit"),
        ("GET", "/v1/brokers/99", None, 404, "the cluster has 1"),
        ("GET", "/v1/brokers/99/configs", None, 404, "use one of 1"),
        ("GET", "/v1/brokers/x/configs", None, 404, "node id"),
        ("POST", "/v1/brokers/invitations", {}, 400, "no listener for other nodes"),
        ("POST", "/v1/brokers/invitations", {"valid_seconds": 1}, 400, "body.valid_seconds"),
        ("DELETE", "/v1/brokers/99", None, 404, "the cluster has 1"),
        ("DELETE", "/v1/brokers/1", None, 409, "stop it first"),
        ("POST", "/v1/brokers/1/drain", None, 501, "SIGTERM"),
        ("GET", "/v1/groups/missing", None, 404, "GET /v1/groups lists all"),
        ("GET", "/v1/groups/missing/lag", None, 404, "GET /v1/groups lists all"),
        ("DELETE", "/v1/groups/missing", None, 404, "GET /v1/groups lists all"),
        ("POST", "/v1/groups/missing/reset", {"to": "earliest"}, 404, "GET /v1/groups lists all"),
        ("POST", "/v1/groups/g/reset", {}, 400, "exactly one"),
        ("POST", "/v1/groups/g/reset", {"to": "earliest", "offset": 1}, 400, "exactly one"),
        ("POST", "/v1/groups/g/reset", {"time": "yesterday"}, 400, "is not a time"),
        ("GET", "/v1/transactions/missing", None, 404, "GET /v1/transactions lists all"),
        ("POST", "/v1/transactions/missing/abort", None, 404, "GET /v1/transactions lists all"),
        ("GET", "/v1/acls", None, 501, "SECURITY_DISABLED"),
        ("POST", "/v1/acls", {"rules": []}, 400, "body.rules"),
        ("DELETE", "/v1/acls", None, 400, "this would remove all rules"),
        ("GET", "/v1/acls/decision?principal=User:a", None, 400, "query.operation"),
        ("PUT", "/v1/users/ada", {"password": "x", "mechanisms": ["PLAIN"]}, 400, "body.mechanisms"),
        ("DELETE", "/v1/users/missing", None, 404, "GET /v1/users lists all"),
        ("PUT", "/v1/cluster/quorum/voters/9", None, 404, "no observer"),
        ("DELETE", "/v1/cluster/quorum/voters/9", None, 404, "no voter"),
        ("PATCH", "/v1/quotas", {"entity": {}, "quotas": {"request_percentage": 1}}, 400, "body.entity"),
        ("PATCH", "/v1/quotas", {"entity": {"user": "a"}, "quotas": {"speed": 1}}, 400, "body.quotas"),
        ("PATCH", "/v1/quotas", {"entity": {"user": "a"}, "quotas": {"request_percentage": 0}}, 400, "body.quotas"),
        (
            "PATCH",
            "/v1/quotas",
            {"entity": {"user": "a", "ip": "::1"}, "quotas": {"request_percentage": 1}},
            400,
            "own",
        ),
        ("PATCH", "/v1/quotas", {"entity": {"ip": "::1"}, "quotas": {"request_percentage": 1}}, 400, "INVALID_REQUEST"),
        ("GET", "/v1/nothing", None, 404, "/v1/openapi.json"),
        ("PUT", "/v1/cluster", None, 405, "use GET"),
    ],
)
def test_a_refused_request_says_what_to_do(
    manager: ManagerProcess, method: str, path: str, body: object, status: int, detail: str
) -> None:
    problem = manager.call(method, path, json=body, status=status)
    assert problem["status"] == status
    assert detail in f"{problem['detail']} {problem.get('error')}"


def test_a_misspelt_topic_gets_a_suggestion(manager: ManagerProcess, broker: EmbeddedBroker) -> None:
    broker.create_topic("customers", partitions=1)
    assert 'did you mean "customers"?' in manager.call("GET", "/v1/topics/custmers", status=404)["detail"]


def test_an_existing_topic_is_not_created_again(manager: ManagerProcess, topic: str) -> None:
    assert manager.call("POST", "/v1/topics", json={"name": topic}, status=409)["error"] == "TOPIC_ALREADY_EXISTS"


def test_configs_are_changed_one_by_one(manager: ManagerProcess, topic: str) -> None:
    path = f"/v1/topics/{topic}/configs"
    changed = manager.call(
        "PATCH", path, json={"set": {"retention.ms": "5000"}, "append": {"cleanup.policy": "compact"}}
    )
    assert {each["name"]: each["value"] for each in changed} == {
        "retention.ms": "5000",
        "cleanup.policy": "delete,compact",
    }
    assert manager.call("PATCH", path, json={"delete": ["retention.ms", "cleanup.policy"]}) == []
    assert len(manager.call("GET", path)) > 20
    refused = manager.call("PATCH", path, json={"set": {"retention": "1"}}, status=400)
    assert "retention" in refused["detail"]
    manager.call("PATCH", path, json={}, status=400)


def test_configs_of_brokers_are_shown_and_changed(manager: ManagerProcess) -> None:
    shown = {each["name"]: each for each in manager.call("GET", "/v1/brokers/1/configs")}
    assert shown["num.partitions"]["source"] in ("default", "static_broker")
    manager.call("PATCH", "/v1/brokers/all/configs", json={"set": {"log.retention.ms": "7777777"}})
    (changed,) = [each for each in manager.call("GET", "/v1/brokers/all/configs") if each["name"] == "log.retention.ms"]
    assert changed["value"] == "7777777"
    manager.call("PATCH", "/v1/brokers/all/configs", json={"delete": ["log.retention.ms"]})


def test_the_cluster_and_its_brokers_are_described(manager: ManagerProcess, topic: str) -> None:
    cluster = manager.call("GET", "/v1/cluster")
    assert (cluster["health"], cluster["reasons"], cluster["brokers"]) == ("green", [], [1])
    (listed,) = manager.call("GET", "/v1/brokers")
    assert listed["leads"] == cluster["partitions"]
    assert manager.call("GET", "/v1/brokers/1")["node_id"] == 1
    assert manager.call("GET", "/v1/cluster/quorum")["leader"] == 1


def test_quotas_are_set_listed_and_removed(manager: ManagerProcess) -> None:
    ada = {"entity": {"user": "ada"}, "quotas": {"producer_byte_rate": 1_048_576.0}}
    manager.call("PATCH", "/v1/quotas?dry_run=true", json=ada)
    assert manager.call("GET", "/v1/quotas") == []
    assert manager.call("PATCH", "/v1/quotas", json=ada) == [ada]
    others = {"entity": {"user": None}, "quotas": {"producer_byte_rate": 1_000.0}}
    assert manager.call("PATCH", "/v1/quotas", json=others) == [others]
    assert manager.call("GET", "/v1/quotas") == [others, ada]
    assert manager.call("GET", "/v1/quotas", params={"user": "ada"}) == [ada]
    assert manager.call("GET", "/v1/quotas", params={"client_id": "ada"}) == []
    for entity in (ada, others):
        manager.call("PATCH", "/v1/quotas", json={**entity, "quotas": {"producer_byte_rate": None}})
    assert manager.call("GET", "/v1/quotas") == []


def test_the_only_voter_stays(manager: ManagerProcess) -> None:
    refused = manager.call("DELETE", "/v1/cluster/quorum/voters/1", status=400)
    assert refused["error"] == "INVALID_REQUEST"
    assert [each["node_id"] for each in manager.call("GET", "/v1/cluster/quorum")["voters"]] == [1]


def test_a_group_is_described_reset_and_deleted(manager: ManagerProcess, broker: EmbeddedBroker, topic: str) -> None:
    with headrace.Producer(broker.bootstrap_servers) as producer:
        for number in range(10):
            producer.send(topic, b"%d" % number, partition=0)
    group = f"{topic}-group"
    with headrace.Consumer(
        topic, bootstrap_servers=broker.bootstrap_servers, group_id=group, auto_offset_reset="earliest",
        consumer_timeout_ms=20_000, max_poll_records=4,
    ) as consumer:  # fmt: skip
        assert len(consumer.poll(timeout_ms=20_000)) == 4
        consumer.commit()
        refused = manager.call("POST", f"/v1/groups/{group}/reset", json={"to": "latest"}, status=409)
        assert "stop them first" in refused["detail"]
        assert len(manager.call("GET", f"/v1/groups/{group}")["members"]) == 1
        manager.call("DELETE", f"/v1/groups/{group}", status=409)
    assert group in [each["group"] for each in manager.call("GET", "/v1/groups")]
    assert manager.call("GET", f"/v1/groups/{group}")["lag"] == 6
    preview = manager.call("POST", f"/v1/groups/{group}/reset?dry_run=true", json={"to": "earliest"})
    assert not preview["applied"]
    assert [(move["before"], move["after"]) for move in preview["moves"] if move["before"]] == [(4, 0)]
    assert manager.call("GET", f"/v1/groups/{group}")["lag"] == 6
    manager.call("POST", f"/v1/groups/{group}/reset", json={"offset": 9, "topics": {topic: [0]}})
    lags = manager.call("GET", f"/v1/groups/{group}/lag")
    assert [each["lag"] for each in lags if each["partition"] == 0] == [1]
    manager.call("DELETE", f"/v1/groups/{group}", status=204)
    manager.call("GET", f"/v1/groups/{group}", status=404)


def test_an_open_transaction_is_listed_and_aborted(manager: ManagerProcess, broker: EmbeddedBroker, topic: str) -> None:
    name = f"{topic}-transaction"
    with open_transaction(broker, topic, name):
        assert name in [each["transactional_id"] for each in manager.call("GET", "/v1/transactions")]
        shown = manager.call("GET", f"/v1/transactions/{name}")
        assert shown["state"] == "Ongoing"
        assert len(shown["partitions"]) == 1
        manager.call("POST", f"/v1/transactions/{name}/abort", status=204)
    assert manager.call("GET", f"/v1/transactions/{name}")["state"] != "Ongoing"
