"""The client of the manager: its choice of managers, what it repeats, and two managers of which one is killed."""

import asyncio
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, cast

import pytest

from headrace.http import AsyncManagerClient, ManagerClient, ManagerError, ManagersUnreachable
from headrace.http.addresses import AVOIDED_MS, LIST_AGE_MS_MAX, ManagerAddresses, is_catalog_change
from headrace.testing import EmbeddedBroker
from tests.manager.manager_process import ManagerProcess

A, B, C = "http://a:1", "http://b:1", "http://c:1"


def listed(*urls: str, holder: str = "", alive: bool = True) -> list[dict[str, Any]]:
    return [{"url": url, "is_alive": alive, "holds_lease": url == holder} for url in urls]


def test_requests_go_round_and_failed_managers_come_last() -> None:
    addresses = ManagerAddresses([A])
    addresses.learn(listed(A, B, C), 0)
    firsts = [addresses.in_order("GET", "/v1/topics", 0)[0] for _ in range(6)]
    assert sorted(firsts) == [A, A, B, B, C, C]
    addresses.failed(B, 0)
    for _ in range(3):
        assert addresses.in_order("GET", "/v1/topics", 1)[-1] == B
    assert {addresses.in_order("GET", "/v1/topics", AVOIDED_MS + 1)[0] for _ in range(3)} == {A, B, C}


def test_changes_of_the_catalog_go_to_the_holder_of_the_lease() -> None:
    addresses = ManagerAddresses([A])
    addresses.learn(listed(A, B, C, holder=C), 0)
    for _ in range(4):
        assert addresses.in_order("POST", "/v1/access/users", 0)[0] == C
    assert len({addresses.in_order("POST", "/v1/topics/t/records", 0)[0] for _ in range(3)}) == 3
    assert not is_catalog_change("POST", "/v1/clients/x/reads")
    assert not is_catalog_change("GET", "/v1/access/users")


def test_a_list_is_not_trusted_blindly() -> None:
    addresses = ManagerAddresses(["https://a:1"])
    assert addresses.is_list_old(0)
    addresses.learn([*listed("http://evil:1", "https://b:1/"), *listed("https://dead:1", alive=False)], 0)
    assert set(addresses.in_order("GET", "/", 0)) == {"https://a:1", "https://b:1"}
    assert not addresses.is_list_old(1)
    assert addresses.is_list_old(LIST_AGE_MS_MAX)
    addresses.learn([], 0)
    assert addresses.in_order("GET", "/", 0) == ["https://a:1"]
    for wrong in ([], ["a:1"], ["ftp://a"], ["http://"]):
        with pytest.raises(ValueError, match="manager"):
            ManagerAddresses(wrong)


class Played(ThreadingHTTPServer):
    """A manager with prepared answers: a status and a body, or None to close the connection."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answers: list[tuple[int, Any] | None] = []
        self.requests: list[tuple[str, str, dict[str, str]]] = []
        self.url = f"http://127.0.0.1:{self.server_address[1]}"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Played

    def _answer(self) -> None:
        self.rfile.read(int(self.headers.get("content-length", "0")))
        if self.path == "/v1/managers":
            status, body = 200, cast(Any, [])
        else:
            self.server.requests.append((self.command, self.path, dict(self.headers)))
            answer = self.server.answers.pop(0)
            if answer is None:
                self.close_connection = True
                return
            status, body = answer
        content = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    do_GET = do_POST = _answer

    def log_message(self, format: str, *args: Any) -> None:
        pass


@contextmanager
def played() -> Iterator[Played]:
    with Played() as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.process
def test_a_request_without_a_key_is_not_repeated_after_it_was_sent() -> None:
    with played() as first, played() as second, ManagerClient(first.url, second.url) as client:
        first.answers = second.answers = [None, None, (200, {"ok": 1})]
        with pytest.raises(ManagersUnreachable, match="Idempotency-Key") as unsure:
            client.call("POST", "/v1/topics", {"name": "t"})
        assert unsure.value.may_have_been_done
        assert len(first.requests) + len(second.requests) == 1
        assert client.call("POST", "/v1/x", {}, headers={"idempotency-key": "k"}) == {"ok": 1}


@pytest.mark.process
def test_another_manager_is_tried_and_the_problem_of_the_last_is_raised() -> None:
    problem = {"detail": "try again"}
    with played() as first, played() as second, ManagerClient(first.url, second.url, token="secret") as client:
        first.answers, second.answers = [(503, problem)] * 2, [(503, problem)] * 2
        with pytest.raises(ManagerError, match="try again") as refused:
            client.call("GET", "/v1/topics", params={"search": "a b"})
        assert refused.value.status == 503
        ((method, path, headers),) = first.requests
        assert (method, path) == ("GET", "/v1/topics?search=a+b")
        assert headers["Authorization"] == "Bearer secret"
        with pytest.raises(ManagerError):
            client.call("POST", "/v1/topics", {})
        assert len(first.requests) + len(second.requests) == 3
    with pytest.raises(ManagersUnreachable, match="check that a manager is running") as away:
        ManagerClient(first.url).call("POST", "/v1/topics", {})
    assert not away.value.may_have_been_done


@pytest.mark.process
@pytest.mark.record_integrity
def test_records_are_stored_once_while_a_manager_is_killed(
    manager: ManagerProcess, broker: EmbeddedBroker, topic: str
) -> None:
    catalog = f"sqlite:///{manager._folder.name}/headrace-manager.db"
    with ManagerProcess(broker.bootstrap_servers, "--catalog", catalog) as other, ManagerClient(other.url) as client:
        client.produce(topic, [{"value": "first"}])
        assert set(client._addresses.in_order("GET", "/", 0)) == {manager.url, other.url}
        other.process.kill()
        for number in range(6):
            client.produce(topic, [{"value": str(number)}])
        read = client.call("GET", f"/v1/topics/{topic}/records")
    assert sorted(record["value"] for record in read["records"]) == ["0", "1", "2", "3", "4", "5", "first"]


@pytest.mark.process
def test_coroutines_do_the_same(manager: ManagerProcess, topic: str) -> None:
    async def asked() -> Any:
        async with AsyncManagerClient(manager.url) as client:
            await asyncio.gather(*(client.produce(topic, [{"value": str(number)}]) for number in range(5)))
            with pytest.raises(ManagerError, match="does not exist"):
                await client.call("GET", "/v1/topics/missing")
            return await client.call("GET", f"/v1/topics/{topic}/records")

    assert len(asyncio.run(asked())["records"]) == 5
