"""Requests that reach no route, request ids, limits, and a manager whose cluster is away."""

import re
import socket
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from headrace.manager.access.boundary import Boundary, is_same_origin
from headrace.manager.gate import check
from headrace.manager.settings import is_loopback, parse_listen
from headrace.operations.errors import OperationError
from headrace.testing import EmbeddedBroker
from tests.manager.manager_process import ManagerProcess


def refusal(**headers: str) -> int | None:
    encoded = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    found = check({"type": "http", "headers": encoded, "state": {}}, dict(encoded), Boundary())
    return None if found is None else found.status


def test_only_loopback_hosts_and_the_own_origin_pass() -> None:
    assert refusal(host="127.0.0.1:8092") is None
    assert refusal(host="localhost:8092") is None
    assert refusal(host="[::1]:8092") is None
    assert refusal(host="LocalHost") is None
    assert refusal(host="localhost:8092", origin="http://localhost:8092") is None
    assert refusal(host="evil.example") == 421
    assert refusal(host="127.0.0.1.evil.example") == 421
    assert refusal(host="localhost@evil.example") == 421
    assert refusal(host="") == 421
    assert refusal(host="[::1") == 421
    assert refusal() == 421
    assert refusal(host="localhost:8092", origin="http://evil.example") == 403
    assert refusal(host="localhost:8092", origin="http://localhost:9999") == 403
    assert refusal(host="localhost:8092", origin="null") == 403
    assert refusal(host="localhost:8092", content_length=str(9 << 20)) == 413


def test_two_host_headers_are_refused() -> None:
    headers = [(b"host", b"evil.example"), (b"host", b"localhost")]
    found = check({"type": "http", "headers": headers, "state": {}}, dict(headers), Boundary())
    assert found is not None
    assert found.status == 400


def test_origins_are_compared_as_a_whole() -> None:
    assert is_same_origin("https://localhost:1", "localhost:1")
    assert not is_same_origin("ftp://localhost:1", "localhost:1")
    assert not is_same_origin("http://localhost:1.evil.example", "localhost:1")
    assert not is_same_origin("http://[", "localhost:1")


def test_an_address_to_listen_on_has_a_host_and_a_port() -> None:
    assert parse_listen("127.0.0.1:0") == ("127.0.0.1", 0)
    assert parse_listen("[::1]:80") == ("::1", 80)
    assert parse_listen("localhost:65535") == ("localhost", 65535)
    assert not is_loopback("localhost.example")
    for wrong in ("8092", "127.0.0.1", "127.0.0.1:x", "127.0.0.1:70000"):
        with pytest.raises(OperationError):
            parse_listen(wrong)


@pytest.mark.process
def test_a_foreign_page_changes_nothing(manager: ManagerProcess) -> None:
    foreign = {"origin": "http://evil.example"}
    manager.call("POST", "/v1/topics", json={"name": "foreign"}, headers=foreign, status=403)
    manager.call("GET", "/v1/topics", headers={"host": "evil.example"}, status=421)
    manager.call("GET", "/v1/topics/foreign", status=404)


@pytest.mark.process
def test_a_request_id_is_kept_or_made(manager: ManagerProcess) -> None:
    assert manager.http.get("/healthz", headers={"x-request-id": "abc-1"}).headers["x-request-id"] == "abc-1"
    made = [manager.http.get("/healthz", headers={"x-request-id": "a b"}).headers["x-request-id"] for _ in range(2)]
    assert made[0] != made[1]
    assert '"request_id":"abc-1"' in manager.log()


@pytest.mark.process
def test_metrics_count_requests_by_route(manager: ManagerProcess) -> None:
    manager.http.get("/v1/topics/missing-for-metrics")
    manager.http.get("/no/such/path")
    page = manager.http.get("/metrics").text
    assert 'headrace_manager_requests_total{method="GET",route="/v1/topics/{topic}",status="404"}' in page
    assert 'route="unknown"' in page
    assert "missing-for-metrics" not in page


@pytest.mark.process
def test_the_document_describes_every_route_and_needs_no_other_site(manager: ManagerProcess) -> None:
    document = manager.call("GET", "/v1/openapi.json")
    assert document["openapi"].startswith("3.1")
    assert {"/v1/topics", "/v1/topics/{topic}/records", "/v1/groups/{group}/reset"} <= document["paths"].keys()
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            assert operation["summary"], (path, method)
            assert "default" in operation["responses"], (path, method)
    assert "://" not in str(document["paths"])


@pytest.mark.process
def test_a_body_without_a_length_is_counted(manager: ManagerProcess) -> None:
    response = manager.http.post(
        "/v1/topics/any/records",
        content=(b"x" * 65_536 for _ in range(200)),
        headers={"content-type": "text/plain"},
    )
    assert response.status_code == 413


@pytest.mark.process
def test_bytes_that_are_not_http_harm_no_one_else(manager: ManagerProcess) -> None:
    host, port = manager.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), 20) as connection:
        connection.sendall(b"\x00\x01\x02 nonsense\r\n\r\n")
        assert connection.recv(100).startswith(b"HTTP/1.1 400")
    manager.call("GET", "/healthz")


@pytest.mark.process
def test_a_manager_without_a_cluster_is_alive_and_not_ready() -> None:
    with EmbeddedBroker() as broker:
        address = broker.bootstrap_servers
    with ManagerProcess(address) as manager:
        manager.call("GET", "/healthz")
        assert "cannot reach" in manager.call("GET", "/readyz", status=503)["detail"]
        manager.call("GET", "/v1/topics", status=503)
        refused = manager.call("POST", "/v1/topics/orders/records", json={"value": 1}, status=503)
        assert "cannot reach" in refused["detail"]


@pytest.mark.process
def test_it_recovers_when_the_cluster_returns(tmp_path: object) -> None:
    with EmbeddedBroker(data_dir=str(tmp_path)) as broker:
        address = broker.bootstrap_servers
        broker.create_topic("orders", partitions=1)
        manager = ManagerProcess(address)
        manager.call("POST", "/v1/topics/orders/records", json={"value": 1})
    with manager:
        manager.call("GET", "/v1/topics/orders/records", status=503)
        with EmbeddedBroker(data_dir=str(tmp_path), config={"listeners": f"PLAINTEXT://{address}"}):
            assert len(manager.call("GET", "/v1/topics/orders/records")["records"]) == 1
            manager.call("POST", "/v1/topics/orders/records", json={"value": 2})
            assert manager.call("GET", "/v1/cluster")["health"] == "green"


@pytest.mark.process
def test_it_stops_in_order_and_refuses_a_taken_address(tmp_path: Path) -> None:
    manager = ManagerProcess("127.0.0.1:1")
    with manager:
        again = subprocess.run(
            [sys.executable, "-m", "headrace", "manager", "--listen", manager.url.removeprefix("http://")],
            capture_output=True,
            text=True,
            timeout=60,
            cwd=tmp_path,
        )
        assert again.returncode == 1
        assert "choose another address with --listen" in again.stderr
        assert httpx.get(f"{manager.url}/healthz").status_code == 200
        assert manager.stop() == 0


@pytest.mark.process
def test_an_address_that_other_machines_reach_is_refused_without_users(tmp_path: Path) -> None:
    run = subprocess.run(
        [sys.executable, "-m", "headrace", "manager", "--listen", "0.0.0.0:0"],
        capture_output=True, text=True, timeout=60, cwd=tmp_path,
    )  # fmt: skip
    assert run.returncode == 1
    assert "ssh -L" in run.stderr


@pytest.mark.process
def test_the_reference_is_a_page_that_loads_nothing_from_elsewhere(manager: ManagerProcess) -> None:
    page = manager.http.get("/reference")
    assert page.headers["content-type"].startswith("text/html")
    assert "default-src 'none'" in page.headers["content-security-policy"]
    for path in manager.call("GET", "/v1/openapi.json")["paths"]:
        assert f" {path}</h3>" in page.text
    text = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", page.text))
    assert "Member Type Meaning name string required" in text, "members of bodies are listed"
    assert "rules[].operation all, read, write," in text, "those of lists too"
    assert "max query integer" in text
    assert "://" not in page.text
    assert "<script" not in page.text
    assert "style=" not in page.text


@pytest.mark.process
def test_paths_keep_the_prefix_of_a_proxy(broker: EmbeddedBroker) -> None:
    with ManagerProcess(broker.bootstrap_servers, "--root-path", "/x/") as manager:
        for page in ("/", "/reference"):
            assert set(re.findall(r'(?:href|src|data-source)="(/[^"/]*)', manager.http.get(page).text)) == {"/x"}
        created = manager.http.post("/v1/topics", json={"name": "behind-a-proxy"})
        assert created.headers["location"] == "/x/v1/topics/behind-a-proxy"
        assert manager.call("GET", "/v1/openapi.json")["servers"] == [{"url": "/x"}]
