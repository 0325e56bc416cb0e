"""`headrace groups`: list, describe, members, lag, reset, delete."""

from collections.abc import Iterable, Sequence
from datetime import datetime

import click

from headrace.cli.connection import Properties, connection_options
from headrace.cli.console import partitions_text, print_json, print_table
from headrace.cli.failures import Failure, Misuse
from headrace.cli.group import CommandGroup
from headrace.cli.options import complete_groups, confirm, json_option, yes_option
from headrace.cli.outcomes import fail_on_errors, named, topic_names
from headrace.client import Admin
from headrace.client.types import EARLIEST, LATEST, GroupDescription, Outcome
from headrace.model.errors import ErrorCode
from headrace.model.ids import TopicPartition
from headrace.model.nearest_names import aside
from headrace.operations.amounts import count_text
from headrace.operations.group_lag import PartitionLag, group_lag
from headrace.operations.group_reset import (
    Move,
    ResetSelection,
    ResetTarget,
    moves,
    parse_selection,
    selected_partitions,
)
from headrace.operations.times import EXAMPLES, parse_time

DEAD, EMPTY = "Dead", "Empty"
NOTHING = "-"
TYPES = ("classic", "consumer")
STATES = (EMPTY, "PreparingRebalance", "CompletingRebalance", "Assigning", "Reconciling", "Stable", DEAD)
"""States of both protocols: the two rebalance states are classic, Assigning and Reconciling belong to KIP-848."""


@click.group("groups", cls=CommandGroup)
def command() -> None:
    """List, describe, reset and delete consumer groups, and show their lag."""


@command.command("list")
@click.option(
    "--state",
    "states",
    type=click.Choice(STATES, case_sensitive=False),
    multiple=True,
    help="List only groups in this state; may be repeated.",
)
@click.option(
    "--type",
    "types",
    multiple=True,
    type=click.Choice(TYPES),
    help="List only groups of this protocol; may be repeated.",
)
@connection_options
@json_option
def list_groups(
    bootstrap: str, properties: Properties, states: tuple[str, ...], types: tuple[str, ...], as_json: bool
) -> None:
    """List consumer groups."""
    with Admin(bootstrap, **properties) as admin:
        found = admin.groups(states=states, types=types)
    if as_json:
        print_json([group._asdict() for group in found])
        return
    print_table(
        ("group", "state", "type", "protocol"),
        ((group.group, group.state, group.type, group.protocol_type or NOTHING) for group in found),
        empty="no group matches" if states or types else "no groups: a group is created when its first consumer joins",
    )


@command.command("describe")
@click.argument("names", metavar="GROUP...", nargs=-1, required=True, shell_complete=complete_groups)
@connection_options
@json_option
def describe(bootstrap: str, properties: Properties, names: tuple[str, ...], as_json: bool) -> None:
    """Describe groups: state, protocol, coordinator, and the lag and member of every partition."""
    with Admin(bootstrap, **properties) as admin:
        found = _described(admin, names)
        lags = [group_lag(admin, group) for group in found]
    if as_json:
        print_json(
            [
                {**_group_json(group), "partitions": [_lag_json(each) for each in lag]}
                for group, lag in zip(found, lags, strict=True)
            ]
        )
        return
    for group, lag in zip(found, lags, strict=True):
        strategy = f", strategy {group.protocol}" if group.protocol else ""
        members = count_text(len(group.members), "member")
        click.echo(f'group "{group.group}": {group.state}{strategy}, {members}, coordinator {group.coordinator}')
        _print_lag(lag)


@command.command("members")
@click.argument("name", metavar="GROUP", shell_complete=complete_groups)
@connection_options
@json_option
def members(bootstrap: str, properties: Properties, name: str, as_json: bool) -> None:
    """List the members of a group and the partitions assigned to them."""
    with Admin(bootstrap, **properties) as admin:
        (group,) = _described(admin, (name,))
    if as_json:
        print_json(_group_json(group)["members"])
        return
    print_table(
        ("member", "instance", "client", "host", "partitions"),
        (
            (
                member.member_id,
                member.instance_id or NOTHING,
                member.client_id,
                member.host.removeprefix("/"),
                partitions_text(member.partitions) or NOTHING,
            )
            for member in group.members
        ),
        cut=("member",),
        empty=f'group "{name}" has no members',
    )


@command.command("lag")
@click.argument("names", metavar="[GROUP]...", nargs=-1, shell_complete=complete_groups)
@connection_options
@json_option
def lag(bootstrap: str, properties: Properties, names: tuple[str, ...], as_json: bool) -> None:
    """Show the lag of groups by topic; of all groups if none is named."""
    with Admin(bootstrap, **properties) as admin:
        wanted = names or tuple(group.group for group in admin.groups())
        rows = [
            (group.group, *row) for group in _described(admin, wanted) for row in _by_topic(group_lag(admin, group))
        ]
    if as_json:
        print_json([dict(zip(("group", "topic", "partitions", "lag"), row, strict=True)) for row in rows])
        return
    columns = ("group", "topic", "partitions", "lag")
    print_table(columns, rows, right=("partitions", "lag"), empty="no group has committed offsets yet")


@command.command("reset")
@click.argument("name", metavar="GROUP", shell_complete=complete_groups)
@click.option(
    "--topic",
    "topics",
    metavar="TOPIC[:PARTITION,...]",
    multiple=True,
    help="Topic or partitions to reset; may be repeated. [default: all with committed offsets]",
)
@click.option("--to-earliest", is_flag=True, help="Reset to the earliest record.")
@click.option("--to-latest", is_flag=True, help="Reset to the end of the log.")
@click.option("--to-time", metavar="TIME", help=f"Reset to the first record with this time or later: {EXAMPLES}.")
@click.option("--to-offset", type=click.IntRange(0), help="Reset to this offset, or the nearest one that exists.")
@click.option(
    "--shift", type=int, metavar="N", help="Move the offsets by N records: forward, or back if N is negative."
)
@click.option("--dry-run", is_flag=True, help="Show the new offsets without committing them.")
@yes_option
@connection_options
@json_option
def reset(
    bootstrap: str,
    properties: Properties,
    name: str,
    topics: tuple[str, ...],
    to_earliest: bool,
    to_latest: bool,
    to_time: str | None,
    to_offset: int | None,
    shift: int | None,
    dry_run: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """Reset the committed offsets of a group that has no members."""
    target = _target(to_earliest, to_latest, to_time, to_offset, shift)
    selections = [_selection(text) for text in topics]
    with Admin(bootstrap, **properties) as admin:
        state = admin.describe_groups([name])[name].state
        if state not in (DEAD, EMPTY):
            raise Failure(
                f'group "{name}" is {state}: stop its members first, because they would overwrite the offsets'
            )
        committed = {part: found.offset for part, found in admin.group_offsets(name).items()}
        partitions = _selected(admin, selections) if selections else sorted(committed)
        if not partitions:
            meant = aside(name, _names(admin)) if state == DEAD else ""
            raise Failure(f'group "{name}" has no committed offsets{meant}: name its topics with --topic')
        planned = moves(admin, partitions, committed, target)
        _show_moves(planned, as_json)
        if dry_run:
            return
        if not yes:
            confirm(f'reset {count_text(len(planned), "partition")} of group "{name}"?')
        outcomes = admin.commit_group_offsets(name, {move.partition: move.after for move in planned})
    fail_on_errors({str(part): outcome for part, outcome in outcomes.items()}, "cannot reset")
    if not as_json:
        click.echo(f'reset {count_text(len(planned), "partition")} of group "{name}"')


@command.command("delete")
@click.argument("names", metavar="GROUP...", nargs=-1, required=True, shell_complete=complete_groups)
@yes_option
@connection_options
def delete(bootstrap: str, properties: Properties, names: tuple[str, ...], yes: bool) -> None:
    """Delete groups that have no members, with their committed offsets."""
    if not yes:
        quoted = ", ".join(f'"{name}"' for name in names)
        confirm(f"delete {count_text(len(names), 'group')} and all committed offsets ({quoted})?")
    with Admin(bootstrap, **properties) as admin:
        outcomes = admin.delete_groups(names)
        for name, outcome in outcomes.items():
            if outcome.error is ErrorCode.NONE:
                click.echo(f'deleted group "{name}"')
        fail_on_errors(named(outcomes, "group"), "cannot delete", known=lambda: _names(admin))


def _names(admin: Admin) -> list[str]:
    return [group.group for group in admin.groups()]


def _described(admin: Admin, names: Sequence[str]) -> list[GroupDescription]:
    found = admin.describe_groups(names)
    outcomes = {
        name: Outcome(ErrorCode.GROUP_ID_NOT_FOUND if group.state == DEAD else group.error)
        for name, group in found.items()
    }
    fail_on_errors(named(outcomes, "group"), "cannot describe", known=lambda: _names(admin))
    return list(found.values())


def _selection(text: str) -> ResetSelection:
    try:
        return parse_selection(text)
    except ValueError:
        raise Misuse(f'--topic "{text}": write it as --topic orders or --topic orders:0,2') from None


def _selected(admin: Admin, selections: Sequence[ResetSelection]) -> list[TopicPartition]:
    names = dict.fromkeys(selection.topic for selection in selections)
    topics = {topic.name: topic for topic in admin.topics(list(names))}
    outcomes = named({name: Outcome(topics[name].error) for name in names})
    fail_on_errors(outcomes, "cannot reset", known=lambda: topic_names(admin))
    return selected_partitions(selections, topics)


def _target(
    to_earliest: bool, to_latest: bool, to_time: str | None, to_offset: int | None, shift: int | None
) -> ResetTarget:
    chosen = [to_earliest, to_latest, to_time is not None, to_offset is not None, shift is not None]
    if sum(chosen) != 1:
        raise click.UsageError("give one of --to-earliest, --to-latest, --to-time, --to-offset and --shift")
    if to_time is not None:
        try:
            return ResetTarget(time=parse_time(to_time, now=datetime.now().astimezone()))
        except ValueError as wrong:
            raise Misuse(str(wrong)) from None
    return ResetTarget(
        time=EARLIEST if to_earliest else LATEST if to_latest else None,
        offset=to_offset,
        shift=shift,
    )


def _shown(number: int | None) -> str | int:
    return NOTHING if number is None else number


def _print_lag(lags: Sequence[PartitionLag]) -> None:
    print_table(
        ("topic", "partition", "committed", "end", "lag", "member"),
        (
            (
                each.partition.topic,
                each.partition.partition,
                _shown(each.committed),
                _shown(each.end),
                _shown(each.lag),
                each.member or NOTHING,
            )
            for each in lags
        ),
        right=("partition", "committed", "end", "lag"),
        cut=("member",),
        empty="the group has no committed offsets yet",
    )


def _by_topic(lags: Iterable[PartitionLag]) -> list[tuple[str, int, int]]:
    found: dict[str, tuple[int, int]] = {}
    for each in lags:
        partitions, behind = found.get(each.partition.topic, (0, 0))
        found[each.partition.topic] = (partitions + 1, behind + (each.lag or 0))
    return [(topic, *numbers) for topic, numbers in found.items()]


def _show_moves(planned: Sequence[Move], as_json: bool) -> None:
    if as_json:
        print_json([{**move._asdict(), **move.partition._asdict()} for move in planned])
        return
    for move in planned:
        if move.asked != move.after:
            click.echo(f"{move.partition} has no offset {move.asked}: using the nearest, {move.after}", err=True)
    print_table(
        ("topic", "partition", "before", "after"),
        ((move.partition.topic, move.partition.partition, _shown(move.before), move.after) for move in planned),
        right=("partition", "before", "after"),
    )


def _group_json(group: GroupDescription) -> dict[str, object]:
    return {
        "group": group.group,
        "state": group.state,
        "protocol_type": group.protocol_type,
        "protocol": group.protocol,
        "coordinator": group.coordinator,
        "members": [
            {
                "member_id": member.member_id,
                "instance_id": member.instance_id,
                "client_id": member.client_id,
                "host": member.host,
                "partitions": [str(part) for part in member.partitions],
            }
            for member in group.members
        ],
    }


def _lag_json(each: PartitionLag) -> dict[str, object]:
    return {
        "topic": each.partition.topic,
        "partition": each.partition.partition,
        "committed": each.committed,
        "end": each.end,
        "lag": each.lag,
        "member": each.member or None,
    }
