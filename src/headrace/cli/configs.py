"""`headrace configs`: list all configs, and describe and alter those of a topic or a broker."""

import shutil
import sys
from textwrap import fill

import click

from headrace.cli.config_notices import tell_without_effect
from headrace.cli.connection import Properties, connection_options
from headrace.cli.console import print_json, print_table
from headrace.cli.group import CommandGroup
from headrace.cli.options import assignments, complete_topics, json_option
from headrace.model.configs import BROKER_CONFIGS, TOPIC_CONFIGS, ConfigKey, ConfigTable
from headrace.model.configs.definition import render_value
from headrace.model.nearest_names import LIKE_A_WORD, meant
from headrace.operations.amounts import count_text

EVERY_BROKER = "all"
"""The name for the dynamic configs of all brokers; on the wire the name is empty."""
INDENT = " " * 4


@click.group("configs", cls=CommandGroup)
def command() -> None:
    """List, describe and alter configs."""


@command.command("list")
@click.option("--topic", "kind", flag_value="topic", help="List topic configs only.")
@click.option("--broker", "kind", flag_value="broker", help="List broker configs only.")
@click.argument("text", required=False)
@json_option
def list_configs(kind: str | None, text: str | None, as_json: bool) -> None:
    """List all configs with their defaults, or those whose name contains TEXT."""
    tables = [table for table in (TOPIC_CONFIGS, BROKER_CONFIGS) if kind in (None, table.kind)]
    found = [(table, key) for table in tables for key in table if text is None or text in key.name]
    if as_json:
        print_json([_key_json(table, key) for table, key in found])
        return
    if found and sys.stdout.isatty():
        width = shutil.get_terminal_size().columns
        for table, key in found:
            click.echo(entry_text(table, key, width))
        return
    known = () if found else [key.name for table in tables for key in table]
    print_table(
        ("of", "name", "type", "default", "changes", "meaning"),
        (
            (table.kind, key.name, key.type.name.lower(), render_value(key.default) or "", _scope(table, key),
             key.description)
            for table, key in found
        ),
        empty=f'no config name contains "{text}"{meant(text or "", known, likeness=LIKE_A_WORD)}',
    )  # fmt: skip


def entry_text(table: ConfigTable, key: ConfigKey, width: int) -> str:
    """Print a config on a terminal, with its description below: side by side they are too wide."""
    default = render_value(key.default)
    facts = (table.kind, key.type.name.lower(), f"default {default}" if default else "no default", _scope(table, key))
    meaning = fill(key.description, width, initial_indent=INDENT, subsequent_indent=INDENT, break_on_hyphens=False)
    return f"{click.style(key.name, bold=True)}  {', '.join(facts)}\n{meaning}"


def _scope(table: ConfigTable, key: ConfigKey) -> str:
    return "per-topic" if table is TOPIC_CONFIGS else str(key.scope)


def _key_json(table: ConfigTable, key: ConfigKey) -> dict[str, object]:
    return {
        "of": table.kind,
        "name": key.name,
        "type": key.type.name.lower(),
        "default": render_value(key.default),
        "changes": _scope(table, key),
        "honoured": key.honoured,
        "meaning": key.description,
    }


def _resource(topic: str | None, broker: str | None) -> tuple[int, str]:
    """Return the resource that the options name."""
    from headrace.client.types import ConfigResource, ResourceType

    if (topic is None) == (broker is None):
        raise click.UsageError("give either --topic NAME or --broker ID")
    if topic is not None:
        return ConfigResource(ResourceType.TOPIC, topic)
    return ConfigResource(ResourceType.BROKER, "" if broker in (EVERY_BROKER, None) else broker)


def _shown(topic: str | None, broker: str | None) -> str:
    if topic is not None:
        return f'topic "{topic}"'
    return "all brokers" if broker == EVERY_BROKER else f"broker {broker}"


_topic_option = click.option("--topic", metavar="NAME", shell_complete=complete_topics, help="The topic.")
_broker_option = click.option("--broker", metavar="ID", help=f'Node id of a broker, or "{EVERY_BROKER}".')


@command.command("describe")
@_topic_option
@_broker_option
@click.option("--all", "everything", is_flag=True, help="Also show configs that have their default value.")
@connection_options
@json_option
def describe(
    bootstrap: str, properties: Properties, topic: str | None, broker: str | None, everything: bool, as_json: bool
) -> None:
    """Show the configs of a topic or a broker that differ from their default."""
    from headrace.cli.outcomes import fail_on_errors, topic_names
    from headrace.cli.topic_table import config_source_text
    from headrace.client import Admin
    from headrace.client.errors import BrokerError
    from headrace.client.types import Outcome
    from headrace.model.errors import ErrorCode

    resource = _resource(topic, broker)
    with Admin(bootstrap, **properties) as admin:
        try:
            (entries,) = admin.describe_configs([resource]).values()
        except BrokerError as refused:
            if refused.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                unknown = {_shown(topic, broker): Outcome(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)}
                fail_on_errors(unknown, "cannot describe", known=lambda: topic_names(admin))
            raise
    shown = [entry for entry in entries if everything or as_json or not entry.is_default]
    if as_json:
        print_json(
            [
                {
                    "name": entry.name,
                    "value": entry.value,
                    "from": config_source_text(entry.source),
                    "read_only": entry.read_only,
                    "sensitive": entry.sensitive,
                    "synonyms": [
                        {"name": synonym.name, "value": synonym.value, "from": config_source_text(synonym.source)}
                        for synonym in entry.synonyms
                    ],
                }
                for entry in shown
            ]
        )
        return
    print_table(
        ("name", "value", "from"),
        (
            (entry.name, "(hidden)" if entry.sensitive else entry.value or "", config_source_text(entry.source))
            for entry in shown
        ),
        empty=f"all configs of {_shown(topic, broker)} have their default value; --all shows them",
    )


@command.command("alter")
@_topic_option
@_broker_option
@click.option("--set", "settings", metavar="NAME=VALUE", multiple=True, help="Set a config; may be repeated.")
@click.option(
    "--delete", "deleted", metavar="NAME", multiple=True, help="Reset a config to its default; may be repeated."
)
@click.option("--append", "appended", metavar="NAME=VALUE", multiple=True, help="Add an item to a list config.")
@click.option(
    "--subtract", "subtracted", metavar="NAME=VALUE", multiple=True, help="Remove an item from a list config."
)
@click.option("--dry-run", is_flag=True, help="Let the broker validate the change without making it.")
@connection_options
def alter(
    bootstrap: str,
    properties: Properties,
    topic: str | None,
    broker: str | None,
    settings: tuple[str, ...],
    deleted: tuple[str, ...],
    appended: tuple[str, ...],
    subtracted: tuple[str, ...],
    dry_run: bool,
) -> None:
    """Change configs of a topic, of a broker, or of all running brokers."""
    from headrace.cli.outcomes import fail_on_errors, topic_names
    from headrace.client import Admin
    from headrace.client.types import ConfigChange, ConfigOperation

    resource = _resource(topic, broker)
    changes = [ConfigChange(ConfigOperation.DELETE, name) for name in deleted]
    for operation, option, texts in (
        (ConfigOperation.SET, "--set", settings),
        (ConfigOperation.APPEND, "--append", appended),
        (ConfigOperation.SUBTRACT, "--subtract", subtracted),
    ):
        changes.extend(ConfigChange(operation, name, text) for name, text in assignments(texts, option).items())
    if not changes:
        raise click.UsageError("nothing to change: give --set, --delete, --append or --subtract")
    with Admin(bootstrap, **properties) as admin:
        outcomes = admin.alter_configs({resource: changes}, validate_only=dry_run)
        told = {_shown(topic, broker): outcome for outcome in outcomes.values()}
        fail_on_errors(told, "cannot alter", known=lambda: topic_names(admin))
    did = "could change" if dry_run else "changed"
    click.echo(f"{did} {count_text(len(changes), 'config')} of {_shown(topic, broker)}")
    tell_without_effect(
        BROKER_CONFIGS if topic is None else TOPIC_CONFIGS,
        assignments(settings, "--set") | assignments(appended, "--append"),
    )
