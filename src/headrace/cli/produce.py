"""`headrace produce TOPIC`: send lines of text, lines of JSON or whole files."""

import os
import stat
from collections.abc import Iterable
from contextlib import nullcontext
from pathlib import Path
from typing import BinaryIO, Literal

import click

from headrace.cli.connection import Properties, connection_options, shared_by_clients
from headrace.cli.console import connection_notices, progress
from headrace.cli.options import complete_topics, escaped_option
from headrace.cli.outcomes import topic_names
from headrace.cli.record_input import Headers, file_records, json_records, split_input, text_records
from headrace.cli.record_sender import RecordSender
from headrace.client import Admin, Producer
from headrace.model.errors import ErrorCode
from headrace.model.nearest_names import aside
from headrace.operations.amounts import count_text
from headrace.wire.records.compression import Compression

LINGER_MS = 5
BATCH_BYTES = 256 << 10
"""Larger than the producer's default, because piped input arrives fast."""

_ACKS: dict[str, Literal["all", 1, 0]] = {"all": "all", "1": 1, "0": 0}


@click.command("produce")
@click.argument("topic", shell_complete=complete_topics)
@click.option("--file", "file", type=click.File("rb"), default="-", help="Read lines from this file instead of stdin.")
@click.option(
    "--value-file",
    "value_files",
    type=click.Path(dir_okay=False, path_type=Path),
    multiple=True,
    help="Send the whole file as the value of one record; may be repeated.",
)
@click.option("--json", "as_json", is_flag=True, help="Read lines of JSON in the format of `headrace consume --json`.")
@click.option("--key", metavar="TEXT", help="Key of every record.")
@click.option("--key-separator", metavar="TEXT", help="Separator between key and value in a line.")
@click.option(
    "--header", "headers", metavar="NAME=VALUE", multiple=True, help="Header of every record; may be repeated."
)
@click.option("--null-value", metavar="TEXT", help="Send a key or value that equals this text as null.")
@escaped_option("--delimiter", default="\\n", help="Delimiter between records of the input.")
@click.option(
    "--partition",
    type=click.IntRange(0),
    help="Send to this partition. [default: by key, or round-robin without a key]",
)
@click.option(
    "--compression",
    type=click.Choice(["none", "gzip", "snappy", "lz4", "zstd"]),
    default="none",
    show_default=True,
    help="Compression type of batches.",
)
@click.option(
    "--acks",
    type=click.Choice(list(_ACKS)),
    default="all",
    show_default=True,
    help="Required acknowledgements: all in-sync replicas, the leader only (1), or none (0).",
)
@connection_options
def command(
    bootstrap: str,
    properties: Properties,
    topic: str,
    file: BinaryIO,
    value_files: tuple[Path, ...],
    as_json: bool,
    key: str | None,
    key_separator: str | None,
    headers: tuple[str, ...],
    null_value: str | None,
    delimiter: bytes,
    partition: int | None,
    compression: str,
    acks: str,
) -> None:
    """Send lines of text to a topic. Each line is one record."""
    if key_separator == "":
        raise click.UsageError("--key-separator must not be empty")
    if as_json and (value_files or key is not None or key_separator is not None or null_value is not None):
        raise click.UsageError(
            "a line of JSON contains the key and nulls: leave out --value-file, --key, --key-separator and --null-value"
        )
    if value_files and (key_separator is not None or null_value is not None):
        raise click.UsageError("a file is one value: leave out --key-separator and --null-value")
    if key is not None and key_separator is not None:
        raise click.UsageError("give one of --key and --key-separator")
    own_headers = _headers(headers)
    created = _created_by_sending(bootstrap, properties, topic)
    interactive = file.isatty() and not value_files
    if interactive:
        click.echo("enter one record per line; Ctrl-D ends the input", err=True)
    bar = progress(f"sending to {topic}", total=_length(file), in_bytes=True)
    with (
        connection_notices(),
        Producer(
            config={
                "bootstrap_servers": bootstrap,
                "acks": _ACKS[acks],
                "compression": compression,
                "linger_ms": 0 if interactive else LINGER_MS,
                "batch_size": BATCH_BYTES,
                **properties,
            }
        ) as producer,
        nullcontext(_ignored) if interactive else bar as advance,  # no progress bar over typed input
    ):
        sender = RecordSender(producer, topic, at_once=interactive)
        pieces = split_input(file, delimiter, advance)
        fixed_key = None if key is None else key.encode()
        with sender.explaining_failures():
            if value_files:
                sender.send(file_records(value_files, key=fixed_key, headers=own_headers, partition=partition))
            elif as_json:
                sender.send(json_records(pieces, headers=own_headers, partition=partition))
            elif interactive or key is not None or key_separator is not None or null_value is not None or headers:
                lines = text_records(
                    pieces,
                    key=fixed_key,
                    key_separator=None if key_separator is None else key_separator.encode(),
                    null_text=None if null_value is None else null_value.encode(),
                    headers=own_headers,
                    partition=partition,
                )
                sender.send(lines)
            else:
                sender.send_values(pieces, partition, Compression[compression.upper()])
            sender.finish()
    made = created if sender.count else ""
    click.echo(f'sent {count_text(sender.count, "record")} to topic "{topic}"{made}', err=True)


def _headers(texts: Iterable[str]) -> Headers:
    pairs: list[tuple[str, bytes | None]] = []
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise click.UsageError(f'--header "{text}": write it as --header name=value')
        pairs.append((name, value.encode()))
    return tuple(pairs)


def _created_by_sending(bootstrap: str, properties: Properties, topic: str) -> str:
    """Return the notice for a topic that the broker will create automatically: its name may be misspelt."""
    with Admin(bootstrap, **shared_by_clients(properties)) as admin:
        (found,) = admin.topics([topic])
        if found.error is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            return ""
        return f", which was created automatically{aside(topic, topic_names(admin))}"


def _length(file: BinaryIO) -> int | None:
    """Return the bytes of a regular file; None for a pipe or a terminal."""
    try:
        found = os.fstat(file.fileno())
    except OSError:  # not a regular file
        return None
    return found.st_size if stat.S_ISREG(found.st_mode) else None


def _ignored(count: int) -> None:
    """Tell whether a user types the records on a terminal and needs no progress bar."""
