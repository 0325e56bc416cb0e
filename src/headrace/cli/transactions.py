"""`headrace transactions`: list, describe and abort transactions, including hanging ones."""

import time
from collections.abc import Sequence

import click

from headrace.cli.batches import batches, pooled_writers, writer_json, writer_text
from headrace.cli.connection import Properties, connection_options
from headrace.cli.console import clean, partitions_text, print_json, print_table
from headrace.cli.failures import Failure, Misuse
from headrace.cli.group import CommandGroup
from headrace.cli.options import (
    complete_topics,
    complete_transactional_ids,
    confirm,
    json_option,
    yes_option,
)
from headrace.cli.outcomes import fail_on_errors, named, topic_names
from headrace.client import Admin, TopicPartition
from headrace.client.errors import BrokerError
from headrace.client.types import HangingTransaction, Outcome, TransactionDescription
from headrace.model.errors import ErrorCode
from headrace.operations.amounts import count_text
from headrace.operations.times import duration_text, parse_duration, time_text

OPEN = ("Ongoing", "PrepareCommit", "PrepareAbort")
STATES = ("Empty", *OPEN, "CompleteCommit", "CompleteAbort")
INTERNAL_TOPICS_WITH_TRANSACTIONS = ("__consumer_offsets",)
NOTHING = "-"


_hanging_topic_option = click.option(
    "--topic",
    "topics",
    metavar="TOPIC",
    multiple=True,
    shell_complete=complete_topics,
    help="With --hanging: check only this topic; may be repeated.",
)


@click.group("transactions", cls=CommandGroup)
def command() -> None:
    """List, describe and abort transactions, including hanging ones."""


command.add_command(batches)


@command.command("list")
@click.option(
    "--state",
    "states",
    type=click.Choice(STATES, case_sensitive=False),
    multiple=True,
    help="List only transactional ids in this state; may be repeated.",
)
@click.option("--open", "only_open", is_flag=True, help="List only transactional ids with an open transaction.")
@click.option(
    "--producer-id",
    "producer_ids",
    type=int,
    multiple=True,
    help="List only transactional ids with this producer id; may be repeated.",
)
@click.option(
    "--longer-than",
    metavar="DURATION",
    help="List only transactions open for longer than this, such as 90s, 15m or 2h.",
)
@click.option(
    "--pattern", metavar="REGEX", help="List only transactional ids that fully match this regular expression."
)
@click.option(
    "--hanging",
    is_flag=True,
    help="List hanging transactions instead, which no coordinator will complete.",
)
@_hanging_topic_option
@connection_options
@json_option
def list_transactions(
    bootstrap: str,
    properties: Properties,
    states: tuple[str, ...],
    only_open: bool,
    producer_ids: tuple[int, ...],
    longer_than: str | None,
    pattern: str | None,
    hanging: bool,
    topics: tuple[str, ...],
    as_json: bool,
) -> None:
    """List transactional ids."""
    if topics and not hanging:
        raise click.UsageError("--topic requires --hanging")
    if hanging and (states or only_open or producer_ids or longer_than or pattern):
        raise click.UsageError("--hanging checks partitions: only the filter --topic can be combined with it")
    if only_open or longer_than is not None:
        states = tuple(state for state in OPEN if not states or state in states)
        if not states:
            raise click.UsageError(f"open transactions have one of the states {', '.join(OPEN)}")
    with Admin(bootstrap, **properties) as admin:
        if hanging:
            _print_hanging(_find_hanging(admin, topics), as_json)
            return
        duration_ms = None if longer_than is None else _duration_ms(longer_than)
        try:
            found = admin.transactions(
                states=states, producer_ids=producer_ids, duration_ms=duration_ms, pattern=pattern
            )
        except BrokerError as error:
            if pattern is None or error.code != ErrorCode.INVALID_REGULAR_EXPRESSION:
                raise
            raise Misuse(f'the broker refuses --pattern "{pattern}"{_reason(pattern)}') from None
    if as_json:
        print_json([each._asdict() for each in found])
        return
    print_table(
        ("transactional id", "state", "producer id"),
        ((each.transactional_id, each.state, each.producer_id) for each in found),
        right=("producer id",),
        empty="no transactional ids: an id is created by its first producer"
        if not (states or producer_ids or pattern)
        else "no transactional id matches",
    )


def _reason(pattern: str) -> str:
    """Return the reason why an expression is invalid, as far as Python knows it; the response has none."""
    from headrace.core.groups.topic_patterns import PatternRefused
    from headrace.core.transactions.transaction_filter import TransactionFilter

    try:
        TransactionFilter(states=None, producer_ids=None, duration_ms=None, pattern=pattern)
    except PatternRefused as refusal:
        return f": {refusal}"
    return ""


def _duration_ms(text: str) -> int:
    try:
        return parse_duration(text)
    except ValueError as wrong:
        raise Misuse(str(wrong)) from None


@command.command("describe")
@click.argument("ids", metavar="ID...", nargs=-1, required=True, shell_complete=complete_transactional_ids)
@connection_options
@json_option
def describe(bootstrap: str, properties: Properties, ids: tuple[str, ...], as_json: bool) -> None:
    """Describe transactional ids: state, producer, age, and the partitions of the open transaction."""
    with Admin(bootstrap, **properties) as admin:
        found = _described(admin, ids)
    writers = pooled_writers(bootstrap, properties, ids)
    if as_json:
        print_json([_description_json(each) | writer_json(writers.get(each.transactional_id)) for each in found])
        return
    print_table(
        ("transactional id", "state", "producer", "producer epoch", "timeout", "open for"),
        (
            (
                each.transactional_id,
                each.state,
                each.producer_id,
                each.producer_epoch,
                duration_text(each.timeout_ms),
                _age(each),
            )
            for each in found
        ),
        right=("producer", "producer epoch", "timeout", "open for"),
    )
    for each in found:
        where = f" in {partitions_text(each.partitions)}" if each.partitions else ""
        writer = writers.get(each.transactional_id)
        lent = f", lent to {writer_text(writer)}" if writer is not None else ""
        click.echo(clean(f'"{each.transactional_id}": coordinator {each.coordinator}{where and ", open"}{where}{lent}'))


@command.command("abort")
@click.argument("ids", metavar="[ID]...", nargs=-1, shell_complete=complete_transactional_ids)
@click.option("--hanging", is_flag=True, help="Abort hanging transactions, which no coordinator will complete.")
@_hanging_topic_option
@yes_option
@connection_options
def abort(
    bootstrap: str, properties: Properties, ids: tuple[str, ...], hanging: bool, topics: tuple[str, ...], yes: bool
) -> None:
    """Abort open transactions. Their producers are fenced and must be restarted."""
    if bool(ids) == hanging:
        raise click.UsageError("give transactional ids or --hanging")
    if topics and not hanging:
        raise click.UsageError("--topic requires --hanging")
    with Admin(bootstrap, **properties) as admin:
        if hanging:
            _abort_hanging(admin, topics, yes)
        else:
            _abort_ids(admin, ids, yes)


def _abort_ids(admin: Admin, ids: Sequence[str], yes: bool) -> None:
    for each in _described(admin, ids, "cannot abort"):
        if each.state == "PrepareCommit":
            raise Failure(
                f'the transaction of "{each.transactional_id}" is already committed; its markers are being written'
            )
        if each.state not in OPEN:
            raise Failure(
                f'transactional id "{each.transactional_id}" has no open transaction; its state is {each.state} '
                "(headrace transactions list --open shows open transactions)"
            )
    if not yes:
        fenced = "its producer" if len(ids) == 1 else "their producers"
        confirm(f"abort {count_text(len(ids), 'transaction')} and fence {fenced}?")
    outcomes = admin.fence_producers(ids)
    for transactional_id, outcome in outcomes.items():
        if outcome.error is ErrorCode.NONE:
            click.echo(f'aborted the transaction of "{transactional_id}"')
    fail_on_errors(named(outcomes, "transactional id"), "cannot abort")


def _abort_hanging(admin: Admin, topics: Sequence[str], yes: bool) -> None:
    found = _find_hanging(admin, topics)
    _print_hanging(found, as_json=False)
    if not found:
        return
    if not yes:
        confirm(f"abort {count_text(len(found), 'hanging transaction')}?")
    outcomes = admin.abort_hanging(found)
    for each, outcome in outcomes.items():
        if outcome.error is ErrorCode.NONE:
            click.echo(f"aborted the transaction of producer {each.producer_id} in {each.partition}")
    told = {f"producer {each.producer_id} in {each.partition}": outcome for each, outcome in outcomes.items()}
    fail_on_errors(told, "cannot abort")


def _find_hanging(admin: Admin, topics: Sequence[str]) -> tuple[HangingTransaction, ...]:
    """Return hanging transactions of the named topics, or of all topics that applications write to."""
    described = admin.topics(list(topics) or None)
    outcomes = {topic.name: Outcome(topic.error) for topic in described}
    fail_on_errors(named(outcomes), "cannot check", known=lambda: topic_names(admin))
    return admin.hanging_transactions(
        TopicPartition(topic.name, partition.partition)
        for topic in described
        if topics or not topic.internal or topic.name in INTERNAL_TOPICS_WITH_TRANSACTIONS
        for partition in topic.partitions
    )


def _print_hanging(found: Sequence[HangingTransaction], as_json: bool) -> None:
    if as_json:
        print_json([{**each._asdict(), **each.partition._asdict()} for each in found])
        return
    print_table(
        ("topic", "partition", "producer", "producer epoch", "since offset", "last write"),
        (
            (
                *each.partition,
                each.producer_id,
                each.producer_epoch,
                each.start_offset,
                time_text(each.last_timestamp),
            )
            for each in found
        ),
        right=("partition", "producer", "producer epoch", "since offset"),
        empty="no hanging transactions: every open transaction has a coordinator",
    )


def _described(admin: Admin, ids: Sequence[str], doing: str = "cannot describe") -> list[TransactionDescription]:
    found = admin.describe_transactions(ids)
    outcomes = {transactional_id: Outcome(each.error) for transactional_id, each in found.items()}
    fail_on_errors(named(outcomes, "transactional id"), doing, known=lambda: _ids(admin))
    return list(found.values())


def _ids(admin: Admin) -> list[str]:
    return [each.transactional_id for each in admin.transactions()]


def _age(described: TransactionDescription) -> str:
    if described.state not in OPEN or described.started_at_ms < 0:
        return NOTHING
    return duration_text(max(round(time.time() * 1_000) - described.started_at_ms, 0))


def _description_json(described: TransactionDescription) -> dict[str, object]:
    return {
        "transactional_id": described.transactional_id,
        "state": described.state,
        "producer_id": described.producer_id,
        "producer_epoch": described.producer_epoch,
        "timeout_ms": described.timeout_ms,
        "started_at_ms": described.started_at_ms,
        "coordinator": described.coordinator,
        "partitions": [str(partition) for partition in described.partitions],
    }
