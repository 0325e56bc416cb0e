"""kill -9 of a broker process at every point of a commit: the batch is in once, and the driver is told."""

import threading
from pathlib import Path

import pytest

from headrace.client import Admin, NewTopic
from headrace.client.blocking.epochs import Epochs
from headrace.client.epochs import EpochOutcome
from headrace.model.errors import ErrorCode
from tests.broker_process.broker_process import ENDED_BY_KILL, BrokerProcess
from tests.broker_process.raw_connection import RawConnection
from tests.epochs.dying_broker import BEFORE_THE_RECORD, DIE_AT, POINTS
from tests.epochs.writing import committed_values, write
from tests.reserved_ports import reserved_port

pytestmark = [pytest.mark.process, pytest.mark.record_integrity]

CALL_MS_MAX = 60_000
OWNER = "query/sink"


@pytest.mark.parametrize("point", POINTS)
def test_a_commit_survives_the_broker(point: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = {
        "listeners": f"PLAINTEXT://127.0.0.1:{reserved_port()}",
        "transaction.state.log.num.partitions": "1",
    }
    monkeypatch.setenv(DIE_AT, point)
    with BrokerProcess(tmp_path, settings=settings, module="tests.epochs.dying_broker") as broker:
        with Admin(broker.bootstrap_servers) as admin:
            assert not admin.create_topics([NewTopic("t", partitions=2)])["t"].error
        with Epochs(broker.bootstrap_servers, timeout_ms=CALL_MS_MAX) as epochs:
            members = [
                epochs.begin_epoch_member(OWNER, run="1", batch_id=0, task_attempt_id=attempt) for attempt in range(3)
            ]
            with RawConnection(broker.bootstrap_servers) as connection:
                for number, member in enumerate(members):
                    assert member is not None
                    for partition in range(2):
                        value = b"%d" % number
                        assert write(connection, member, "t", value, partition=partition) is ErrorCode.NONE
            outcomes: list[EpochOutcome] = []
            named = [member for member in members[:2] if member is not None]
            driver = threading.Thread(
                target=lambda: outcomes.append(epochs.commit_epoch(OWNER, run="1", batch_id=0, members=named))
            )
            driver.start()
            assert broker.wait() == ENDED_BY_KILL, "the point was not reached"
            broker.module = "headrace"
            broker.start()
            driver.join()
            expected = {EpochOutcome.COMMITTED, EpochOutcome.ALREADY_COMMITTED}
            if point == BEFORE_THE_RECORD:
                expected = {EpochOutcome.COMMITTED}
            assert set(outcomes) <= expected
            assert len(outcomes) == 1
            for partition in range(2):
                assert committed_values(broker.bootstrap_servers, "t", 2, partition=partition) == [b"0", b"1"]
            assert epochs.begin_epoch_member(OWNER, run="2", batch_id=0, task_attempt_id=9) is None
            assert epochs.commit_epoch(OWNER, run="2", batch_id=0, members=[]) is EpochOutcome.ALREADY_COMMITTED
