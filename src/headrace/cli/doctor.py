"""`headrace doctor`: diagnose problems of this machine and of a broker."""

from pathlib import Path

import click

from headrace.cli.connection import Properties, connection_of, connection_options
from headrace.cli.console import print_json, print_table
from headrace.cli.failures import EXIT_FAILED
from headrace.cli.options import json_option
from headrace.model.configs.values import BrokerConfig
from headrace.operations.findings import Level

BROKER_TIMEOUT_MS = 5_000

_STYLES = {Level.OK: "green", Level.NOTE: "cyan", Level.WARNING: "yellow", Level.PROBLEM: "bold red"}


@click.command("doctor")
@click.option(
    "--data-dir",
    "folders",
    type=click.Path(path_type=Path),
    multiple=True,
    help="Data directory to check; may be repeated. [default: ./headrace-data]",
)
@connection_options
@json_option
@click.pass_context
def command(
    ctx: click.Context, bootstrap: str, properties: Properties, folders: tuple[Path, ...], as_json: bool
) -> None:
    """Diagnose problems of this machine and of a broker, with advice. Exits with 1 if there is a problem.

    With --data-dir and without --bootstrap, checks only the directory: the broker at the default address may use
    another one.
    """
    from headrace.cli.spark_checks import check_spark
    from headrace.operations.broker_checks import check_broker
    from headrace.operations.machine_checks import check_data_folder, check_machine

    defaults = BrokerConfig.from_texts()
    findings = list(check_machine())
    for folder in folders or tuple(map(Path, defaults.log_dirs)):
        findings.extend(check_data_folder(folder, free_bytes_min=defaults.disk_free_bytes_min))
    named = connection_of(ctx).is_chosen
    findings.extend(check_spark())
    if named or not folders:
        findings.extend(
            check_broker(
                bootstrap,
                properties=properties,
                expected=named,
                timeout_ms=BROKER_TIMEOUT_MS,
                expected_folders=folders,
            )
        )
    if as_json:
        print_json([finding._asdict() for finding in findings])
    else:
        print_table(("is", "about", "seen", "do"), findings, styles={"is": lambda cell: _STYLES[Level(cell)]})
    if any(finding.level is Level.PROBLEM for finding in findings):
        ctx.exit(EXIT_FAILED)
