"""`headrace produce TOPIC`: send lines of text."""

from collections import deque
from collections.abc import Iterable
from contextlib import nullcontext
from typing import BinaryIO, Literal

import click

from headrace.cli.console import connection_notices, count_text, progress
from headrace.cli.failures import Failure
from headrace.cli.options import bootstrap_option, complete_topics
from headrace.cli.outcomes import topic_names
from headrace.cli.record_text import LINE_LENGTH_MAX, InputRecord, LineError, input_records
from headrace.client import Admin, Delivery, Producer
from headrace.client.errors import BrokerError
from headrace.model.errors import ErrorCode
from headrace.model.nearest_names import aside

UNCONFIRMED_MAX = 10_000
"""Records sent whose acknowledgement has not been looked at yet."""
DELIVERY_TIMEOUT_MS = 120_000
LINGER_MS = 5
BATCH_BYTES = 256 << 10
"""Input that is piped in comes fast, so batches are larger than a program's usual ones."""
PROGRESS_RECORDS = 1000
"""Records between two movements of the progress bar."""

_ACKS: dict[str, Literal["all", 1, 0]] = {"all": "all", "1": 1, "0": 0}


@click.command("produce")
@click.argument("topic", shell_complete=complete_topics)
@click.option("--file", "file", type=click.File("rb"), default="-", help="Read lines from here instead of stdin.")
@click.option("--key-separator", metavar="TEXT", help="What stands before this text in a line is the record's key.")
@click.option("--partition", type=click.IntRange(0), help="Send to this partition; by key, or in turn, if not given.")
@click.option(
    "--compression",
    type=click.Choice(["none", "gzip", "snappy", "lz4", "zstd"]),
    default="none",
    show_default=True,
    help="How batches are compressed.",
)
@click.option(
    "--acks",
    type=click.Choice(list(_ACKS)),
    default="all",
    show_default=True,
    help="Whose acknowledgement a record waits for: all in-sync replicas', the leader's, or nobody's.",
)
@bootstrap_option
def command(
    bootstrap: str,
    topic: str,
    file: BinaryIO,
    key_separator: str | None,
    partition: int | None,
    compression: str,
    acks: str,
) -> None:
    """Send lines of text to a topic. Each line is one record."""
    if key_separator == "":
        raise click.UsageError("--key-separator must not be empty")
    made = _what_is_made(bootstrap, topic)
    interactive = file.isatty()
    if interactive:
        click.echo("one record per line; Ctrl-D ends", err=True)
    separator = key_separator.encode() if key_separator is not None else None
    with (
        connection_notices(),
        Producer(
            bootstrap_servers=bootstrap,
            acks=_ACKS[acks],
            compression=compression,
            linger_ms=0 if interactive else LINGER_MS,
            batch_size=BATCH_BYTES,
        ) as producer,
    ):
        records = input_records(_lines(file), separator)
        count = _send_all(producer, topic, records, partition=partition, at_once=interactive)
    click.echo(f'sent {count_text(count, "record")} to topic "{topic}"{made if count else ""}', err=True)


def _what_is_made(bootstrap: str, topic: str) -> str:
    """Brokers make a topic that is written to: what to say of one that is not there, since its name may be misspelt."""
    with Admin(bootstrap) as admin:
        (found,) = admin.topics([topic])
        if found.error is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            return ""
        return f", which was made for it{aside(topic, topic_names(admin))}"


def _lines(file: BinaryIO) -> Iterable[bytes]:
    """Lines as they come; one beyond the limit is handed on cut, and refused there."""
    while line := file.readline(LINE_LENGTH_MAX + 2):
        yield line


def _send_all(
    producer: Producer, topic: str, records: Iterable[InputRecord], *, partition: int | None, at_once: bool
) -> int:
    unconfirmed: deque[Delivery] = deque()
    count = 0
    with nullcontext(_ignored) if at_once else progress(f"sending to {topic}") as advance:  # none over what is typed
        try:
            for record in records:
                unconfirmed.append(producer.send(topic, record.value, key=record.key, partition=partition))
                if at_once:
                    producer.flush()
                if at_once or len(unconfirmed) >= UNCONFIRMED_MAX:
                    unconfirmed.popleft().result(DELIVERY_TIMEOUT_MS)
                count += 1
                if count % PROGRESS_RECORDS == 0:
                    advance(PROGRESS_RECORDS)
        except LineError as wrong:
            _confirm(unconfirmed)
            raise Failure(f"{wrong} ({count_text(count, 'record')} before it were sent)") from None
        producer.flush()
        _confirm(unconfirmed)
    return count


def _ignored(count: int) -> None:
    """Whoever types the records sees how many they are."""


def _confirm(unconfirmed: deque[Delivery]) -> None:
    """Raises what the broker refused, which the client's error explains."""
    try:
        while unconfirmed:
            unconfirmed.popleft().result(DELIVERY_TIMEOUT_MS)
    except BrokerError as refused:
        if refused.code == ErrorCode.INVALID_TOPIC_EXCEPTION:
            raise Failure(f"{refused} (it is internal: only the broker writes to it)") from None
        raise
