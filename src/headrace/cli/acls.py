"""`headrace acls`: access rules."""

from collections.abc import Callable
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
        click.option("--cluster", "is_cluster", is_flag=True, help="The cluster itself."),
        click.option("--transactional-id", metavar="ID", help="A transactional id, or * for all."),
        click.option("--group", metavar="GROUP", help="A group, or * for all."),
        click.option("--topic", metavar="TOPIC", help="A topic, or * for all."),
    ):
        function = option(function)
    return function


def _resource(
    topic: str | None, group: str | None, transactional_id: str | None, is_cluster: bool
) -> tuple[AclResourceType, str]:
    """Return the one resource that the options name."""
    found = [
        (kind, name)
        for kind, name in (
            (AclResourceType.TOPIC, topic),
            (AclResourceType.GROUP, group),
            (AclResourceType.TRANSACTIONAL_ID, transactional_id),
            (AclResourceType.CLUSTER, CLUSTER_NAME if is_cluster else None),
        )
        if name is not None
    ]
    if len(found) != 1:
        raise click.UsageError("name one resource: --topic, --group, --transactional-id or --cluster")
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
    topic: str | None,
    group: str | None,
    transactional_id: str | None,
    is_cluster: bool,
    is_prefix: bool,
    host: str,
    denies: bool,
) -> None:
    """Allow operations to a principal such as User:alice, or to everyone with User:*.

    Reading needs read on the topic and on the group, writing needs write on the topic. Both include describe.
    """
    kind, name = _resource(topic, group, transactional_id, is_cluster)
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
    topic: str | None,
    group: str | None,
    transactional_id: str | None,
    is_cluster: bool,
) -> None:
    """Remove the rules of a principal on a resource: those of some operations, or all of them."""
    kind, name = _resource(topic, group, transactional_id, is_cluster)
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
    bootstrap: str,
    properties: Properties,
    principal: str,
    operation: str,
    topic: str | None,
    group: str | None,
    transactional_id: str | None,
    is_cluster: bool,
    host: str,
) -> None:
    """Tell whether the rules allow an operation, and which rule decides; exits with 1 if they do not.

    The super users and allow.everyone.if.no.acl.found of the brokers are not considered.
    """
    kind, name = _resource(topic, group, transactional_id, is_cluster)
    with Admin(bootstrap, **properties) as admin:
        decision = decide(admin, principal=principal, host=host, operation=OPERATIONS[operation], kind=kind, name=name)
    reason = "no rule allows it" if decision.rule is None else f"by the rule {rule_sentence(decision.rule)}"
    click.echo(f"{'allowed' if decision.allowed else 'denied'}: {reason}")
    if not decision.allowed:
        ctx.exit(EXIT_FAILED)
