"""Options of the commands of this folder alone."""

from collections.abc import Callable
from copy import copy
from pathlib import Path
from typing import Any, TypeVar

import click

from headrace.bench.setup import BrokerMaker
from tools.bench.kafka import KafkaBroker

Decorated = TypeVar("Decorated", bound=Callable[..., Any])


def with_kafka_option(command: click.Command) -> click.Command:
    """Return the command with an option that measures Apache Kafka in alternating rounds."""
    option = click.Option(
        ["--kafka", "beside"],
        is_flag=True,
        callback=_makers,
        help="Also measure Apache Kafka, in alternating rounds (needs mvn and java).",
    )
    extended = copy(command)
    extended.params = [*command.params, option]
    return extended


def _makers(_ctx: click.Context, _parameter: click.Parameter, wanted: bool) -> tuple[BrokerMaker, ...]:
    return (KafkaBroker,) if wanted else ()


def page_option(function: Decorated) -> Decorated:
    return click.option(
        "--write",
        "page",
        type=click.Path(dir_okay=False, path_type=Path),
        help="Page in which to write the table.",
    )(function)


def touch_option(function: Decorated) -> Decorated:
    return click.option("--touch/--no-touch", default=None, help="Touch all memory first. [default: unless --quick]")(
        function
    )
