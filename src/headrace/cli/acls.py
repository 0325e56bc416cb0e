"""`headrace acls`: access rules."""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import click

from headrace.cli.connection import Properties, connection_options
from headrace.cli.console import print_json, print_table
from headrace.cli.failures import EXIT_FAILED
from headrace.cli.group import CommandGroup
from headrace.cli.options import json_option
from headrace.cli.outcomes import fail_on_errors
from headrace.client import Admin
from headrace.core.access.acls import WILDCARD, AccessRule, PatternType, Permission
from headrace.core.access.rule_text import RuleText, rule_sentence, rule_text
from headrace.model.access import CLUSTER_NAME, AclResourceType, Operation
from headrace.operations.access_rules import ANYTHING, OPERATIONS, decide

Decorated = TypeVar("Decorated", bound=Callable[..., Any])


@click.group("acls", cls=CommandGroup)
def command() -> None:
    """List, add, remove and check access rules."""


def resource_options(function: Decorated) -> Decorated:
    for option in (
        click.option("--cluster", flag_value=CLUSTER_NAME, help="The cluster itself."),
        click.option("--delegation-token", metavar="ID", help="A delegation token, or * for all."),
        click.option("--user", metavar="PRINCIPAL", help="A user such as User:alice, whose tokens are meant, or *."),
        click.option("--transactional-id", metavar="ID", help="A transactional id, or * for all."),
        click.option("--group", metavar="GROUP", help="A group, or * for all."),
        click.option("--topic", metavar="TOPIC", help="A topic, or * for all."),
    ):
        function = option(function)
    return function


RESOURCES = {
    "topic": AclResourceType.TOPIC,
    "group": AclResourceType.GROUP,
    "transactional_id": AclResourceType.TRANSACTIONAL_ID,
    "user": AclResourceType.USER,
    "delegation_token": AclResourceType.DELEGATION_TOKEN,
    "cluster": AclResourceType.CLUSTER,
}


def _resource(named: Mapping[str, str | None]) -> tuple[AclResourceType, str]:
    """Return the one resource that the options name."""
    found = [(RESOURCES[option], name) for option, name in named.items() if name is not None]
    if len(found) != 1:
        options = [f"--{option.replace('_', '-')}" for option in RESOURCES]
        raise click.UsageError(f"name one resource: {', '.join(options[:-1])} or {options[-1]}")
    return found[0]


@command.command("add")
@click.argument("principal", metavar="PRINCIPAL")
@click.argument("operations", metavar="OPERATION...", nargs=-1, required=True, type=click.Choice(list(OPERATIONS)))
@resource_options
@click.option("--prefix", "is_prefix", is_flag=True, help="The rule is for all names that begin with the given one.")
@click.option("--host", default=WILDCARD, show_default=True, help="Address of the client, or * for all.")
@click.option("--deny", "denies", is_flag=True, help="Deny instead of allow; a rule that denies is stronger.")
@connection_options
def add(
    bootstrap: str,
    properties: Properties,
    principal: str,
    operations: tuple[str, ...],
    is_prefix: bool,
    host: str,
    denies: bool,
    **resource: str | None,
) -> None:
    """Allow operations to a principal such as User:alice, or to everyone with User:*.

    Reading needs read on the topic and on the group, writing needs write on the topic. Both include describe.
    """
    kind, name = _resource(resource)
    pattern = PatternType.PREFIXED if is_prefix else PatternType.LITERAL
    permission = Permission.DENY if denies else Permission.ALLOW
    rules = [
        AccessRule(kind, name, pattern, principal, host, OPERATIONS[operation], permission) for operation in operations
    ]
    with Admin(bootstrap, **properties) as admin:
        outcomes = admin.create_access_rules(rules)
    fail_on_errors({f"the rule {rule_sentence(rule)}": outcome for rule, outcome in outcomes.items()}, "cannot add")
    for rule in rules:
        click.echo(rule_sentence(rule))


@command.command("list")
@click.option("--principal", metavar="PRINCIPAL", help="Rules of this principal only.")
@connection_options
@json_option
def list_rules(bootstrap: str, properties: Properties, principal: str | None, as_json: bool) -> None:
    """List access rules."""
    with Admin(bootstrap, **properties) as admin:
        found = admin.access_rules(ANYTHING._replace(principal=principal))
    if as_json:
        print_json([rule_text(rule)._asdict() for rule in sorted(found)])
    else:
        print_table(
            RuleText._fields, map(rule_text, sorted(found)), empty="no access rules: headrace acls add adds one"
        )


@command.command("remove")
@click.argument("principal", metavar="PRINCIPAL")
@click.argument("operations", metavar="[OPERATION]...", nargs=-1, type=click.Choice(list(OPERATIONS)))
@resource_options
@connection_options
def remove(
    bootstrap: str,
    properties: Properties,
    principal: str,
    operations: tuple[str, ...],
    **resource: str | None,
) -> None:
    """Remove the rules of a principal on a resource: those of some operations, or all of them."""
    kind, name = _resource(resource)
    wanted = ANYTHING._replace(resource_type=kind, resource_name=name, principal=principal)
    numbers = [int(OPERATIONS[label]) for label in operations] or [int(Operation.ANY)]
    removed: list[AccessRule] = []
    with Admin(bootstrap, **properties) as admin:
        for number in numbers:
            removed += admin.delete_access_rules(wanted._replace(operation=number))
    for rule in removed:
        click.echo(f"removed {rule_sentence(rule)}")
    if not removed:
        click.echo("no rule matches: headrace acls list shows all")


@command.command("check")
@click.argument("principal", metavar="PRINCIPAL")
@click.argument("operation", metavar="OPERATION", type=click.Choice(list(OPERATIONS)))
@resource_options
@click.option("--host", default="127.0.0.1", show_default=True, help="Address of the client.")
@connection_options
@click.pass_context
def check(
    ctx: click.Context,
    /,
    bootstrap: str,
    properties: Properties,
    principal: str,
    operation: str,
    host: str,
    **resource: str | None,
) -> None:
    """Tell whether the rules allow an operation, and which rule decides; exits with 1 if they do not.

    The super users and allow.everyone.if.no.acl.found of the brokers are not considered.
    """
    kind, name = _resource(resource)
    with Admin(bootstrap, **properties) as admin:
        decision = decide(admin, principal=principal, host=host, operation=OPERATIONS[operation], kind=kind, name=name)
    reason = "no rule allows it" if decision.rule is None else f"by the rule {rule_sentence(decision.rule)}"
    click.echo(f"{'allowed' if decision.allowed else 'denied'}: {reason}")
    if not decision.allowed:
        ctx.exit(EXIT_FAILED)
