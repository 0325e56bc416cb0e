"""Outcomes of a request with several changes: each failure is printed, and the last one ends the command."""

from collections.abc import Callable, Iterable, Mapping

import click

from headrace.cli.console import clean
from headrace.cli.failures import Failure
from headrace.client import Admin
from headrace.client.errors import BrokerError
from headrace.client.types import Outcome
from headrace.model.errors import ErrorCode
from headrace.model.nearest_names import meant

_LISTINGS = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "topics",
    ErrorCode.GROUP_ID_NOT_FOUND: "groups",
    ErrorCode.TRANSACTIONAL_ID_NOT_FOUND: "transactions",
}

_REASONS = {
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: "without an authorizer the broker accepts this only from its own machine: "
    "run the command there, with --bootstrap at a listener on 127.0.0.1"
}
"""Messages for error codes whose responses have no field for one."""


def fail_on_errors(
    outcomes: Mapping[str, Outcome], doing: str, *, known: Callable[[], Iterable[str]] | None = None
) -> None:
    """Raise Failure if the broker refused a change; `doing` begins the message, such as `cannot create`.

    `known` returns the existing names, to suggest the one that was meant.
    """
    wrong = {name: outcome for name, outcome in outcomes.items() if outcome.error != ErrorCode.NONE}
    if not wrong:
        return
    messages = [clean(_message(doing, name, outcome, known)) for name, outcome in wrong.items()]
    for message in messages[:-1]:
        click.echo(f"headrace: {message}", err=True)
    raise Failure(messages[-1])


def _message(doing: str, name: str, outcome: Outcome, known: Callable[[], Iterable[str]] | None) -> str:
    what, listing = f"{doing} {name}", _LISTINGS.get(outcome.error)
    if listing is not None:
        # A name here is a kind and a quoted name, such as: topic "orders".
        guess = "" if known is None else meant(name.partition('"')[2].rstrip('"'), known())
        return f"{what}: it does not exist{guess} (headrace {listing} list shows all)"
    if outcome.error == ErrorCode.INVALID_TOPIC_EXCEPTION and not outcome.message:
        return f"{what}: no topic can have this name (letters, digits, dots, underscores and hyphens, at most 249)"
    return str(BrokerError(outcome.error, what, outcome.message or _REASONS.get(outcome.error)))


def topic_names(admin: Admin) -> list[str]:
    return [topic.name for topic in admin.topics()]


def named(outcomes: Mapping[str, Outcome], kind: str = "topic") -> dict[str, Outcome]:
    """Return the outcomes with names for messages, such as `topic "orders"`."""
    return {f'{kind} "{name}"': outcome for name, outcome in outcomes.items()}
