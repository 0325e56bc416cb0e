"""franz-go writes, in transactions too, and reads as a group, from a broker that has more APIs than it knows."""

import json
import subprocess
from collections.abc import Iterator

import pytest

from compat.go_client.build import go_program
from headrace.testing import EmbeddedBroker
from headrace.wire.apis import ApiKey

PROGRAM_S_MAX = 90
PLAIN = 100


@pytest.fixture
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(process=True) as broker:
        yield broker


def test_private_keys_are_seen_and_ignored(broker: EmbeddedBroker) -> None:
    topic = broker.create_topic("of-go", partitions=1)
    command = [str(go_program()), broker.bootstrap_servers, topic]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PROGRAM_S_MAX, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert {ApiKey.BEGIN_BATCH_WRITER, ApiKey.COMMIT_BATCH, ApiKey.ABORT_BATCH, ApiKey.SCAN_MANIFEST} <= set(
        found["private_keys"]
    )
    assert found["values"] == [*(f"plain {number}" for number in range(PLAIN)), "committed"]
    assert found["committed_offsets"] == [PLAIN + 1]
