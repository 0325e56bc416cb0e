"""`headrace cluster describe`: the brokers, the controller, and the data that each broker stores."""

import click

from headrace.cli.console import clean, print_json, print_table
from headrace.cli.group import CommandGroup
from headrace.cli.options import bootstrap_option, json_option
from headrace.operations.amounts import count_text, size_text


@click.group("cluster", cls=CommandGroup)
def command() -> None:
    """Describe the cluster."""


@command.command("describe")
@bootstrap_option
@json_option
def describe(bootstrap: str, as_json: bool) -> None:
    """Show the brokers of the cluster with their partitions and disk usage."""
    from headrace.client import Admin
    from headrace.model.ids import NO_NODE

    with Admin(bootstrap) as admin:
        cluster = admin.cluster()
        topics = admin.topics()
        folders = admin.log_dirs()
    partitions = [partition for topic in topics for partition in topic.partitions]
    leaders = {broker.node_id: sum(p.leader == broker.node_id for p in partitions) for broker in cluster.brokers}
    sizes = {
        broker.node_id: sum(
            replica.size_bytes for folder in folders if folder.node_id == broker.node_id for replica in folder.replicas
        )
        for broker in cluster.brokers
    }
    offline = sum(partition.leader == NO_NODE for partition in partitions)
    if as_json:
        print_json(
            {
                "cluster_id": cluster.cluster_id,
                "controller": cluster.controller_id,
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
                            for folder in folders
                            if folder.node_id == broker.node_id
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
        ("broker", "address", "rack", "role", "leads", "size"),
        (
            (
                broker.node_id,
                f"{broker.host}:{broker.port}",
                broker.rack or "",
                "controller" if broker.node_id == cluster.controller_id else "",
                leaders[broker.node_id],
                size_text(sizes[broker.node_id]),
            )
            for broker in cluster.brokers
        ),
        right=("broker", "leads", "size"),
    )
