"""Topics of a load: creation, readiness, end offsets and deletion."""

import time
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from headrace.bench.errors import BenchError
from headrace.bench.links import BenchConnection
from headrace.client import LATEST, Admin, NewTopic
from headrace.client.errors import ClientError
from headrace.model.errors import error_name
from headrace.model.ids import TopicPartition
from headrace.wire.messages import init_producer_id

LEADERS_SECONDS_MAX = 300
LOOK_AGAIN_SECONDS = 0.02
TOPICS_PER_REQUEST = 100
ADMIN_TIMEOUT_MS = 120_000
INIT_PRODUCER_ID_VERSION = 4


class ProducerIdentity(NamedTuple):
    producer_id: int
    epoch: int


def create_topics(
    bootstrap: str, names: Sequence[str], *, partitions: int, configs: Mapping[str, str] | None = None
) -> None:
    """Create topics and wait until all their partitions are served."""
    with Admin(bootstrap, timeout_ms=ADMIN_TIMEOUT_MS) as admin:
        for first in range(0, len(names), TOPICS_PER_REQUEST):
            wanted = names[first : first + TOPICS_PER_REQUEST]
            outcomes = admin.create_topics([NewTopic(name, partitions, configs=configs or {}) for name in wanted])
            for name, outcome in outcomes.items():
                if outcome.error:
                    raise BenchError(f'topic "{name}" cannot be created: {outcome.message or outcome.error.name}')
    wait_until_served(bootstrap, names, partitions=partitions)


def delete_topics(bootstrap: str, prefix: str) -> None:
    """Delete all topics with this prefix, so that a load leaves nothing on a running broker."""
    with Admin(bootstrap, timeout_ms=ADMIN_TIMEOUT_MS) as admin:
        names = [topic.name for topic in admin.topics() if topic.name.startswith(prefix)]
        for first in range(0, len(names), TOPICS_PER_REQUEST):
            admin.delete_topics(names[first : first + TOPICS_PER_REQUEST])


def wait_until_served(bootstrap: str, names: Sequence[str], *, partitions: int) -> dict[TopicPartition, int]:
    """Wait until every partition reports its end offset."""
    wanted = dict.fromkeys((TopicPartition(name, index) for name in names for index in range(partitions)), LATEST)
    deadline = time.monotonic() + LEADERS_SECONDS_MAX
    while True:
        failure = ""
        try:
            with Admin(bootstrap, timeout_ms=ADMIN_TIMEOUT_MS) as admin:
                found = admin.offsets(wanted)
            if all(not at.error for at in found.values()) and len(found) == len(wanted):
                return {partition: at.offset for partition, at in found.items()}
            failure = ", ".join(sorted({at.error.name for at in found.values() if at.error}))
        except ClientError as error:
            failure = str(error)
        if time.monotonic() > deadline:
            raise BenchError(f"partitions are not available after {LEADERS_SECONDS_MAX} s: {failure}")
        time.sleep(LOOK_AGAIN_SECONDS)


def end_offsets(bootstrap: str, topic: str, *, partitions: int) -> list[int]:
    found = wait_until_served(bootstrap, [topic], partitions=partitions)
    return [found[TopicPartition(topic, index)] for index in range(partitions)]


def producer_identities(bootstrap: str, count: int) -> list[ProducerIdentity]:
    """Return producer ids for idempotent batches, one per connection of a load."""
    identities: list[ProducerIdentity] = []
    request = init_producer_id.InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000)
    with BenchConnection(bootstrap) as link:
        deadline = time.monotonic() + LEADERS_SECONDS_MAX
        while len(identities) < count:
            response = link.call(init_producer_id, request, INIT_PRODUCER_ID_VERSION)
            if not response.error_code:
                identities.append(ProducerIdentity(response.producer_id, response.producer_epoch))
            elif time.monotonic() > deadline:
                raise BenchError(f"no producer ids: {error_name(response.error_code)}")
            else:
                time.sleep(LOOK_AGAIN_SECONDS)
    return identities
