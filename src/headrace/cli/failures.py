"""Failures of a command: one line with the reason and the next step, and an exit code."""

import errno
import sys
from typing import IO, Any

import click

EXIT_FAILED = 1
EXIT_USAGE = 2
EXIT_INTERRUPTED = 130
NO_ROOM = {
    errno.ENOSPC: "free some space, or write it elsewhere",
    errno.EDQUOT: "free some space, or write it elsewhere",
    errno.EFBIG: "raise the file size limit (ulimit -f), or write it elsewhere",
}
"""Advice for files that a command itself writes, such as redirected output; the broker has its own messages."""


class Failure(click.ClickException):
    """The command failed."""

    exit_code = EXIT_FAILED

    def show(self, file: IO[Any] | None = None) -> None:
        click.echo(f"headrace: {self.message}", file=file or sys.stderr)


class Misuse(Failure):
    """The command was used wrongly, for example with an unknown config name or an invalid file."""

    exit_code = EXIT_USAGE


def failure_of(error: Exception) -> click.ClickException | None:
    """Return the failure for an expected error; None for an error that is a bug of this program."""
    from headrace.cli.console import clean
    from headrace.model.configs import ConfigError
    from headrace.operations.errors import OperationError

    if isinstance(error, ConfigError):
        return Misuse(str(error))
    if isinstance(error, OSError) and error.errno in NO_ROOM:
        return unwritable(error.filename or "the output", error)
    if isinstance(error, OperationError):
        return Failure(clean(str(error)))
    client_errors = sys.modules.get("headrace.client.errors")  # imported only by commands that use the client
    if client_errors is not None and isinstance(error, client_errors.ClientError):
        return Failure(str(error))
    return None


def unwritable(what: object, error: OSError) -> Failure:
    to_do = NO_ROOM.get(error.errno or 0, "check its owner and permissions, or choose another place")
    return Failure(f"{what} cannot be written: {error.strerror}: {to_do}")
