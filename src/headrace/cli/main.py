"""The root of the command line: which commands there are, and how they end (0 done, 1 failed, 2 wrongly used)."""

from importlib import import_module
from typing import NamedTuple

import click

from headrace.cli.group import RootGroup
from headrace.model.nearest_names import guess

COMPLETION_VARIABLE = "_HEADRACE_COMPLETE"


class _Lazy(NamedTuple):
    module: str
    help: str
    """Repeated here, so that listing the commands imports none of them."""


COMMANDS = {
    "broker": _Lazy("broker", "Run a broker in the foreground."),
    "topics": _Lazy("topics", "List, create, describe, alter, delete and apply topics."),
    "produce": _Lazy("produce", "Send lines of text to a topic."),
    "consume": _Lazy("consume", "Print the records of a topic."),
    "groups": _Lazy("groups", "List, describe, reset and delete groups, and see how far they lag."),
    "transactions": _Lazy("transactions", "List, describe and abort transactions, also those that hang."),
    "top": _Lazy("top", "Watch topics, groups, their lag and the loop of a broker."),
    "configs": _Lazy("configs", "List, describe and alter configs."),
    "cluster": _Lazy("cluster", "Describe the cluster."),
    "compact": _Lazy("compact", "Ask for a compaction of a topic now."),
    "spark": _Lazy("spark", "Run a Spark cluster on this machine, and scripts on it."),
    "doctor": _Lazy("doctor", "Tell what is wrong with this machine or this broker, and what to do."),
    "log": _Lazy("log", "Dump, verify and repair segment files."),
    "bench": _Lazy("bench", "Measure a broker: rates, CPU, latency, memory and start, also beside Apache Kafka."),
    "sim": _Lazy("sim", "Run a broker in a virtual world, with faults, and check what it promises."),
    "pipeline": _Lazy("pipeline", "Write, check, test, run and watch pipelines: short files that Spark runs."),
    "completion": _Lazy("completion", "Print the completion script of a shell."),
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
            hint = f"options stand behind their command, as in headrace topics list {wrong.option_name} ..."
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
    epilog="Every command has its own --help. To begin: headrace broker, and headrace topics create NAME beside it.",
)
@click.option(
    "--version", is_flag=True, expose_value=False, is_eager=True, callback=_print_version, help="Show the version."
)
def cli() -> None:
    """Headrace: a message log that speaks Kafka's protocol."""


def main() -> None:
    cli.main(prog_name="headrace", complete_var=COMPLETION_VARIABLE)
