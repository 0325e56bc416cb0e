"""Connections that a Python worker keeps from task to task, since Spark reuses its workers."""

import atexit
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from headrace.client.errors import ClientError
from headrace.client.types import ConfigResource, ResourceType
from headrace.spark.broker_wait import BrokerWait
from headrace.spark.sink.options import SinkOptions

if TYPE_CHECKING:
    from headrace.client.blocking.batch_commits import BatchCommits

KEPT_MAX = 4
"""Per kind of client, that is the number of clusters that one worker writes to alternately."""

TOPIC_LIMIT = "max.message.bytes"


class Closable(Protocol):
    def close(self) -> None: ...


K = TypeVar("K", bound=Closable)
T = TypeVar("T")

_kept: dict[tuple[int, str, Any], Any] = {}


def kept(kind: str, settings: Any, make: Callable[[], K]) -> K:
    """Return the kept client of this kind with these settings; a forked worker makes its own."""
    key = (os.getpid(), kind, settings)
    found: K | None = _kept.get(key)
    if found is None:
        same_kind = [each for each in _kept if each[:2] == key[:2]]
        if len(same_kind) >= KEPT_MAX:
            drop(kind, same_kind[0][2])
        found = _kept[key] = make()
    return found


def drop(kind: str, settings: Any) -> None:
    """Close a kept client after a failure, so that the next task makes a new one."""
    found = _kept.pop((os.getpid(), kind, settings), None)
    if found is not None:
        try:
            found.close()
        except ClientError:
            pass  # it is dropped because it has failed already


@atexit.register
def drop_all() -> None:
    """Close the clients of this process at its end; those of the process that it was forked from are not its own."""
    for process_id, kind, settings in tuple(_kept):
        if process_id == os.getpid():
            drop(kind, settings)


def kept_batch_commits(options: SinkOptions) -> "BatchCommits":
    from headrace.client.blocking.batch_commits import BatchCommits

    return kept("batch commits", options.client, lambda: BatchCommits(config=options.admin_config()))


def retry_until_deadline(options: SinkOptions, ask: Callable[[], T]) -> T:
    """Call `ask`, and repeat it while no broker can be reached, up to kafka.delivery.timeout.ms."""
    config = options.producer_config()
    patience = BrokerWait(
        servers=config.servers(), option="kafka.delivery.timeout.ms", limit_ms=config.delivery_timeout_ms
    )
    return patience.ask(ask)


def topic_batch_bytes_max(options: SinkOptions, topic: str) -> int:
    """Return the size limit of record batches: kafka.batch.size, and at most the topic's own limit if it is known."""
    from headrace.client.blocking.admin import Admin

    config = options.producer_config()
    resource = ConfigResource(ResourceType.TOPIC, topic)
    admin = kept("admin", options.client, lambda: Admin(config=options.admin_config()))
    try:
        entries = retry_until_deadline(options, lambda: admin.describe_configs([resource])[resource])
    except ClientError:
        return config.batch_size
    limits = [int(entry.value) for entry in entries if entry.name == TOPIC_LIMIT and entry.value is not None]
    return min(config.batch_size, *limits) if limits else config.batch_size
