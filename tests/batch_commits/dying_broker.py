"""`headrace broker` that kills itself at a point of a commit, which DIE_AT names; run as a module."""

import os
import signal
from collections.abc import Callable
from typing import Any

from headrace.broker.coordinators.host import CoordinatorHost
from headrace.broker.coordinators.markers import MarkerSender
from headrace.broker.coordinators.transactions import Transactions
from headrace.broker.partitions.replica import Replica
from headrace.cli.main import main
from headrace.core.transactions.owner_records import OwnerRecord

DIE_AT = "DIE_AT"
BEFORE_THE_RECORD = "before the commit's record"
BEFORE_THE_MARKERS = "before the first marker"
BETWEEN_MARKERS = "between two markers"
BEFORE_THE_END = "before the end is noted"
POINTS = (BEFORE_THE_RECORD, BEFORE_THE_MARKERS, BETWEEN_MARKERS, BEFORE_THE_END)


def die(*_arguments: Any, **_options: Any) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def arm(point: str) -> None:
    append, append_marker = CoordinatorHost._append, Replica.append_marker
    markers = 0

    def append_unless_it_commits(host: Any, decision: Any) -> None:
        owners = [record.owner for record in decision.records if isinstance(record, OwnerRecord)]
        if any(owner is not None and owner.committed_batch_id >= 0 for owner in owners):
            die()
        append(host, decision)

    def append_one_marker(partition: Any, *arguments: Any, **options: Any) -> Any:
        nonlocal markers
        markers += 1
        if markers > 1:
            die()
        return append_marker(partition, *arguments, **options)

    patches: dict[str, tuple[type, str, Callable[..., Any]]] = {
        BEFORE_THE_RECORD: (CoordinatorHost, "_append", append_unless_it_commits),
        BEFORE_THE_MARKERS: (MarkerSender, "send", die),
        BETWEEN_MARKERS: (Replica, "append_marker", append_one_marker),
        BEFORE_THE_END: (Transactions, "_complete", die),
    }
    setattr(*patches[point])


if __name__ == "__main__":
    arm(os.environ[DIE_AT])
    main()
