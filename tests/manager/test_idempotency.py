"""Requests with an Idempotency-Key: repeated, at several managers at once, and around the death of one."""

import threading
from collections import Counter

import httpx
import pytest

from headrace.testing import EmbeddedBroker
from tests.manager.manager_process import ManagerProcess

pytestmark = [pytest.mark.process, pytest.mark.record_integrity]

ATTEMPTS_MAX = 100


def path(topic: str) -> str:
    return f"/v1/topics/{topic}/records"


def values(manager: ManagerProcess, topic: str) -> Counter[str]:
    read = manager.call("GET", path(topic), params={"max": 10_000})
    assert read["complete"]
    return Counter(record["value"] for record in read["records"])


def test_a_repeat_gets_the_same_response_and_stores_nothing(manager: ManagerProcess, topic: str) -> None:
    body = {"records": [{"value": "a", "partition": 1}, {"value": "b", "partition": 2}]}
    headers = {"idempotency-key": f"{topic}-1"}
    first = manager.http.post(path(topic), json=body, headers=headers, params={"delivery": "exactly-once"})
    again = manager.http.post(path(topic), json=body, headers=headers, params={"delivery": "exactly-once"})
    assert first.status_code == again.status_code == 200
    assert first.json() == again.json()
    assert "idempotency-replayed" not in first.headers
    assert again.headers["idempotency-replayed"] == "true"
    assert values(manager, topic) == {"a": 1, "b": 1}


def test_another_request_under_a_key_is_refused(manager: ManagerProcess, topic: str) -> None:
    headers = {"idempotency-key": f"{topic}-1"}
    manager.call("POST", path(topic), json={"value": "a"}, headers=headers)
    refused = manager.call("POST", path(topic), json={"value": "b"}, headers=headers, status=422)
    assert "use a new key" in refused["detail"]
    manager.call("POST", path(topic), json={"value": "a"}, headers=headers, params={"timestamp": 1}, status=422)
    assert values(manager, topic) == {"a": 1}


@pytest.mark.parametrize(
    ("key", "parameters", "body", "status", "detail"),
    [
        ("", {}, b"1", 400, "printable"),
        ("x" * 256, {}, b"1", 400, "255"),
        ("ü".encode().decode("latin-1"), {}, b"1", 400, "printable"),
        ("k", {"acks": "1"}, b"1", 400, "leave acks and delivery out"),
        ("k", {"delivery": "at-most-once"}, b"1", 400, "leave acks and delivery out"),
        ("k", {"partition": "7"}, b"1", 400, "partitions 0 to 2"),
        ("k", {}, b"x" * (2 << 20), 413, "MESSAGE_TOO_LARGE"),
    ],
)
def test_a_request_that_cannot_be_stored_leaves_its_key_unused(
    manager: ManagerProcess, topic: str, key: str, parameters: dict[str, str], body: bytes, status: int, detail: str
) -> None:
    headers = {"idempotency-key": key.encode("latin-1"), "content-type": "text/plain"}
    problem = manager.call("POST", path(topic), content=body, headers=headers, params=parameters, status=status)
    assert detail in f"{problem['detail']} {problem.get('error')}"
    manager.call("POST", path("missing"), json={"value": 1}, headers={"idempotency-key": "m"}, status=404)
    manager.call("POST", path(topic), content=b"ok", headers={"idempotency-key": f"{topic}-ok"})
    assert values(manager, topic) == {"ok": 1}


def test_the_same_keys_at_three_managers_store_one_record_each(broker: EmbeddedBroker, topic: str) -> None:
    keys = [f"{topic}-{number}" for number in range(30)]
    answers: list[dict[str, object]] = [{} for _ in range(3)]

    def send(manager: ManagerProcess, received: dict[str, object]) -> None:
        with httpx.Client(base_url=manager.url, timeout=60) as client:
            for key in keys:
                for _ in range(ATTEMPTS_MAX):
                    response = client.post(path(topic), json={"value": key}, headers={"idempotency-key": key})
                    if response.status_code != 503:
                        break
                assert response.status_code == 200, response.text
                received[key] = response.json()

    with (
        ManagerProcess(broker.bootstrap_servers) as one,
        ManagerProcess(broker.bootstrap_servers) as two,
        ManagerProcess(broker.bootstrap_servers) as three,
    ):
        threads = [
            threading.Thread(target=send, args=(manager, received))
            for manager, received in zip((one, two, three), answers, strict=True)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert answers[0] == answers[1] == answers[2]
        assert answers[0].keys() == set(keys)
        assert values(one, topic) == dict.fromkeys(keys, 1)


def test_a_request_that_a_killed_manager_left_is_stored_once(broker: EmbeddedBroker, topic: str) -> None:
    """A client that got no response repeats its request at another manager."""
    keys = [f"{topic}-{number}" for number in range(200)]
    killed = ManagerProcess(broker.bootstrap_servers)
    unanswered = set(keys)
    some_answered = threading.Event()

    def send(part: list[str]) -> None:
        with httpx.Client(base_url=killed.url, timeout=60) as client:
            for key in part:
                try:
                    response = client.post(path(topic), json={"value": key}, headers={"idempotency-key": key})
                except httpx.TransportError:
                    return
                if response.status_code == 200:
                    unanswered.discard(key)
                    if len(unanswered) < len(keys) - 20:
                        some_answered.set()

    threads = [threading.Thread(target=send, args=(keys[start::8],)) for start in range(8)]
    with killed:
        for thread in threads:
            thread.start()
        assert some_answered.wait(60)
        killed.process.kill()
        for thread in threads:
            thread.join()
    assert unanswered, "the manager answered everything before it was killed"
    with ManagerProcess(broker.bootstrap_servers) as other:
        for key in keys:
            response = other.http.post(path(topic), json={"value": key}, headers={"idempotency-key": key})
            assert response.status_code == 200, response.text
            if key not in unanswered:
                assert response.headers["idempotency-replayed"] == "true"
        assert values(other, topic) == dict.fromkeys(keys, 1)
