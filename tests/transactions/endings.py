"""Waits for the ends of transactions: they are written behind their records after they were acknowledged."""

import time

from headrace.client import LATEST, Admin, IsolationLevel, TopicPartition

OPEN_S_MAX = 30.0


def wait_until_none_is_open(bootstrap_servers: str, topic: str, partition: int = 0) -> None:
    place, deadline = TopicPartition(topic, partition), time.monotonic() + OPEN_S_MAX
    with Admin(bootstrap_servers) as admin:
        while len({admin.offsets({place: LATEST}, isolation=each)[place].offset for each in IsolationLevel}) > 1:
            assert time.monotonic() < deadline, f"a transaction is open in {place}"
