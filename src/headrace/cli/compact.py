"""`headrace compact`: start a compaction of a topic."""

from datetime import UTC, datetime

import click

from headrace.cli.connection import Properties, connection_options
from headrace.cli.console import print_table
from headrace.cli.failures import Failure
from headrace.cli.options import complete_topics
from headrace.cli.outcomes import fail_on_errors, named, topic_names
from headrace.client import Admin
from headrace.client.types import ConfigChange, ConfigOperation, ConfigResource, Outcome, ResourceType
from headrace.operations.amounts import size_text

REQUEST_CONFIG = "headrace.compact.request"
POLICY_CONFIG = "cleanup.policy"


@click.command("compact")
@click.argument("name", metavar="TOPIC", required=False, shell_complete=complete_topics)
@click.option("--topic", metavar="TOPIC", shell_complete=complete_topics, help="The topic to compact, as an option.")
@connection_options
def command(bootstrap: str, properties: Properties, name: str | None, topic: str | None) -> None:
    """Start a compaction of a topic.

    Compacts every partition up to its current end, regardless of min.cleanable.dirty.ratio. Records younger than
    min.compaction.lag.ms are kept. The brokers compact in the background; `headrace topics describe` shows the sizes.
    """
    if (name is None) == (topic is None):
        raise click.UsageError("name one topic: headrace compact TOPIC")
    topic = name or topic or ""
    resource = ConfigResource(ResourceType.TOPIC, topic)
    with Admin(bootstrap, **properties) as admin:
        (found,) = admin.topics([topic])
        fail_on_errors(named({topic: Outcome(found.error)}), "cannot compact", known=lambda: topic_names(admin))
        _refuse_uncompacted(admin, resource)
        asked_at = datetime.now(UTC).isoformat(timespec="milliseconds")
        outcomes = admin.alter_configs({resource: [ConfigChange(ConfigOperation.SET, REQUEST_CONFIG, asked_at)]})
        fail_on_errors(named({topic: outcomes[resource]}), "cannot compact")
        sizes = {
            replica.partition: replica.size_bytes
            for folder in admin.log_dirs()
            for replica in folder.replicas
            if replica.topic == topic
        }
    click.echo(f'started a compaction of topic "{topic}"; its current sizes:')
    print_table(
        ("partition", "size"),
        ((partition, size_text(size)) for partition, size in sorted(sizes.items())),
        right=("partition", "size"),
    )


def _refuse_uncompacted(admin: Admin, resource: ConfigResource) -> None:
    (entries,) = admin.describe_configs([resource]).values()
    policy = next((entry.value or "" for entry in entries if entry.name == POLICY_CONFIG), "")
    if "compact" not in policy.split(","):
        raise Failure(
            f'topic "{resource.name}" has {POLICY_CONFIG}={policy}: '
            f"headrace topics alter {resource.name} --config {POLICY_CONFIG}=compact makes it a compacted topic"
        )
