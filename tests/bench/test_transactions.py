"""The load of transactions, on a small scale."""

import pytest

from headrace.bench.brokers import MeasuredBroker
from headrace.bench.errors import RunRejected
from headrace.testing import EmbeddedBroker
from tools.bench.transactions import TransactionLoad, TransactionReport, TransactionRounds, _check_arrival

pytestmark = pytest.mark.process

LOAD = TransactionLoad(producers=3, partitions=2, records=4, seconds=0.2)


def test_a_round_counts_what_was_committed() -> None:
    with EmbeddedBroker() as broker:
        rounds = TransactionRounds(MeasuredBroker("headrace", broker.bootstrap_servers), LOAD, topic="bench")
        for _ in range(2):
            figures = rounds()
            assert figures["transactions_per_second"] > 0
            assert 0 < figures["p50_us"] <= figures["p99_us"]


def test_a_round_whose_records_are_not_there_does_not_count() -> None:
    with EmbeddedBroker() as broker:
        TransactionRounds(MeasuredBroker("headrace", broker.bootstrap_servers), LOAD, topic="bench")()
        too_few = TransactionReport(1, 1.0, [1.0], 0, 0.0)
        with pytest.raises(RunRejected, match="records and markers of all transactions are 5"):
            _check_arrival(broker.bootstrap_servers, "bench-1", LOAD, too_few)
