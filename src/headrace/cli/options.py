"""Options that several commands share, and the parsing of their values."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from headrace.cli.failures import EXIT_INTERRUPTED, Failure

if TYPE_CHECKING:
    from headrace.client import Admin

DEFAULT_PORT = 9092
BOOTSTRAP_DEFAULT = f"127.0.0.1:{DEFAULT_PORT}"
CATALOG_DEFAULT = "sqlite:///headrace-manager.db"
COMPLETION_TIMEOUT_MS = 1000
CLUSTER_FOLDER = "./headrace-cluster"
"""Default folder of the cluster that `headrace up` starts."""

Decorated = TypeVar("Decorated", bound=Callable[..., Any])


def catalog_option(function: Decorated) -> Decorated:
    return click.option(
        "--catalog",
        metavar="URL",
        default=CATALOG_DEFAULT,
        envvar="HEADRACE_CATALOG",
        show_default=True,
        show_envvar=True,
        help="Database of users, sessions and history: sqlite:///FILE, or postgresql://HOST/NAME for several machines.",
    )(function)


def with_default_port(address: str) -> str:
    """Add Kafka's default port to `host` and `[ipv6]`; return an address with a port unchanged."""
    return f"{address}:{DEFAULT_PORT}" if ":" not in address or address.endswith("]") else address


class _Escaped(click.ParamType[bytes]):
    """Text with escapes such as \\n, \\t and \\0; converted to bytes."""

    name = "text"

    def convert(self, value: Any, parameter: click.Parameter | None, ctx: click.Context | None) -> bytes:
        from headrace.operations.record_text import FormatError, unescaped

        if isinstance(value, bytes):
            return value
        try:
            found = unescaped(value)
        except FormatError as wrong:
            self.fail(str(wrong), parameter, ctx)
        return found or self.fail("it must not be empty", parameter, ctx)


def escaped_option(name: str, *, default: str, help: str) -> Callable[[Decorated], Decorated]:
    return click.option(name, metavar="TEXT", type=_Escaped(), default=default, show_default=True, help=help)


def json_option(function: Decorated) -> Decorated:
    return click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")(function)


def cluster_folder_option(function: Decorated) -> Decorated:
    return click.option(
        "--data-dir",
        metavar="FOLDER",
        type=click.Path(file_okay=False, path_type=Path),
        default=CLUSTER_FOLDER,
        show_default=True,
        help="Folder of the cluster, with a data folder and a log for each broker.",
    )(function)


def yes_option(function: Decorated) -> Decorated:
    return click.option("--yes", "-y", is_flag=True, help="Do not ask for confirmation.")(function)


def confirm(question: str) -> None:
    """Ask for confirmation. Without a terminal, fail with a hint to use --yes."""
    try:
        click.confirm(question, abort=True, err=True)
    except click.Abort as abort:
        if isinstance(abort.__context__, EOFError):
            click.echo(err=True)
            raise Failure(
                "nothing was changed: confirmation is needed and standard input is empty; --yes skips it"
            ) from None
        if isinstance(abort.__context__, KeyboardInterrupt):
            click.echo(err=True)
            raise SystemExit(EXIT_INTERRUPTED) from None
        raise


def assignments(texts: Iterable[str], option: str) -> dict[str, str]:
    """Parse the values of a repeated option such as `--config name=value`."""
    pairs: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name.strip():
            raise click.UsageError(f'{option} "{text}": write it as {option} name=value')
        pairs[name.strip()] = value
    return pairs


def complete_topics(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """Complete topic names; internal topics only after the first character is typed."""
    return _begun(ctx, incomplete, lambda admin: (one.name for one in admin.topics() if incomplete or not one.internal))


def complete_groups(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    return _begun(ctx, incomplete, lambda admin: (one.group for one in admin.groups()))


def complete_transactional_ids(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    return _begun(ctx, incomplete, lambda admin: (one.transactional_id for one in admin.transactions()))


def complete_fenced_brokers(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    def fenced(admin: "Admin") -> Iterable[str]:
        return (str(one.node_id) for one in admin.cluster(include_fenced=True).brokers if one.is_fenced)

    return _begun(ctx, incomplete, fenced)


def complete_voters(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    return _begun(ctx, incomplete, lambda admin: (str(one.node_id) for one in admin.quorum().voters))


def complete_observers(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    return _begun(ctx, incomplete, lambda admin: (str(one.node_id) for one in admin.quorum().observers))


def complete_features(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    return _begun(ctx, incomplete, lambda admin: (f"{one.name}=" for one in admin.features()))


def _begun(ctx: click.Context, incomplete: str, question: "Callable[[Admin], Iterable[str]]") -> list[str]:
    """Return the sorted names that start with `incomplete`; none if the broker does not answer in time."""
    from headrace.cli.connection import connection_of
    from headrace.client import Admin
    from headrace.client.errors import ClientError
    from headrace.operations.errors import OperationError

    try:
        found = connection_of(ctx)
        settings = {"timeout_ms": COMPLETION_TIMEOUT_MS, **found.properties}
        with Admin(found.bootstrap, **settings) as admin:
            return sorted(name for name in question(admin) if name.startswith(incomplete))
    except (ClientError, OperationError, click.ClickException):
        return []
