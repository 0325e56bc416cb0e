"""`headrace transactions epochs`: the pools of sinks that commit whole batches, and who has which id of them."""

from collections.abc import Iterable, Mapping
from typing import Any

import click

from headrace.cli.console import clean, print_json, print_table
from headrace.cli.failures import Failure
from headrace.cli.options import bootstrap_option, json_option
from headrace.cli.times import time_text
from headrace.client.epochs import EpochsDescription, PooledMember
from headrace.model.errors import ErrorCode

SLOT_MARK = "#"
IN_POOL = "nobody"


@click.command("epochs")
@click.argument("owner")
@bootstrap_option
@json_option
def epochs(bootstrap: str, owner: str, as_json: bool) -> None:
    """Show the last committed batch of an owner, such as a Spark sink, and the ids of its pool."""
    found = _described(bootstrap, owner)
    if found is None:
        raise Failure(f'nothing is known of the owner "{owner}": it comes with its first batch')
    if as_json:
        print_json({**found._asdict(), "members": [member._asdict() for member in found.members]})
        return
    last = f"batch {found.committed_batch_id}" if found.committed_batch_id >= 0 else "no batch"
    click.echo(clean(f"{owner}: {last} committed, newest run {found.run}, {time_text(found.updated_at_ms)}"))
    print_table(
        ("transactional id", "state", "producer", "epoch", "lent to"),
        (
            (each.transactional_id, each.state, each.producer_id, each.producer_epoch, member_text(each))
            for each in found.members
        ),
        right=("producer", "epoch"),
        empty="its pool is empty",
    )


def pooled_members(bootstrap: str, ids: Iterable[str]) -> Mapping[str, PooledMember]:
    """Those of the ids that are of a pool."""
    owners = {each.partition(SLOT_MARK)[0] for each in ids if SLOT_MARK in each}
    found = (_described(bootstrap, owner) for owner in sorted(owners))
    return {member.transactional_id: member for each in found if each is not None for member in each.members}


def _described(bootstrap: str, owner: str) -> EpochsDescription | None:
    """None if it is not known, or the broker knows no owners at all."""
    from headrace.client.blocking.epochs import Epochs
    from headrace.client.errors import BrokerError, UnsupportedByBroker

    try:
        with Epochs(bootstrap) as client:
            return client.describe(owner)
    except UnsupportedByBroker:
        return None
    except BrokerError as error:
        if error.code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
            return None
        raise


def member_text(member: PooledMember) -> str:
    return f"attempt {member.task_attempt_id}, batch {member.batch_id}, run {member.run}" if member.run else IN_POOL


def member_json(member: PooledMember | None) -> dict[str, Any]:
    """What is added to the description of an id of a pool."""
    if member is None:
        return {}
    return {"run": member.run, "batch_id": member.batch_id, "task_attempt_id": member.task_attempt_id}
