"""`headrace topics`: list, create, describe, alter, delete; `apply` is in its own module."""

import click

from headrace.cli.apply import apply
from headrace.cli.config_notices import tell_without_effect
from headrace.cli.connection import Properties, connection_options
from headrace.cli.console import print_json, print_table
from headrace.cli.failures import Failure
from headrace.cli.group import CommandGroup
from headrace.cli.options import assignments, complete_topics, confirm, json_option, yes_option
from headrace.cli.outcomes import fail_on_errors, named, topic_names
from headrace.cli.topic_table import print_details
from headrace.client import Admin
from headrace.client.types import (
    ConfigChange,
    ConfigOperation,
    ConfigResource,
    NewTopic,
    Outcome,
    ResourceType,
    TopicDescription,
)
from headrace.model.configs import TOPIC_CONFIGS
from headrace.model.errors import ErrorCode
from headrace.operations.amounts import count_text
from headrace.operations.topic_details import TopicDetails, topic_details

BROKER_DEFAULT = -1


@click.group("topics", cls=CommandGroup)
def command() -> None:
    """List, create, describe, alter, delete and apply topics."""


command.add_command(apply)


@command.command("list")
@click.option("--all", "with_internal", is_flag=True, help="Also list internal topics.")
@connection_options
@json_option
def list_topics(bootstrap: str, properties: Properties, with_internal: bool, as_json: bool) -> None:
    """List topics."""
    with Admin(bootstrap, **properties) as admin:
        topics = [topic for topic in admin.topics() if with_internal or not topic.internal]
    if as_json:
        print_json([_topic_json(topic) for topic in topics])
        return
    print_table(
        ("name", "partitions", "replicas"),
        ((topic.name, len(topic.partitions), replication_factor(topic)) for topic in topics),
        right=("partitions", "replicas"),
        empty="no topics yet: headrace topics create NAME creates one",
    )


def replication_factor(topic: TopicDescription) -> int:
    return max((len(partition.replicas) for partition in topic.partitions), default=0)


def _topic_json(topic: TopicDescription) -> dict[str, object]:
    return {
        "name": topic.name,
        "partitions": len(topic.partitions),
        "replication_factor": replication_factor(topic),
        "internal": topic.internal,
    }


@command.command("create")
@click.argument("names", metavar="NAME...", nargs=-1, required=True)
@click.option(
    "--partitions", type=click.IntRange(1), help="Number of partitions. [default: the broker's num.partitions]"
)
@click.option(
    "--replication-factor",
    type=click.IntRange(1, 32767),
    help="Number of replicas. [default: the broker's default.replication.factor]",
)
@click.option("--config", "configs", metavar="NAME=VALUE", multiple=True, help="Set a topic config; may be repeated.")
@click.option("--if-not-exists", is_flag=True, help="Do not fail if the topic already exists.")
@connection_options
def create(
    bootstrap: str,
    properties: Properties,
    names: tuple[str, ...],
    partitions: int | None,
    replication_factor: int | None,
    configs: tuple[str, ...],
    if_not_exists: bool,
) -> None:
    """Create topics with the same settings."""
    settings = assignments(configs, "--config")
    wanted = [
        NewTopic(name, partitions or BROKER_DEFAULT, replication_factor or BROKER_DEFAULT, dict(settings))
        for name in names
    ]
    with Admin(bootstrap, **properties) as admin:
        outcomes = admin.create_topics(wanted)
    accepted = (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS) if if_not_exists else (ErrorCode.NONE,)
    for name, outcome in outcomes.items():
        if outcome.error == ErrorCode.NONE:
            click.echo(f'created topic "{name}"')
        elif outcome.error in accepted:
            click.echo(f'topic "{name}" already exists')
    if any(outcome.error == ErrorCode.NONE for outcome in outcomes.values()):
        tell_without_effect(TOPIC_CONFIGS, settings)
    refused = {name: outcome for name, outcome in outcomes.items() if outcome.error not in accepted}
    fail_on_errors(named(refused), "cannot create")


@command.command("describe")
@click.argument("names", metavar="[NAME]...", nargs=-1, shell_complete=complete_topics)
@click.option("--all-configs", is_flag=True, help="Also show configs that have their default value.")
@connection_options
@json_option
def describe(bootstrap: str, properties: Properties, names: tuple[str, ...], all_configs: bool, as_json: bool) -> None:
    """Describe topics: partitions, leaders, offsets, sizes and configs; all topics if none is named."""
    with Admin(bootstrap, **properties) as admin:
        found = admin.topics(names or None)
        _fail_on_missing(admin, found, "cannot describe")
        details = topic_details(admin, found)
    if as_json:
        print_json([_details_json(topic) for topic in details])
        return
    for number, topic in enumerate(details):
        if number:
            click.echo()
        print_details(topic, all_configs=all_configs)
    if not details:
        click.echo("no topics yet: headrace topics create NAME creates one")


def _details_json(topic: TopicDetails) -> dict[str, object]:
    return {
        "name": topic.name,
        "id": topic.topic_id,
        "internal": topic.internal,
        "partitions": [partition._asdict() for partition in topic.partitions],
        "configs": {entry.name: entry.value for entry in topic.configs},
        "own_configs": topic.own_configs,
    }


def _fail_on_missing(admin: Admin, topics: tuple[TopicDescription, ...], doing: str) -> None:
    outcomes = {topic.name: Outcome(topic.error) for topic in topics}
    fail_on_errors(named(outcomes), doing, known=lambda: topic_names(admin))


@command.command("alter")
@click.argument("name", shell_complete=complete_topics)
@click.option("--partitions", type=click.IntRange(1), help="Increase the number of partitions to this.")
@click.option("--config", "configs", metavar="NAME=VALUE", multiple=True, help="Set a config; may be repeated.")
@click.option(
    "--delete-config", "deleted", metavar="NAME", multiple=True, help="Reset a config to its default; may be repeated."
)
@connection_options
def alter(
    bootstrap: str,
    properties: Properties,
    name: str,
    partitions: int | None,
    configs: tuple[str, ...],
    deleted: tuple[str, ...],
) -> None:
    """Change the partition count or the configs of a topic."""
    settings = assignments(configs, "--config")
    changes = [ConfigChange(ConfigOperation.SET, key, value) for key, value in settings.items()]
    changes.extend(ConfigChange(ConfigOperation.DELETE, key) for key in deleted)
    if partitions is None and not changes:
        raise click.UsageError("nothing to change: give --partitions, --config or --delete-config")
    with Admin(bootstrap, **properties) as admin:
        if partitions is not None:
            _grow(admin, name, partitions)
        if changes:
            resource = ConfigResource(ResourceType.TOPIC, name)
            outcomes = admin.alter_configs({resource: changes})
            told = {f'topic "{name}"': outcome for outcome in outcomes.values()}
            fail_on_errors(told, "cannot alter", known=lambda: topic_names(admin))
            click.echo(f'changed {count_text(len(changes), "config")} of topic "{name}"')
            tell_without_effect(TOPIC_CONFIGS, settings)


def _grow(admin: Admin, name: str, partitions: int) -> None:
    (topic,) = admin.topics([name])
    _fail_on_missing(admin, (topic,), "cannot alter")
    current = len(topic.partitions)
    if partitions < current:
        raise Failure(
            f'topic "{name}" has {count_text(current, "partition")}, asked for {partitions}: partitions can only grow'
        )
    if partitions == current:
        click.echo(f'topic "{name}" has {count_text(current, "partition")} already')
        return
    fail_on_errors(named(admin.create_partitions({name: partitions})), "cannot alter")
    click.echo(f'topic "{name}" has {count_text(partitions, "partition")} now')


@command.command("delete")
@click.argument("names", metavar="NAME...", nargs=-1, required=True, shell_complete=complete_topics)
@yes_option
@connection_options
def delete(bootstrap: str, properties: Properties, names: tuple[str, ...], yes: bool) -> None:
    """Delete topics with all their records. If one of them does not exist, none is deleted."""
    with Admin(bootstrap, **properties) as admin:
        found = admin.topics(names)
        _fail_on_missing(admin, found, "nothing deleted, cannot delete" if len(names) > 1 else "cannot delete")
        for topic in found:
            if topic.internal:
                click.echo(f'"{topic.name}" is internal: the state that coordinators keep in it is lost', err=True)
        if not yes:
            shown = ", ".join(f'"{name}"' for name in names)
            confirm(f"delete {count_text(len(names), 'topic')} and all records ({shown})?")
        outcomes = admin.delete_topics(names)
    for name, outcome in outcomes.items():
        if outcome.error == ErrorCode.NONE:
            click.echo(f'deleted topic "{name}"')
    fail_on_errors(named(outcomes), "cannot delete")
