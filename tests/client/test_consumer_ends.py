"""The end of a consumer: it closes its fetch sessions at the brokers."""

from typing import Any

import pytest

from headrace.client import Consumer, Producer
from headrace.client.blocking.session import Session
from headrace.client.config import AdminConfig
from headrace.client.core.calls import ask
from headrace.model.errors import ErrorCode
from headrace.testing import EmbeddedBroker
from headrace.wire.messages import fetch

pytestmark = [pytest.mark.process, pytest.mark.usefixtures("front")]

WAIT_MS = 60_000
EPOCH_NOBODY_IS_AT = 1_000_000


def session_error(session: Session, session_id: int) -> int:
    """Errors of the broker about a session: it knows none such, or the count is wrong."""
    request = fetch.FetchRequest(session_id=session_id, session_epoch=EPOCH_NOBODY_IS_AT)
    answer: fetch.FetchResponse = session.run(ask(fetch, request, min_version=13), WAIT_MS)
    return answer.error_code


@pytest.mark.parametrize("group_id", [None, "g"])
def test_sessions_are_closed(any_broker: EmbeddedBroker, group_id: str | None) -> None:
    topic = any_broker.create_topic(any_broker.unused_topic_name("sessions"))
    with Producer(any_broker.bootstrap_servers) as producer:
        producer.send(topic, b"v").result(timeout_ms=WAIT_MS)
    options: dict[str, Any] = {"bootstrap_servers": any_broker.bootstrap_servers, "auto_offset_reset": "earliest"}
    asking = Session(AdminConfig(bootstrap_servers=any_broker.bootstrap_servers))
    try:
        with Consumer(topic, **options, group_id=group_id) as consumer:
            assert next(consumer).value == b"v"
            consumer.poll(timeout_ms=1)  # The next fetch waits at the broker.
            (fetching,) = consumer._core._sessions.values()
            session_id = fetching._session_id
            assert session_error(asking, session_id) == ErrorCode.INVALID_FETCH_SESSION_EPOCH
        give_up_ms = asking.clock.monotonic_ms() + WAIT_MS
        while session_error(asking, session_id) != ErrorCode.FETCH_SESSION_ID_NOT_FOUND:
            assert asking.clock.monotonic_ms() < give_up_ms, "the session is still there"
    finally:
        asking.close()
