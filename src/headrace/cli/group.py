"""Groups of commands, with a suggestion for an unknown command or option."""

import click

from headrace.cli.failures import EXIT_INTERRUPTED, failure_of
from headrace.model.nearest_names import guess

SUMMARY_MAX = 200
"""Characters of a command's summary in the help of its group."""


class CommandGroup(click.Group):
    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands with whole sentences, wrapped where a line is too short."""
        commands = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        rows = [(name, found.get_short_help_str(SUMMARY_MAX)) for name, found in commands if found is not None]
        with formatter.section("Commands"):
            formatter.write_dl(rows)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0] if args else ""
        known = self.list_commands(ctx)
        if name not in known and not name.startswith("-"):
            raise click.UsageError(f'unknown command "{name}": {guess(name, known)}', ctx)
        return super().resolve_command(ctx, args)


class RootGroup(CommandGroup):
    """The root of a command line: turns errors into messages and exit codes."""

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            ctx.exit(EXIT_INTERRUPTED)
        except click.NoSuchOption as wrong:
            names = [name for name in wrong.possibilities or () if name.startswith("--")]
            nearest = f": {guess(wrong.option_name, names)}" if names else ""
            raise click.UsageError(f'unknown option "{wrong.option_name}"{nearest}', wrong.ctx) from None
        except Exception as error:
            failure = failure_of(error)
            if failure is None:
                raise
            raise failure from error
