"""The root of the command line: all commands, and their exit codes (0 success, 1 failure, 2 wrong usage)."""

from importlib import import_module
from typing import NamedTuple

import click

from headrace.cli.group import RootGroup
from headrace.model.nearest_names import guess

COMPLETION_VARIABLE = "_HEADRACE_COMPLETE"


class _Lazy(NamedTuple):
    module: str
    help: str
    """A copy of the command's summary, so that listing the commands imports none of them."""


COMMANDS = {
    "broker": _Lazy("broker", "Run a broker in the foreground."),
    "up": _Lazy("up", "Start a cluster on this machine, and return when it is complete."),
    "down": _Lazy("down", "Stop the cluster that headrace up started."),
    "topics": _Lazy("topics", "List, create, describe, alter, delete and apply topics."),
    "produce": _Lazy("produce", "Send lines of text to a topic."),
    "consume": _Lazy("consume", "Print the records of a topic."),
    "groups": _Lazy("groups", "List, describe, reset and delete consumer groups, and show their lag."),
    "transactions": _Lazy("transactions", "List, describe and abort transactions, including hanging ones."),
    "top": _Lazy("top", "Show live rates of topics, lag of groups and the load of a broker."),
    "configs": _Lazy("configs", "List, describe and alter configs."),
    "cluster": _Lazy("cluster", "Show the health and the members of a cluster, and change its members and features."),
    "acls": _Lazy("acls", "List, add, remove and check access rules."),
    "profile": _Lazy("profile", "Add, list, choose and remove profiles of clusters: addresses and security settings."),
    "quotas": _Lazy("quotas", "Set, list and remove quotas of users, client ids and addresses."),
    "users": _Lazy("users", "Add, list and remove users that authenticate by SCRAM."),
    "tokens": _Lazy("tokens", "Create, renew, expire and list delegation tokens."),
    "tls": _Lazy("tls", "Make certificates for a cluster with TLS."),
    "manager": _Lazy("manager", "Serve the HTTP API of a cluster: topics, records, groups."),
    "catalog": _Lazy("catalog", "Back up and restore the catalog of the managers."),
    "compact": _Lazy("compact", "Start a compaction of a topic."),
    "spark": _Lazy("spark", "Run a local Spark cluster, and submit scripts to it."),
    "doctor": _Lazy("doctor", "Diagnose problems of this machine and of a broker, with advice."),
    "log": _Lazy("log", "Dump, verify and repair segment files."),
    "bench": _Lazy("bench", "Measure the rates, CPU and latency of a broker."),
    "sim": _Lazy("sim", "Simulate one broker or several with faults and check their guarantees."),
    "pipeline": _Lazy("pipeline", "Create, validate, test, run and monitor Spark pipelines defined in files."),
    "completion": _Lazy("completion", "Print the completion script for a shell."),
}


class LazyGroup(RootGroup):
    """A group that imports `headrace.cli.NAME` when command NAME is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        lazy = COMMANDS.get(cmd_name)
        if lazy is None:
            return None
        command = import_module(f"headrace.cli.{lazy.module}").command
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, lazy.help) for name, lazy in COMMANDS.items()])

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as wrong:
            hint = f"options follow the command, as in headrace topics list {wrong.option_name} ..."
            if wrong.possibilities:
                hint = guess(wrong.option_name, wrong.possibilities)
            raise click.UsageError(f'unknown option "{wrong.option_name}": {hint}', ctx) from None


def _print_version(ctx: click.Context, parameter: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        from headrace import __version__

        click.echo(f"headrace {__version__}")
        ctx.exit()


@click.group(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Run headrace COMMAND --help for details. To start: headrace broker, and headrace topics create NAME "
    "in another terminal.",
)
@click.option(
    "--version",
    is_flag=True,
    expose_value=False,
    is_eager=True,
    callback=_print_version,
    help="Show the version and exit.",
)
def cli() -> None:
    """Headrace: a message log that speaks the Kafka protocol."""


def main() -> None:
    cli.main(prog_name="headrace", complete_var=COMPLETION_VARIABLE)
