"""What a broker answered to several changes at once: the failures told one per line, the first of them decisive."""

from collections.abc import Mapping

import click

from headrace.cli.console import clean
from headrace.cli.failures import Failure
from headrace.client.errors import BrokerError
from headrace.client.types import Outcome
from headrace.model.errors import ErrorCode

_LISTINGS = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "topics",
    ErrorCode.GROUP_ID_NOT_FOUND: "groups",
    ErrorCode.TRANSACTIONAL_ID_NOT_FOUND: "transactions",
}


def fail_on_errors(outcomes: Mapping[str, Outcome], doing: str) -> None:
    """Raise for the refused ones; `doing` is what was tried, such as `cannot create`."""
    wrong = {name: outcome for name, outcome in outcomes.items() if outcome.error != ErrorCode.NONE}
    if not wrong:
        return
    messages = [clean(_message(f"{doing} {name}", outcome)) for name, outcome in wrong.items()]
    for message in messages[:-1]:
        click.echo(f"headrace: {message}", err=True)
    raise Failure(messages[-1])


def _message(what: str, outcome: Outcome) -> str:
    listing = _LISTINGS.get(outcome.error)
    if listing is not None:
        return f"{what}: it does not exist (headrace {listing} list shows all)"
    if outcome.error == ErrorCode.INVALID_TOPIC_EXCEPTION and not outcome.message:
        return f"{what}: no topic can have this name (letters, digits, dots, underscores and hyphens, at most 249)"
    return str(BrokerError(outcome.error, what, outcome.message))


def named(outcomes: Mapping[str, Outcome], kind: str = "topic") -> dict[str, Outcome]:
    """The same outcomes by what people call the thing: `topic "orders"`."""
    return {f'{kind} "{name}"': outcome for name, outcome in outcomes.items()}
