"""Many transactions whose time is up at once: what one turn does of it, counted."""

from collections import Counter
from typing import Any

from headrace.broker.coordinators.markers import MARKERS_PER_TURN
from headrace.broker.partitions.replica import Replica
from headrace.core.transactions.coordinator import TransactionCoordinator
from headrace.core.transactions.settings import DEADLINES_PER_TURN
from headrace.core.transactions.states import TransactionState
from headrace.model.errors import ErrorCode
from tests.transactions.wire import TransactionClient, known, transaction_broker

COUNT = 2 * DEADLINES_PER_TURN + 20


def test_timeouts_are_dealt_with_over_several_turns(monkeypatch):
    broker = transaction_broker(
        settings={
            "transaction.state.log.num.partitions": "1",
            "transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
        }
    )
    names = [f"writer {number}" for number in range(COUNT)]
    client = TransactionClient(broker)
    for name in names:
        client.transactional_id = name
        assert client.init(timeout_ms=60_000) is ErrorCode.NONE
        assert client.add(0) == [ErrorCode.NONE]
    fenced: Counter[Any] = Counter()
    marked: Counter[Any] = Counter()
    time_out, append_marker = TransactionCoordinator._time_out, Replica.append_marker

    def counted_time_out(*arguments):
        fenced[broker.world.steps] += 1
        return time_out(*arguments)

    def counted_append_marker(*arguments, **options):
        marked[broker.world.steps] += 1
        return append_marker(*arguments, **options)

    monkeypatch.setattr(TransactionCoordinator, "_time_out", counted_time_out)
    monkeypatch.setattr(Replica, "append_marker", counted_append_marker)
    broker.pass_time(61_000)
    broker.run_until(lambda: known(broker, names[-1]).state is TransactionState.COMPLETE_ABORT)
    broker.run_until(lambda: all(known(broker, name).state is TransactionState.COMPLETE_ABORT for name in names))
    assert sum(fenced.values()) == sum(marked.values()) == COUNT
    assert max(fenced.values()) <= DEADLINES_PER_TURN
    assert max(marked.values()) <= MARKERS_PER_TURN
