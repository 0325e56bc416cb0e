"""The OpenAPI document as a contract: generated requests, valid and invalid ones, to every operation of it.

An operation answers with a status of the document and a body of its schema, or with a problem that says what to do, and
never with an error that the manager did not expect.
"""

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from hypothesis.errors import Unsatisfiable

from headrace.testing import EmbeddedBroker
from tests.manager.manager_process import REQUEST_S_MAX, ManagerProcess

schemathesis = pytest.importorskip("schemathesis", reason="needs schemathesis: pip install schemathesis")
from schemathesis.generation import GenerationMode  # noqa: E402
from schemathesis.specs.openapi.checks import (  # noqa: E402
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

pytestmark = pytest.mark.process

REQUESTS_PER_OPERATION = {GenerationMode.POSITIVE: 5, GenerationMode.NEGATIVE: 3}
STREAMS = ("/v1/topics/{topic}/stream", "/v1/clients/{client}/stream", "/v1/events")
"""Their responses do not end, so only their beginning is looked at."""
CONFORMANCE = (content_type_conformance, response_schema_conformance, status_code_conformance)
TOPIC, GROUP, TRANSACTIONAL_ID = "contract", "contract-group", "contract-transaction"
KNOWN = {"topic": TOPIC, "group": GROUP, "node_id": 1, "broker": "1"}
"""Path parameters with which an operation succeeds."""
KEPT = ("/v1/brokers/{broker}/configs",)
"""Operations that would change the broker, of which only those that fail are sent."""


@pytest.fixture(scope="module")
def contract(manager: ManagerProcess, broker: EmbeddedBroker) -> Iterator[Any]:
    broker.create_topic(TOPIC, partitions=2)
    records = [{"key": "k", "value": {"n": number}, "headers": [{"name": "h", "value": "v"}]} for number in range(10)]
    manager.call("POST", f"/v1/topics/{TOPIC}/records", json={"records": records})
    manager.call("POST", f"/v1/groups/{GROUP}/reset", json={"to": "earliest", "topics": {TOPIC: []}})
    return schemathesis.openapi.from_dict(manager.call("GET", "/v1/openapi.json"))


def operations(document: Any) -> list[Any]:
    return [each.ok() for each in document.get_all_operations()]


@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE])
def test_every_operation_keeps_the_contract(contract: Any, manager: ManagerProcess, mode: Any) -> None:
    found = operations(contract)
    assert len(found) > 70
    statuses: dict[str, set[int]] = {}
    with httpx.Client(base_url=manager.url, timeout=REQUEST_S_MAX) as http:
        for operation in found:
            seen = statuses.setdefault(operation.label, set())
            asked(http, operation, mode, seen)
    succeeded = [label for label, seen in statuses.items() if any(status < 400 for status in seen)]
    print(f"{mode}: {len(succeeded)} of {len(found)} operations succeeded at least once")
    if mode is GenerationMode.POSITIVE:
        assert len(succeeded) > len(found) // 3, statuses
    assert manager.call("GET", "/healthz")["status"] == "alive"


def asked(http: httpx.Client, operation: Any, mode: Any, seen: set[int]) -> None:
    """Send generated requests of one operation."""

    @seed(18)
    @settings(
        max_examples=REQUESTS_PER_OPERATION[mode], deadline=None, database=None, phases=[Phase.generate],
        suppress_health_check=[*HealthCheck],
    )  # fmt: skip
    @given(case=operation.as_strategy(generation_mode=mode), is_known=st.booleans())
    def requested(case: Any, is_known: bool) -> None:
        for name in case.path_parameters:
            if is_known and name in KNOWN and (case.method == "GET" or case.path not in KEPT):
                case.path_parameters[name] = KNOWN[name]
        sent = case.as_transport_kwargs(base_url=str(http.base_url))
        sent.pop("cookies", None)
        request = prepared(http, sent)
        if request is None:
            return
        response = http.send(request, stream=True)
        try:
            if not (case.path in STREAMS and response.status_code == 200):
                response.read()
                kept_contract(case, response)
            seen.add(response.status_code)
        finally:
            response.close()

    with suppress(Unsatisfiable):  # Nothing about an operation without parameters can be invalid.
        requested()


def prepared(http: httpx.Client, sent: dict[str, Any]) -> httpx.Request | None:
    """Return the request; none if a client cannot even send it, such as a header with a line end."""
    content = sent.get("data")
    try:
        return http.build_request(
            sent["method"], sent["url"], params=sent.get("params"), headers=sent.get("headers"),
            json=sent.get("json"), content=content if isinstance(content, bytes | str) else None,
        )  # fmt: skip
    except (httpx.InvalidURL, UnicodeError, ValueError, TypeError):
        return None


def kept_contract(case: Any, response: httpx.Response) -> None:
    assert response.status_code != 500, (case.method, case.path, response.text)
    if response.status_code >= 400:
        assert response.headers["content-type"] == "application/problem+json", response.text
        problem = response.json()
        assert (problem["status"], bool(problem["detail"])) == (response.status_code, True)
        assert problem["request_id"] == response.headers["x-request-id"]
    elif response.status_code != 304:
        case.validate_response(response, checks=[*CONFORMANCE])
