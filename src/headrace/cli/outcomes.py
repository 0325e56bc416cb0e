"""What a broker answered to several changes at once: the failures told one per line, the first of them decisive."""

from collections.abc import Mapping

import click

from headrace.cli.console import clean
from headrace.cli.failures import Failure
from headrace.client.errors import BrokerError
from headrace.client.types import Outcome
from headrace.model.errors import ErrorCode


def fail_on_errors(outcomes: Mapping[str, Outcome], doing: str) -> None:
    """Raise for the refused ones; `doing` is what was tried, such as `cannot create`."""
    wrong = {name: outcome for name, outcome in outcomes.items() if outcome.error != ErrorCode.NONE}
    if not wrong:
        return
    messages = [
        clean(str(BrokerError(outcome.error, f"{doing} {name}", outcome.message))) for name, outcome in wrong.items()
    ]
    for message in messages[:-1]:
        click.echo(f"headrace: {message}", err=True)
    raise Failure(messages[-1])


def named(outcomes: Mapping[str, Outcome], kind: str = "topic") -> dict[str, Outcome]:
    """The same outcomes by what people call the thing: `topic "orders"`."""
    return {f'{kind} "{name}"': outcome for name, outcome in outcomes.items()}
