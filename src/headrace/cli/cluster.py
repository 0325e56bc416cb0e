"""`headrace cluster status|brokers|quorum|invite`: the health and the members of a cluster."""

from typing import TYPE_CHECKING

import click

from headrace.cli.cluster_features import features
from headrace.cli.cluster_members import unregister, voters
from headrace.cli.connection import Properties, connection_options
from headrace.cli.console import clean, print_json, print_table
from headrace.cli.failures import EXIT_FAILED
from headrace.cli.group import CommandGroup
from headrace.cli.options import json_option
from headrace.operations.amounts import count_text, size_text

if TYPE_CHECKING:
    from headrace.operations.broker_usage import BrokerUsage

_HEALTH_COLOURS = {"green": "green", "yellow": "yellow", "red": "red"}


@click.group("cluster", cls=CommandGroup)
def command() -> None:
    """Show the health and the members of a cluster, and change its members and features."""


for _subcommand in (unregister, voters, features):
    command.add_command(_subcommand)


@command.command("status")
@connection_options
@json_option
@click.pass_context
def status(ctx: click.Context, bootstrap: str, properties: Properties, as_json: bool) -> None:
    """Show the health of the cluster in one line, with the reasons if it is not green.

    green: everything is served. yellow: everything is served, but a broker, a replica or a voter is missing. red: there
    is no controller, or partitions have no leader; the command then exits with 1.
    """
    from headrace.client import Admin
    from headrace.operations.cluster_health import Health, cluster_status

    with Admin(bootstrap, **properties) as admin:
        cluster, quorum, topics, found = cluster_status(admin)
    if as_json:
        print_json(
            {
                "health": found.health,
                "reasons": found.reasons,
                "cluster_id": cluster.cluster_id,
                "controller": None if quorum is None else quorum.leader,
                "brokers": [broker.node_id for broker in cluster.brokers],
                "fenced_brokers": found.fenced_brokers,
                "voters": None if quorum is None else [voter.node_id for voter in quorum.voters],
                "topics": topics,
                "partitions": found.partitions,
                "partitions_without_leader": found.partitions_without_leader,
                "partitions_under_replicated": found.partitions_under_replicated,
            }
        )
    else:
        counts = [
            count_text(len(cluster.brokers), "broker"),
            "no controller" if quorum is None else f"controller {quorum.leader} of {len(quorum.voters)}",
            count_text(topics, "topic"),
            count_text(found.partitions, "partition"),
        ]
        colour = click.style(found.health, fg=_HEALTH_COLOURS[found.health], bold=True)
        click.echo(f"{colour}: {', '.join(counts)}" + "".join(f"; {clean(reason)}" for reason in found.reasons))
    if found.health is Health.RED:
        ctx.exit(EXIT_FAILED)


@command.command("brokers")
@connection_options
@json_option
def brokers(bootstrap: str, properties: Properties, as_json: bool) -> None:
    """Show the brokers of the cluster with their partitions and disk usage."""
    from headrace.client import Admin
    from headrace.operations.broker_usage import cluster_usage

    with Admin(bootstrap, **properties) as admin:
        usage = cluster_usage(admin)
    if as_json:
        print_json(
            {
                "cluster_id": usage.cluster_id,
                "topics": usage.topics,
                "partitions": usage.partitions,
                "partitions_without_leader": usage.partitions_without_leader,
                "brokers": [_broker_json(each) for each in usage.brokers],
            }
        )
        return
    click.echo(
        f"cluster {clean(usage.cluster_id or 'without id')}  {count_text(len(usage.brokers), 'broker')}  "
        f"{count_text(usage.topics, 'topic')}  {count_text(usage.partitions, 'partition')}"
        + (f"  {usage.partitions_without_leader} without a leader" if usage.partitions_without_leader else "")
    )
    print_table(
        ("broker", "address", "rack", "state", "leads", "size"),
        (
            (
                each.broker.node_id,
                f"{each.broker.host}:{each.broker.port}",
                each.broker.rack or "",
                "fenced" if each.broker.is_fenced else "running",
                each.leads,
                size_text(each.size_bytes),
            )
            for each in usage.brokers
        ),
        right=("broker", "leads", "size"),
        styles={"state": lambda cell: "yellow" if cell == "fenced" else ""},
    )


def _broker_json(usage: "BrokerUsage") -> dict[str, object]:
    return {
        **usage.broker._asdict(),
        "leads": usage.leads,
        "size_bytes": usage.size_bytes,
        "log_dirs": [
            {"path": folder.path, "error": folder.error.name, "usable_bytes": folder.usable_bytes}
            for folder in usage.log_dirs
        ],
    }


@command.command("quorum")
@connection_options
@json_option
def quorum(bootstrap: str, properties: Properties, as_json: bool) -> None:
    """Show the metadata quorum: the active controller, the voters and the observers."""
    from headrace.client import Admin
    from headrace.log.checkpoints import encode_uuid
    from headrace.operations.times import time_text

    with Admin(bootstrap, **properties) as admin:
        found = admin.quorum()
    if as_json:
        print_json(
            {
                "leader": found.leader,
                "leader_epoch": found.leader_epoch,
                "high_watermark": found.high_watermark,
                "voters": [voter.node_id for voter in found.voters],
                "observers": [observer.node_id for observer in found.observers],
                "replicas": [
                    replica._asdict() | {"directory_id": encode_uuid(replica.directory_id)}
                    for replica in (*found.voters, *found.observers)
                ],
            }
        )
        return
    click.echo(f"leader {found.leader}  epoch {found.leader_epoch}  committed up to offset {found.high_watermark}")
    print_table(
        ("node", "role", "log end", "lag", "caught up"),
        (
            (
                replica.node_id,
                role if replica.node_id != found.leader else "leader",
                replica.log_end_offset,
                replica.lag,
                time_text(-1 if replica.caught_up_ms is None else replica.caught_up_ms),
            )
            for role, replicas in (("voter", found.voters), ("observer", found.observers))
            for replica in replicas
        ),
        right=("node", "log end", "lag"),
    )


@command.command("invite")
@click.option(
    "--valid-for",
    metavar="DURATION",
    default="1h",
    show_default=True,
    help="Time in which the token can be used, such as 10m or 1h.",
)
@connection_options
@json_option
def invite(bootstrap: str, properties: Properties, valid_for: str, as_json: bool) -> None:
    """Print a token with which one node may join the cluster: headrace broker --join TOKEN.

    Anyone who has the token can join the cluster once, so pass it on like a password.
    """
    from headrace.client import Admin
    from headrace.operations.times import parse_duration, time_text

    try:
        lifetime_ms = parse_duration(valid_for)
    except ValueError as wrong:
        raise click.UsageError(f"--valid-for: {wrong}") from None
    with Admin(bootstrap, **properties) as admin:
        invitation = admin.invite(lifetime_ms=lifetime_ms)
    if as_json:
        print_json(invitation._asdict())
        return
    click.echo(invitation.token)
    click.echo(f"valid until {time_text(invitation.expiry_ms)} for one node: headrace broker --join TOKEN", err=True)
