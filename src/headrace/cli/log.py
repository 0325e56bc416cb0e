"""`headrace log dump|verify|repair PATH`: inspect and repair data folders without a broker."""

import json
from base64 import b64encode
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import click

from headrace.cli.console import clean, print_json, print_table, progress
from headrace.cli.failures import EXIT_FAILED, Failure
from headrace.cli.group import CommandGroup
from headrace.cli.options import confirm, json_option, yes_option
from headrace.log import inspect
from headrace.log.dump import Value
from headrace.log.errors import LogError
from headrace.operations.amounts import count_text, size_text
from headrace.ports.disk import DiskLockHeld
from headrace.ports.real.disk import RealDisk
from headrace.wire.records.compression import Compression

_path_argument = click.argument("path", type=click.Path(exists=True, path_type=Path))


@click.group("log", cls=CommandGroup)
def command() -> None:
    """Dump, verify and repair segment files.

    PATH is a data directory or the directory of one partition; dump also accepts a single file.
    """


@contextmanager
def _failures_told(path: Path) -> Iterator[None]:
    try:
        yield
    except DiskLockHeld as held:
        owner = f" by process {held.owner}" if held.owner else ""
        raise Failure(f"{path} is in use{owner}: stop the broker first") from None
    except LogError as error:
        raise Failure(str(error)) from None
    except BrokenPipeError:
        raise
    except OSError as error:
        raise Failure(f"cannot read {error.filename or path}: {error.strerror}") from None


@command.command("dump")
@_path_argument
@click.option("--records", "deep", is_flag=True, help="Also print the records of each batch.")
@json_option
def dump(path: Path, deep: bool, as_json: bool) -> None:
    """Print the contents of segments, indexes, snapshots and checkpoints; with --json, one line per entry."""
    shown = ""
    with _failures_told(path):
        for entry in inspect.dump(RealDisk(), str(path), deep=deep):
            values = _readable(entry.values)
            if as_json:
                line = {"path": entry.path, "kind": entry.kind, "position": entry.position, **values}
                click.echo(json.dumps(line, ensure_ascii=False))
                continue
            if entry.path != shown:
                shown = entry.path
                click.echo(clean(shown))
            pairs = "  ".join(f"{name}={clean(str(value))}" for name, value in values.items())
            indent = "    " if entry.kind == "record" else "  "
            click.echo(f"{indent}{entry.position} {entry.kind}  {pairs}")


def _readable(values: Mapping[str, Value]) -> dict[str, int | str | bool | None]:
    """Return bytes as text, or as Base64 in `NAME_base64`, and the compression type by its name."""
    readable: dict[str, int | str | bool | None] = {}
    for name, value in values.items():
        if isinstance(value, bytes):
            try:
                readable[name] = value.decode()
            except UnicodeDecodeError:
                readable[f"{name}_base64"] = b64encode(value).decode()
        elif name == "compression" and value in list(Compression):
            readable[name] = Compression(value).name.lower()
        else:
            readable[name] = value
    return readable


@command.command("verify")
@_path_argument
@json_option
@click.pass_context
def verify(ctx: click.Context, path: Path, as_json: bool) -> None:
    """Verify all checksums, index entries and checkpoint files. Exits with 1 if there is damage.

    Changes nothing. The active segment of a running broker may appear incomplete while it is written.
    """
    with _failures_told(path), progress(f"checking {path}"):
        report = inspect.verify(RealDisk(), str(path))
    _show(report, as_json=as_json)
    if not report.is_whole:
        if not as_json:
            click.echo(f"headrace log repair {path} carries out the remedies in the column REMEDY", err=True)
        ctx.exit(EXIT_FAILED)


@command.command("repair")
@_path_argument
@click.option("--dry-run", is_flag=True, help="Show the repairs without making them.")
@yes_option
@json_option
@click.pass_context
def repair(ctx: click.Context, path: Path, dry_run: bool, yes: bool, as_json: bool) -> None:
    """Truncate damaged segments and rebuild indexes. Truncated bytes are kept in a file beside the segment."""
    with _failures_told(path), progress(f"checking {path}"):
        report = inspect.repair(RealDisk(), str(path), dry_run=True)
    mendable = sum(finding.remedy in _MENDED for finding in report.findings)
    if not dry_run and mendable:
        if not yes:
            _show(report, as_json=False)
            confirm(f"make {count_text(mendable, 'repair')}?")
        with _failures_told(path), progress(f"repairing {path}"):
            report = inspect.repair(RealDisk(), str(path), dry_run=False)
    _show(report, as_json=as_json)
    if not report.is_whole:
        ctx.exit(EXIT_FAILED)


_MENDED = (inspect.Remedy.CUT, inspect.Remedy.REBUILD, inspect.Remedy.REMOVE, inspect.Remedy.ACCEPT)


def _show(report: inspect.LogReport, *, as_json: bool) -> None:
    if as_json:
        print_json(
            {
                "whole": report.is_whole,
                "files": report.files,
                "batches": report.batches,
                "records": report.records,
                "bytes": report.bytes,
                "findings": [
                    {
                        "path": finding.path,
                        "position": finding.position,
                        "found": finding.text,
                        "remedy": finding.remedy.value,
                        "repaired": finding.repaired,
                    }
                    for finding in report.findings
                ],
            }
        )
        return
    if report.findings:
        print_table(
            ("file", "position", "found", "remedy"),
            (
                (finding.path, finding.position, finding.text, "done" if finding.repaired else finding.remedy.value)
                for finding in report.findings
            ),
            right=("position",),
            styles={"remedy": lambda cell: "green" if cell in ("done", inspect.Remedy.NONE.value) else "bold red"},
        )
    state = "whole" if report.is_whole else "damaged"
    records = count_text(report.records, "record")
    click.echo(f"{state}: {count_text(report.files, 'file')}, {records}, {size_text(report.bytes)}")
