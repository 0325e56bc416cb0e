"""`headrace cluster unregister|voters`: remove brokers that are gone, and change the voters of the metadata quorum."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

import click

from headrace.cli.connection import Properties, connection_options
from headrace.cli.console import print_json
from headrace.cli.failures import Failure
from headrace.cli.group import CommandGroup
from headrace.cli.options import (
    complete_fenced_brokers,
    complete_observers,
    complete_voters,
    confirm,
    json_option,
    yes_option,
)

if TYPE_CHECKING:
    from headrace.client import Admin, QuorumReplica


@click.command("unregister")
@click.argument("node_id", metavar="NODE", type=click.IntRange(0), shell_complete=complete_fenced_brokers)
@connection_options
@yes_option
@json_option
def unregister(bootstrap: str, properties: Properties, node_id: int, yes: bool, as_json: bool) -> None:
    """Remove a broker that is gone for good from the cluster.

    Partitions of which it has the only copy have no leader until a broker with its node id returns. A broker that
    runs is not removed. If the node is also a voter, remove it from the voters too.
    """
    from headrace.client import Admin

    with Admin(bootstrap, **properties) as admin:
        topics = admin.topics()
        held = sum(node_id in partition.replicas for topic in topics for partition in topic.partitions)
        if not yes:
            confirm(f"unregister broker {node_id}, which holds {held} of the partitions?")
        admin.unregister_broker(node_id)
    if as_json:
        print_json({"unregistered": node_id, "partitions": held})
    else:
        click.echo(f"unregistered broker {node_id}")


@click.group("voters", cls=CommandGroup)
def voters() -> None:
    """Add and remove voters of the metadata quorum; headrace cluster quorum lists them.

    The active controller promotes observers by itself up to headrace.controllers.target, so these commands are for
    repairs.
    """


@voters.command("add")
@click.argument("node_id", metavar="NODE", type=click.IntRange(0), shell_complete=complete_observers)
@connection_options
@json_option
def add(bootstrap: str, properties: Properties, node_id: int, as_json: bool) -> None:
    """Make an observer that has caught up a voter."""
    from headrace.client import Admin

    with Admin(bootstrap, **properties) as admin:
        observer = _replica(node_id, admin.quorum().observers, "an observer", "observers")
        admin.add_voter(node_id, observer.directory_id)
        _print_voters(admin, f"node {node_id} is a voter", as_json=as_json)


@voters.command("remove")
@click.argument("node_id", metavar="NODE", type=click.IntRange(0), shell_complete=complete_voters)
@connection_options
@yes_option
@json_option
def remove(bootstrap: str, properties: Properties, node_id: int, yes: bool, as_json: bool) -> None:
    """Remove a voter, for example one whose machine is lost.

    A controller that runs becomes an observer, and stays one until `headrace cluster voters add` names it.
    """
    from headrace.client import Admin

    with Admin(bootstrap, **properties) as admin:
        quorum = admin.quorum()
        voter = _replica(node_id, quorum.voters, "a voter", "voters")
        if not yes:
            confirm(f"remove voter {node_id} of {len(quorum.voters)}?")
        admin.remove_voter(node_id, voter.directory_id)
        _print_voters(admin, f"node {node_id} is no voter any more", as_json=as_json)


def _replica(node_id: int, replicas: "Iterable[QuorumReplica]", role: str, roles: str) -> "QuorumReplica":
    known = {replica.node_id: replica for replica in replicas}
    if node_id not in known:
        listed = ", ".join(map(str, known)) or "none"
        raise Failure(f"node {node_id} is not {role} of the metadata quorum; {roles}: {listed}")
    return known[node_id]


def _print_voters(admin: "Admin", text: str, *, as_json: bool) -> None:
    quorum = admin.quorum()
    ids = [voter.node_id for voter in quorum.voters]
    if as_json:
        print_json({"leader": quorum.leader, "voters": ids, "observers": [each.node_id for each in quorum.observers]})
    else:
        click.echo(f"{text}; voters: {', '.join(map(str, ids))}")
