"""Options that several commands share, and how their texts are read."""

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import click

from headrace.cli.failures import Failure

BOOTSTRAP_DEFAULT = "127.0.0.1:9092"
COMPLETION_TIMEOUT_MS = 1000

Decorated = TypeVar("Decorated", bound=Callable[..., Any])


def bootstrap_option(function: Decorated) -> Decorated:
    return click.option(
        "--bootstrap",
        metavar="HOST:PORT[,...]",
        default=BOOTSTRAP_DEFAULT,
        envvar="HEADRACE_BOOTSTRAP",
        show_default=True,
        show_envvar=True,
        help="A broker to begin with.",
    )(function)


def json_option(function: Decorated) -> Decorated:
    return click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")(function)


def yes_option(function: Decorated) -> Decorated:
    return click.option("--yes", "-y", is_flag=True, help="Do not ask.")(function)


def confirm(question: str) -> None:
    """Go on only after a yes; where nobody can answer, say how to do without."""
    try:
        click.confirm(question, abort=True, err=True)
    except click.Abort as abort:
        if isinstance(abort.__context__, EOFError):
            click.echo(err=True)
            raise Failure("nothing was changed, as standard input holds no answer: --yes does not ask") from None
        raise


def assignments(texts: Iterable[str], option: str) -> dict[str, str]:
    """The pairs of a repeated `--config name=value`."""
    pairs: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name.strip():
            raise click.UsageError(f'{option} "{text}": write it as {option} name=value')
        pairs[name.strip()] = value
    return pairs


def complete_topics(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """Topic names for the shell; none if no broker answers soon."""
    from headrace.client import Admin
    from headrace.client.errors import ClientError

    try:
        with Admin(ctx.params.get("bootstrap") or BOOTSTRAP_DEFAULT, timeout_ms=COMPLETION_TIMEOUT_MS) as admin:
            return sorted(topic.name for topic in admin.topics() if topic.name.startswith(incomplete))
    except ClientError:
        return []
