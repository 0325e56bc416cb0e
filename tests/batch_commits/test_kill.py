"""kill -9 of a broker process at every point of a commit: the batch is committed once, and the driver learns it."""

import threading
from pathlib import Path

import pytest

from headrace.client import Admin, NewTopic
from headrace.client.batch_commits import BatchOutcome
from headrace.client.blocking.batch_commits import BatchCommits
from headrace.model.errors import ErrorCode
from tests.batch_commits.dying_broker import BEFORE_THE_RECORD, DIE_AT, POINTS
from tests.batch_commits.task_records import committed_values, write
from tests.broker_process.broker_process import ENDED_BY_KILL, BrokerProcess
from tests.broker_process.raw_connection import RawConnection
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
    with BrokerProcess(tmp_path, settings=settings, module="tests.batch_commits.dying_broker") as broker:
        with Admin(broker.bootstrap_servers) as admin:
            assert not admin.create_topics([NewTopic("t", partitions=2)])["t"].error
        with BatchCommits(broker.bootstrap_servers, timeout_ms=CALL_MS_MAX) as batch_commits:
            writers = [
                batch_commits.begin_batch_writer(OWNER, run="1", batch_id=0, task_attempt_id=attempt)
                for attempt in range(3)
            ]
            with RawConnection(broker.bootstrap_servers) as connection:
                for number, writer in enumerate(writers):
                    assert writer is not None
                    for partition in range(2):
                        value = b"%d" % number
                        assert write(connection, writer, "t", value, partition=partition) is ErrorCode.NONE
            outcomes: list[BatchOutcome] = []
            named = [writer for writer in writers[:2] if writer is not None]
            driver = threading.Thread(
                target=lambda: outcomes.append(batch_commits.commit_batch(OWNER, run="1", batch_id=0, writers=named))
            )
            driver.start()
            assert broker.wait() == ENDED_BY_KILL, "the point was not reached"
            broker.module = "headrace"
            broker.start()
            driver.join()
            expected = {BatchOutcome.COMMITTED, BatchOutcome.ALREADY_COMMITTED}
            if point == BEFORE_THE_RECORD:
                expected = {BatchOutcome.COMMITTED}
            assert set(outcomes) <= expected
            assert len(outcomes) == 1
            for partition in range(2):
                assert committed_values(broker.bootstrap_servers, "t", 2, partition=partition) == [b"0", b"1"]
            assert batch_commits.begin_batch_writer(OWNER, run="2", batch_id=0, task_attempt_id=9) is None
            assert batch_commits.commit_batch(OWNER, run="2", batch_id=0, writers=[]) is BatchOutcome.ALREADY_COMMITTED
