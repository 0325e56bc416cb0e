"""`headrace topics apply FILE`: show the changes that make the topics match a file, ask, and make them."""

from collections.abc import Callable, Sequence
from itertools import groupby
from pathlib import Path

import click

from headrace.cli.config_notices import tell_without_effect
from headrace.cli.console import print_json, print_table, progress
from headrace.cli.failures import Failure, Misuse
from headrace.cli.options import bootstrap_option, confirm, json_option, yes_option
from headrace.cli.outcomes import fail_on_errors, named
from headrace.client import Admin
from headrace.client.types import ConfigChange, ConfigOperation, ConfigResource, NewTopic, ResourceType
from headrace.model.configs import TOPIC_CONFIGS
from headrace.model.errors import ErrorCode
from headrace.operations.amounts import count_text
from headrace.operations.topic_details import own_configs, topic_configs
from headrace.operations.topic_files import read_topics
from headrace.operations.topic_plan import Action, ExistingTopic, PlanError, Step, WantedTopic, plan

BROKER_DEFAULT = -1
STEPS_PER_REQUEST_MAX = 200
"""Changes in one request: small enough to show progress and to keep each response small."""


@click.command("apply")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--dry-run", is_flag=True, help="Show the changes and let the broker validate them, without making them.")
@click.option("--prune", is_flag=True, help="Also delete topics and reset configs that are not in the file.")
@yes_option
@bootstrap_option
@json_option
def apply(bootstrap: str, file: Path, dry_run: bool, prune: bool, yes: bool, as_json: bool) -> None:
    """Create and change topics so that they match FILE.

    FILE is a JSON, TOML or YAML file with a list of topics, or a table with the list "topics". Each topic has a name
    and, optionally, partitions, replication_factor and configs. Nothing is deleted without --prune.
    """
    try:
        wanted = read_topics(file)
    except PlanError as wrong:
        raise Misuse(str(wrong)) from None
    with Admin(bootstrap) as admin:
        steps = plan(wanted, _existing(admin, wanted, prune=prune), prune=prune)
        _show(steps, as_json=as_json)
        _fail_on_refusals(steps)
        if not steps:
            return
        if dry_run:
            _carry_out(admin, steps, validate_only=True)
            return
        if not yes:
            confirm(f"make {count_text(len(steps), 'change')}?")
        _carry_out(admin, steps, validate_only=False)
        if not as_json:
            click.echo(f"made {count_text(len(steps), 'change')}")


def _existing(admin: Admin, wanted: Sequence[WantedTopic], *, prune: bool) -> list[ExistingTopic]:
    topics = [topic for topic in admin.topics() if topic.error == ErrorCode.NONE]
    names = {topic.name for topic in wanted}
    configs = topic_configs(admin, [topic.name for topic in topics if topic.name in names])
    return [
        ExistingTopic(
            name=topic.name,
            partitions=len(topic.partitions),
            replication_factor=max((len(partition.replicas) for partition in topic.partitions), default=0),
            configs=own_configs(configs.get(topic.name, ())),
            internal=topic.internal or topic.name.startswith("__"),
        )
        for topic in topics
        if prune or topic.name in names
    ]


_STYLES = {
    Action.CREATE: "green",
    Action.DELETE: "bold red",
    Action.REFUSE: "bold red",
    Action.RESET_CONFIG: "yellow",
    Action.SET_CONFIG: "yellow",
    Action.ADD_PARTITIONS: "yellow",
}


def _show(steps: Sequence[Step], *, as_json: bool) -> None:
    if as_json:
        print_json(
            [
                {"action": step.action, "topic": step.topic, "what": step.what, "from": step.before, "to": step.after}
                for step in steps
            ]
        )
        return
    print_table(
        ("action", "topic", "what", "from", "to"),
        ((step.action, step.topic, step.what, step.before, step.after) for step in steps),
        styles={"action": lambda cell: _STYLES[Action(cell)]},
        empty="nothing to change: the topics match the file",
    )


def _fail_on_refusals(steps: Sequence[Step]) -> None:
    refused = [step for step in steps if step.action is Action.REFUSE]
    if refused:
        first = refused[0]
        raise Failure(
            f'topic "{first.topic}" has {first.before}, asked for {first.after}: {first.what}; nothing was changed'
        )


def _carry_out(admin: Admin, steps: Sequence[Step], *, validate_only: bool) -> None:
    """Make the changes in the order of the actions; stop at the first one that the broker refuses."""
    order = list(Action)
    with progress("checking" if validate_only else "applying", total=len(steps)) as advance:
        for action, group in groupby(
            sorted(steps, key=lambda step: order.index(step.action)), lambda step: step.action
        ):
            same = list(group)
            for start in range(0, len(same), STEPS_PER_REQUEST_MAX):
                chunk = same[start : start + STEPS_PER_REQUEST_MAX]
                _PERFORM[action](admin, chunk, validate_only)
                advance(len(chunk))


def _create(admin: Admin, steps: Sequence[Step], validate_only: bool) -> None:
    new = [
        NewTopic(
            step.wanted.name,
            step.wanted.partitions or BROKER_DEFAULT,
            step.wanted.replication_factor or BROKER_DEFAULT,
            dict(step.wanted.configs),
        )
        for step in steps
        if step.wanted is not None
    ]
    fail_on_errors(named(admin.create_topics(new, validate_only=validate_only)), "cannot create")
    if not validate_only:
        tell_without_effect(TOPIC_CONFIGS, {name: text for topic in new for name, text in topic.configs.items()})


def _add_partitions(admin: Admin, steps: Sequence[Step], validate_only: bool) -> None:
    totals = {step.topic: int(step.after) for step in steps}
    fail_on_errors(named(admin.create_partitions(totals, validate_only=validate_only)), "cannot add partitions to")


def _alter_configs(admin: Admin, steps: Sequence[Step], validate_only: bool) -> None:
    changes: dict[tuple[int, str], list[ConfigChange]] = {}
    for step in steps:
        change = (
            ConfigChange(ConfigOperation.SET, step.what, step.after)
            if step.action is Action.SET_CONFIG
            else ConfigChange(ConfigOperation.DELETE, step.what)
        )
        changes.setdefault(ConfigResource(ResourceType.TOPIC, step.topic), []).append(change)
    outcomes = admin.alter_configs(changes, validate_only=validate_only)
    fail_on_errors(named({resource.name: outcome for resource, outcome in outcomes.items()}), "cannot alter")
    if not validate_only:
        tell_without_effect(
            TOPIC_CONFIGS, {step.what: step.after for step in steps if step.action is Action.SET_CONFIG}
        )


def _delete(admin: Admin, steps: Sequence[Step], validate_only: bool) -> None:
    if not validate_only:
        fail_on_errors(named(admin.delete_topics([step.topic for step in steps])), "cannot delete")


_PERFORM: dict[Action, Callable[[Admin, Sequence[Step], bool], None]] = {
    Action.CREATE: _create,
    Action.ADD_PARTITIONS: _add_partitions,
    Action.SET_CONFIG: _alter_configs,
    Action.RESET_CONFIG: _alter_configs,
    Action.DELETE: _delete,
}
