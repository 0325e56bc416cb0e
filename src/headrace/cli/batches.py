"""`headrace transactions batches`: the last batch commit of an owner, and the borrowers of its pool's ids."""

from collections.abc import Iterable, Mapping
from typing import Any

import click

from headrace.cli.connection import Properties, connection_options
from headrace.cli.console import clean, print_json, print_table
from headrace.cli.failures import Failure
from headrace.cli.options import json_option
from headrace.client.batch_commits import BatchesDescription, PooledWriter
from headrace.model.errors import ErrorCode
from headrace.operations.times import time_text

SLOT_MARK = "#"
IN_POOL = "-"


@click.command("batches")
@click.argument("owner")
@connection_options
@json_option
def batches(bootstrap: str, properties: Properties, owner: str, as_json: bool) -> None:
    """Show the last batch commit of an owner, such as a Spark sink, and the ids of its pool."""
    found = _described(bootstrap, properties, owner)
    if found is None:
        raise Failure(f'unknown owner "{owner}": an owner exists from its first batch on')
    if as_json:
        print_json({**found._asdict(), "writers": [writer._asdict() for writer in found.writers]})
        return
    last = f"batch {found.committed_batch_id}" if found.committed_batch_id >= 0 else "no batch"
    click.echo(clean(f"{owner}: {last} committed, newest run {found.run}, {time_text(found.updated_at_ms)}"))
    print_table(
        ("transactional id", "state", "producer", "producer epoch", "lent to"),
        (
            (each.transactional_id, each.state, each.producer_id, each.producer_epoch, writer_text(each))
            for each in found.writers
        ),
        right=("producer", "producer epoch"),
        empty="the pool is empty",
    )


def pooled_writers(bootstrap: str, properties: Properties, ids: Iterable[str]) -> Mapping[str, PooledWriter]:
    """Return those of the ids that belong to a pool."""
    owners = {each.partition(SLOT_MARK)[0] for each in ids if SLOT_MARK in each}
    found = (_described(bootstrap, properties, owner) for owner in sorted(owners))
    return {writer.transactional_id: writer for each in found if each is not None for writer in each.writers}


def _described(bootstrap: str, properties: Properties, owner: str) -> BatchesDescription | None:
    """Return None if the owner is unknown, or the broker has no batch commits."""
    from headrace.client.blocking.batch_commits import BatchCommits
    from headrace.client.errors import BrokerError, UnsupportedByBroker

    try:
        with BatchCommits(bootstrap, **properties) as client:
            return client.describe(owner)
    except UnsupportedByBroker:
        return None
    except BrokerError as error:
        if error.code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
            return None
        raise


def writer_text(writer: PooledWriter) -> str:
    return f"attempt {writer.task_attempt_id}, batch {writer.batch_id}, run {writer.run}" if writer.run else IN_POOL


def writer_json(writer: PooledWriter | None) -> dict[str, Any]:
    """Return what the description of an id of a pool has in addition."""
    if writer is None:
        return {}
    return {"run": writer.run, "batch_id": writer.batch_id, "task_attempt_id": writer.task_attempt_id}
