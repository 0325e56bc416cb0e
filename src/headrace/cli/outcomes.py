"""What a broker answered to several changes at once: the failures told one per line, the first of them decisive."""

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
"""Of codes whose responses have no place for a message."""


def fail_on_errors(
    outcomes: Mapping[str, Outcome], doing: str, *, known: Callable[[], Iterable[str]] | None = None
) -> None:
    """Raise for the refused ones; `doing` is what was tried, such as `cannot create`.

    `known` gives the names there are, to guess which one was meant.
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
        # The thing is called as people call it, with its own name in quotes.
        guess = "" if known is None else meant(name.partition('"')[2].rstrip('"'), known())
        return f"{what}: it does not exist{guess} (headrace {listing} list shows all)"
    if outcome.error == ErrorCode.INVALID_TOPIC_EXCEPTION and not outcome.message:
        return f"{what}: no topic can have this name (letters, digits, dots, underscores and hyphens, at most 249)"
    return str(BrokerError(outcome.error, what, outcome.message or _REASONS.get(outcome.error)))


def topic_names(admin: Admin) -> list[str]:
    return [topic.name for topic in admin.topics()]


def named(outcomes: Mapping[str, Outcome], kind: str = "topic") -> dict[str, Outcome]:
    """The same outcomes by what people call the thing: `topic "orders"`."""
    return {f'{kind} "{name}"': outcome for name, outcome in outcomes.items()}
