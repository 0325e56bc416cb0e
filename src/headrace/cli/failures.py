"""How a command fails: one line that says what is wrong and what to do next, and an exit code."""

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
    errno.EFBIG: "let files be larger (ulimit -f), or write it elsewhere",
}
"""Of what a command writes by itself, such as its output into a file; the broker has its own words for its disk."""


class Failure(click.ClickException):
    """The command could not do what it was asked."""

    exit_code = EXIT_FAILED

    def show(self, file: IO[Any] | None = None) -> None:
        click.echo(f"headrace: {self.message}", file=file or sys.stderr)


class Misuse(Failure):
    """The command was asked for something that cannot be: a wrong config name, a file that says nothing useful."""

    exit_code = EXIT_USAGE


def failure_of(error: Exception) -> click.ClickException | None:
    """The message for an error that is not a fault of this program; None for one that is."""
    from headrace.cli.console import clean
    from headrace.model.configs import ConfigError
    from headrace.operations.errors import OperationError

    if isinstance(error, ConfigError):
        return Misuse(str(error))
    if isinstance(error, OSError) and error.errno in NO_ROOM:
        return unwritable(error.filename or "the output", error)
    if isinstance(error, OperationError):
        return Failure(clean(str(error)))
    client_errors = sys.modules.get("headrace.client.errors")  # only a command that used the client can fail by it
    if client_errors is not None and isinstance(error, client_errors.ClientError):
        return Failure(str(error))
    return None


def unwritable(what: object, error: OSError) -> Failure:
    to_do = NO_ROOM.get(error.errno or 0, "see to its owner and its rights, or choose another place")
    return Failure(f"{what} cannot be written: {error.strerror}: {to_do}")
