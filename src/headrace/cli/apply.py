"""`headrace topics apply FILE`: show the changes that make the topics match a file, ask, and make them."""

from collections.abc import Sequence
from pathlib import Path

import click

from headrace.cli.config_notices import tell_without_effect
from headrace.cli.connection import Properties, connection_options
from headrace.cli.console import print_json, print_table, progress
from headrace.cli.failures import Failure, Misuse
from headrace.cli.options import confirm, json_option, yes_option
from headrace.cli.outcomes import fail_on_errors, named
from headrace.client import Admin
from headrace.model.configs import TOPIC_CONFIGS
from headrace.operations.amounts import count_text
from headrace.operations.topic_changes import carry_out, existing_topics
from headrace.operations.topic_files import read_topics
from headrace.operations.topic_plan import Action, PlanError, Step, plan


@click.command("apply")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--dry-run", is_flag=True, help="Show the changes and let the broker validate them, without making them.")
@click.option("--prune", is_flag=True, help="Also delete topics and reset configs that are not in the file.")
@yes_option
@connection_options
@json_option
def apply(
    bootstrap: str, properties: Properties, file: Path, dry_run: bool, prune: bool, yes: bool, as_json: bool
) -> None:
    """Create and change topics so that they match FILE.

    FILE is a JSON, TOML or YAML file with a list of topics, or a table with the list "topics". Each topic has a name
    and, optionally, partitions, replication_factor and configs. Nothing is deleted without --prune.
    """
    try:
        wanted = read_topics(file)
    except PlanError as wrong:
        raise Misuse(str(wrong)) from None
    with Admin(bootstrap, **properties) as admin:
        steps = plan(wanted, existing_topics(admin, wanted, prune=prune), prune=prune)
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


_STYLES = {
    Action.CREATE: "green",
    Action.DELETE: "bold red",
    Action.REFUSE: "bold red",
    Action.RESET_CONFIG: "yellow",
    Action.SET_CONFIG: "yellow",
    Action.ADD_PARTITIONS: "yellow",
}


_REFUSALS = {
    Action.CREATE: "cannot create",
    Action.ADD_PARTITIONS: "cannot add partitions to",
    Action.SET_CONFIG: "cannot alter",
    Action.RESET_CONFIG: "cannot alter",
    Action.DELETE: "cannot delete",
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
    with progress("checking" if validate_only else "applying", total=len(steps)) as advance:
        for done in carry_out(admin, steps, validate_only=validate_only):
            fail_on_errors(named(done.outcomes), _REFUSALS[done.action])
            if not validate_only:
                tell_without_effect(TOPIC_CONFIGS, done.stored_configs)
            advance(len(done.steps))
