"""Waits for the ends of transactions: they are written behind their records after they were acknowledged."""

import time

from headrace.client import Admin
from headrace.core.transactions.states import ENDING

END_S_MAX = 60.0
LOOK_S = 0.01


def wait_until_ended(bootstrap_servers: str) -> None:
    """Until every transaction that was committed or aborted is so for all readers; others may be open."""
    deadline = time.monotonic() + END_S_MAX
    with Admin(bootstrap_servers) as admin:
        while ending := admin.transactions(states=sorted(ENDING)):
            assert time.monotonic() < deadline, ending
            time.sleep(LOOK_S)
