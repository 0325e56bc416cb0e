"""`headrace consume TOPIC`: print records from an offset, up to the end or until interrupted."""

import sys
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import BinaryIO

import click

from headrace.cli.connection import Properties, connection_options, shared_by_clients
from headrace.cli.console import clean, connection_notices, reader_may_leave
from headrace.cli.failures import Failure
from headrace.cli.options import complete_groups, complete_topics, escaped_option
from headrace.cli.outcomes import fail_on_errors, named, topic_names
from headrace.client import Admin, Consumer
from headrace.client.config_options import EXISTING_TOPICS
from headrace.client.errors import BrokerError, BrokerUnreachable, DeadlineExceeded
from headrace.client.types import EARLIEST, LATEST, ConsumerRecord, Outcome
from headrace.model.errors import ErrorCode
from headrace.model.ids import TopicPartition
from headrace.operations.record_text import (
    NULL_TEXT,
    PLACEHOLDERS,
    FormatError,
    parse_format,
    record_json,
    record_line,
)
from headrace.operations.times import EXAMPLES, parse_time

POLL_MS = 500
POLL_RECORDS_MAX = 5_000

Offsets = dict[TopicPartition, int]


@click.command("consume")
@click.argument("topic", shell_complete=complete_topics)
@click.option("--from-beginning", is_flag=True, help="Start at the earliest record.")
@click.option(
    "--offset",
    type=int,
    help="Start at this offset, or the nearest one that exists; -5 is five before the end.",
)
@click.option("--at", "at_time", metavar="TIME", help=f"Start at the first record with this time or later: {EXAMPLES}.")
@click.option(
    "--partition", "only", type=click.IntRange(0), multiple=True, help="Read only this partition; may be repeated."
)
@click.option(
    "--group",
    "group_id",
    metavar="GROUP",
    shell_complete=complete_groups,
    help="Join this consumer group and commit the offsets of printed records.",
)
@click.option("--max", "count_max", metavar="N", type=click.IntRange(1), help="Exit after N records.")
@click.option("--follow", is_flag=True, help="Wait for new records at the end of the topic.")
@click.option("--key-separator", metavar="TEXT", help="Print the key, then this separator, then the value.")
@click.option(
    "--json", "as_json", is_flag=True, help="Print each record as a line of JSON, the input of `produce --json`."
)
@click.option(
    "--format",
    "format_text",
    metavar="TEXT",
    help=f"Format of a record: {', '.join(f'%{name} {meaning}' for name, meaning in PLACEHOLDERS.items())}.",
)
@click.option(
    "--null-value",
    metavar="TEXT",
    default=NULL_TEXT.decode(),
    show_default=True,
    help="Text to print for a null key or value.",
)
@escaped_option("--delimiter", default="\\n", help="Text to print after each record; not used with --format.")
@connection_options
def command(
    bootstrap: str,
    properties: Properties,
    topic: str,
    from_beginning: bool,
    offset: int | None,
    at_time: str | None,
    only: tuple[int, ...],
    group_id: str | None,
    count_max: int | None,
    follow: bool,
    key_separator: str | None,
    as_json: bool,
    format_text: str | None,
    null_value: str,
    delimiter: bytes,
) -> None:
    """Print the records of a topic.

    With --from-beginning, --offset or --at, prints the records from that position to the end of the topic and exits,
    unless --follow is given. Without these options, waits for new records.

    With --group, the members of the group share the partitions and start at the committed offsets. A group without
    committed offsets starts at the earliest record with --from-beginning, and at the end of the topic otherwise.
    """
    if group_id is not None and (offset is not None or at_time is not None or only):
        raise click.UsageError(
            "a group determines the partitions and the start offsets: leave out --offset, --at and --partition"
        )
    if sum((from_beginning, offset is not None, at_time is not None)) > 1:
        raise click.UsageError("give one of --from-beginning, --offset and --at")
    if (format_text is not None) + as_json + (key_separator is not None) > 1:
        raise click.UsageError("give one of --json, --format and --key-separator")
    line_of = _line_of(as_json, format_text, key_separator, null_value.encode())
    write = _writer(sys.stdout.buffer, line_of, b"" if format_text is not None else delimiter)
    if group_id is not None:
        _consume_in_group(
            bootstrap,
            properties,
            topic,
            group_id,
            write,
            from_beginning=from_beginning,
            follow=follow,
            count_max=count_max,
        )
        return
    time_ms = _time(at_time) if at_time is not None else None
    waits = follow or not (from_beginning or offset is not None or time_ms is not None)
    with Admin(bootstrap, **shared_by_clients(properties)) as admin:
        partitions = _partitions(admin, topic, only)
        starts, ends = _range(admin, partitions, from_beginning=from_beginning, offset=offset, time_ms=time_ms)
    wanted = {partition: start for partition, start in starts.items() if waits or start < ends[partition]}
    if not wanted:
        return
    with (
        reader_may_leave(),
        connection_notices(),
        Consumer(
            config={"bootstrap_servers": bootstrap, "auto_offset_reset": "earliest", **EXISTING_TOPICS, **properties}
        ) as consumer,
    ):
        consumer.assign(wanted)
        for partition, start in wanted.items():
            consumer.seek(partition, start)
        _print_records(consumer, write, ends=None if waits else {p: ends[p] for p in wanted}, count_max=count_max)


def _consume_in_group(
    bootstrap: str,
    properties: Properties,
    topic: str,
    group_id: str,
    write: Callable[[list[ConsumerRecord]], None],
    *,
    from_beginning: bool,
    follow: bool,
    count_max: int | None,
) -> None:
    """Print and commit records: up to the current end with --from-beginning, and until interrupted otherwise."""
    with Admin(bootstrap, **shared_by_clients(properties)) as admin:
        _partitions(admin, topic, ())
    with (
        reader_may_leave(),
        connection_notices(),
        Consumer(
            topic,
            config={
                "auto_offset_reset": "earliest" if from_beginning else "latest",
                **EXISTING_TOPICS,
                **properties,
                "bootstrap_servers": bootstrap,
                "group_id": group_id,
                "enable_auto_commit": False,
            },
        ) as consumer,
    ):
        left = count_max
        while left is None or left > 0:
            limit = POLL_RECORDS_MAX if left is None else min(left, POLL_RECORDS_MAX)
            records = _polled(consumer, limit, is_patient=follow or not from_beginning)
            write(records)
            if records:
                consumer.commit()
                left = left - len(records) if left is not None else None
            elif from_beginning and not follow and _is_at_end(consumer):
                return


def _polled(consumer: Consumer, records_max: int, *, is_patient: bool) -> list[ConsumerRecord]:
    """Keep waiting for an unreachable broker with --follow; the notice about it is already printed."""
    try:
        return consumer.poll(timeout_ms=POLL_MS, max_records=records_max)
    except (BrokerUnreachable, DeadlineExceeded):
        if not is_patient:
            raise
        return []


def _is_at_end(consumer: Consumer) -> bool:
    """Tell whether the group assigned partitions to this consumer and it has reached the end of all of them."""
    lags = consumer.lag().values()
    return bool(lags) and all(lag == 0 for lag in lags)


def _time(text: str) -> int:
    try:
        return parse_time(text, now=datetime.now().astimezone())
    except ValueError as wrong:
        raise click.UsageError(f"--at {wrong}") from None


def _partitions(admin: Admin, topic: str, only: tuple[int, ...]) -> list[TopicPartition]:
    (described,) = admin.topics([topic])
    fail_on_errors(named({topic: Outcome(described.error)}), "cannot read", known=lambda: topic_names(admin))
    existing = sorted(partition.partition for partition in described.partitions)
    missing = sorted(set(only) - set(existing))
    if missing:
        raise Failure(f'topic "{topic}" has no partition {missing[0]}: it has 0 to {len(existing) - 1}')
    return [TopicPartition(topic, partition) for partition in existing if not only or partition in only]


def _range(
    admin: Admin, partitions: list[TopicPartition], *, from_beginning: bool, offset: int | None, time_ms: int | None
) -> tuple[Offsets, Offsets]:
    """Return the start offset and the current end offset of each partition."""
    ends = _offsets(admin, dict.fromkeys(partitions, LATEST))
    if not from_beginning and offset is None and time_ms is None:
        return dict(ends), ends
    if time_ms is not None:
        found = _offsets(admin, dict.fromkeys(partitions, time_ms))
        return {partition: found[partition] if found[partition] >= 0 else ends[partition] for partition in ends}, ends
    oldest = _offsets(admin, dict.fromkeys(partitions, EARLIEST))
    if offset is None:
        return oldest, ends
    return {partition: start_offset(offset, oldest[partition], ends[partition]) for partition in ends}, ends


def start_offset(wanted: int, oldest: int, end: int) -> int:
    """Return the requested offset, counted from the end if negative, limited to the offsets that exist."""
    return min(max(wanted if wanted >= 0 else end + wanted, oldest), end)


def _offsets(admin: Admin, times: Mapping[TopicPartition, int]) -> Offsets:
    found = admin.offsets(times)
    for partition, at in found.items():
        if at.error != ErrorCode.NONE:
            raise BrokerError(at.error, f"cannot read {partition}")
    return {partition: at.offset for partition, at in found.items()}


def _line_of(
    as_json: bool, format_text: str | None, key_separator: str | None, null_text: bytes
) -> Callable[[ConsumerRecord], bytes]:
    """Return the function that prints a record. On a terminal it escapes control characters of records."""
    show = _cleaned if sys.stdout.isatty() else bytes
    if as_json:
        return lambda record: show(record_json(record).encode())
    if format_text is None:
        separator = None if key_separator is None else key_separator.encode()
        return lambda record: record_line(record, separator, null_text=null_text, show=show)
    try:
        line = parse_format(format_text, null_text=null_text, show=show)
    except FormatError as wrong:
        raise click.UsageError(f"--format: {wrong}") from None
    return line


def _cleaned(value: bytes) -> bytes:
    return clean(value.decode(errors="backslashreplace")).encode()


def _writer(
    stream: BinaryIO, line_of: Callable[[ConsumerRecord], bytes], delimiter: bytes
) -> Callable[[list[ConsumerRecord]], None]:
    def write(records: list[ConsumerRecord]) -> None:
        stream.writelines([line_of(record) + delimiter for record in records])
        stream.flush()

    return write


def _print_records(
    consumer: Consumer,
    write: Callable[[list[ConsumerRecord]], None],
    *,
    ends: Offsets | None,
    count_max: int | None,
) -> None:
    """Print records until `ends` are reached (never, if there are none) or `count_max` records are printed."""
    left = count_max
    while ends is None or any(consumer.position(partition) < end for partition, end in ends.items()):
        limit = POLL_RECORDS_MAX if left is None else min(left, POLL_RECORDS_MAX)
        records = _polled(consumer, limit, is_patient=ends is None)
        if ends is not None:
            records = [r for r in records if r.offset < ends[TopicPartition(r.topic, r.partition)]]
        write(records)
        if left is not None:
            left -= len(records)
            if left == 0:
                return
