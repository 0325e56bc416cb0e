"""`headrace cluster`: the health of a cluster, its brokers and its metadata quorum."""

from typing import TYPE_CHECKING

import click

from headrace.cli.console import clean, print_json, print_table
from headrace.cli.failures import EXIT_FAILED
from headrace.cli.group import CommandGroup
from headrace.cli.options import bootstrap_option, json_option
from headrace.operations.amounts import count_text, size_text

if TYPE_CHECKING:
    from headrace.client import Admin, Broker, LogDirDescription, QuorumDescription

UNKNOWN = -1
"""The size of a broker that does not answer."""
_HEALTH_COLOURS = {"green": "green", "yellow": "yellow", "red": "red"}


@click.group("cluster", cls=CommandGroup)
def command() -> None:
    """Show the health, the brokers and the metadata quorum of a cluster."""


@command.command("status")
@bootstrap_option
@json_option
@click.pass_context
def status(ctx: click.Context, bootstrap: str, as_json: bool) -> None:
    """Show the health of the cluster in one line, with the reasons if it is not green.

    green: everything is served. yellow: everything is served, but a broker or voter is missing. red: there is no
    controller, or partitions have no leader; the command then exits with 1.
    """
    from headrace.client import Admin
    from headrace.operations.cluster_health import Health, assess

    with Admin(bootstrap) as admin:
        cluster = admin.cluster(include_fenced=True)
        quorum, why = _quorum_or_reason(admin)
        topics = admin.topics()
    found = assess(cluster, quorum, topics, why=why)
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
                "topics": len(topics),
                "partitions": found.partitions,
                "partitions_without_leader": found.partitions_without_leader,
            }
        )
    else:
        counts = [
            count_text(len(cluster.brokers), "broker"),
            "no controller" if quorum is None else f"controller {quorum.leader} of {len(quorum.voters)}",
            count_text(len(topics), "topic"),
            count_text(found.partitions, "partition"),
        ]
        colour = click.style(found.health, fg=_HEALTH_COLOURS[found.health], bold=True)
        click.echo(f"{colour}: {', '.join(counts)}" + "".join(f"; {clean(reason)}" for reason in found.reasons))
    if found.health is Health.RED:
        ctx.exit(EXIT_FAILED)


def _quorum_or_reason(admin: "Admin") -> "tuple[QuorumDescription | None, str]":
    from headrace.client.errors import ClientError

    try:
        return admin.quorum(), ""
    except ClientError as error:
        return None, str(error)


@command.command("brokers")
@bootstrap_option
@json_option
def brokers(bootstrap: str, as_json: bool) -> None:
    """Show the brokers of the cluster with their partitions and disk usage."""
    from headrace.client import Admin
    from headrace.model.ids import NO_NODE

    with Admin(bootstrap) as admin:
        cluster = admin.cluster(include_fenced=True)
        topics = admin.topics()
        folders = {broker.node_id: _log_dirs(admin, broker) for broker in cluster.brokers}
    partitions = [partition for topic in topics for partition in topic.partitions]
    leaders = {broker.node_id: sum(p.leader == broker.node_id for p in partitions) for broker in cluster.brokers}
    sizes = {
        node_id: sum(replica.size_bytes for folder in found for replica in folder.replicas) if found else UNKNOWN
        for node_id, found in folders.items()
    }
    offline = sum(partition.leader == NO_NODE for partition in partitions)
    if as_json:
        print_json(
            {
                "cluster_id": cluster.cluster_id,
                "topics": len(topics),
                "partitions": len(partitions),
                "partitions_without_leader": offline,
                "brokers": [
                    {
                        **broker._asdict(),
                        "leads": leaders[broker.node_id],
                        "size_bytes": sizes[broker.node_id],
                        "log_dirs": [
                            {"path": folder.path, "error": folder.error.name, "usable_bytes": folder.usable_bytes}
                            for folder in folders[broker.node_id]
                        ],
                    }
                    for broker in cluster.brokers
                ],
            }
        )
        return
    click.echo(
        f"cluster {clean(cluster.cluster_id or 'without id')}  {count_text(len(cluster.brokers), 'broker')}  "
        f"{count_text(len(topics), 'topic')}  {count_text(len(partitions), 'partition')}"
        + (f"  {offline} without a leader" if offline else "")
    )
    print_table(
        ("broker", "address", "rack", "state", "leads", "size"),
        (
            (
                broker.node_id,
                f"{broker.host}:{broker.port}",
                broker.rack or "",
                "fenced" if broker.is_fenced else "running",
                leaders[broker.node_id],
                size_text(sizes[broker.node_id]),
            )
            for broker in cluster.brokers
        ),
        right=("broker", "leads", "size"),
        styles={"state": lambda cell: "yellow" if cell == "fenced" else ""},
    )


def _log_dirs(admin: "Admin", broker: "Broker") -> "tuple[LogDirDescription, ...]":
    """Return the log directories of a broker; none if it does not answer."""
    from headrace.client.errors import ClientError

    try:
        return () if broker.is_fenced else admin.log_dirs([broker.node_id])
    except ClientError:
        return ()


@command.command("quorum")
@bootstrap_option
@json_option
def quorum(bootstrap: str, as_json: bool) -> None:
    """Show the metadata quorum: the active controller, the voters and the observers."""
    from headrace.client import Admin
    from headrace.log.checkpoints import encode_uuid
    from headrace.operations.times import time_text

    with Admin(bootstrap) as admin:
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
@bootstrap_option
@json_option
def invite(bootstrap: str, valid_for: str, as_json: bool) -> None:
    """Print a token with which one node may join the cluster: headrace broker --join TOKEN.

    Anyone who has the token can join the cluster once, so pass it on like a password.
    """
    from headrace.client import Admin
    from headrace.operations.times import parse_duration, time_text

    try:
        lifetime_ms = parse_duration(valid_for)
    except ValueError as wrong:
        raise click.UsageError(f"--valid-for: {wrong}") from None
    with Admin(bootstrap) as admin:
        invitation = admin.invite(lifetime_ms=lifetime_ms)
    if as_json:
        print_json(invitation._asdict())
        return
    click.echo(invitation.token)
    click.echo(f"valid until {time_text(invitation.expiry_ms)} for one node: headrace broker --join TOKEN", err=True)
