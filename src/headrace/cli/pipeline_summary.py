"""The result of `headrace pipeline run --once` for schedulers: its exit code, and one JSON object as its last line."""

import json
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from headrace.cli.failures import EXIT_FAILED, EXIT_USAGE, Failure, failure_of

if TYPE_CHECKING:
    from headrace.spark.pipelines.definition import Pipeline
    from headrace.spark.pipelines.supervision import Supervisor

EXIT_IN_USE = 3
EXIT_STOPPED = 4

_STATES = {0: "done", EXIT_FAILED: "failed", EXIT_USAGE: "invalid", EXIT_IN_USE: "in use", EXIT_STOPPED: "stopped"}
_BY_SIGNAL = "stopped"
"""The state for all other exit codes, which are those of signals."""


class InUse(Failure):
    """Another run holds the pipeline or its checkpoint."""

    exit_code = EXIT_IN_USE


class RunSummary:
    """Collects what is known of a run."""

    def __init__(self) -> None:
        self.name: str | None = None
        self._began = time.monotonic()
        self._pipeline: Pipeline | None = None
        self._supervisor: Supervisor | None = None

    def follow(self, pipeline: "Pipeline", supervisor: "Supervisor") -> None:
        self._pipeline, self._supervisor = pipeline, supervisor

    @contextmanager
    def printed(self) -> Iterator[None]:
        """Print the line when the run has ended, however it ended."""
        try:
            yield
        except click.exceptions.Exit as end:
            self._print(end.exit_code)
            raise
        except Exception as error:
            failure = error if isinstance(error, click.ClickException) else failure_of(error)
            self._print(EXIT_FAILED if failure is None else failure.exit_code, str(error))
            raise
        self._print(0)

    def _print(self, code: int, said: str = "") -> None:
        line = json.dumps({**self._of_command(code, said), **self._of_run()})
        click.echo(line if self._pipeline is None else self._pipeline.secrets.hide(line))

    def _of_command(self, code: int, said: str) -> dict[str, Any]:
        end = {} if self._supervisor is None else self._supervisor.end
        return {
            "pipeline": self.name,
            "environment": None if self._pipeline is None else self._pipeline.environment,
            "state": _STATES.get(code, _BY_SIGNAL),
            "exit_code": code,
            "message": end.get("message") or said,
            "seconds": round(time.monotonic() - self._began, 3),
        }

    def _of_run(self) -> dict[str, Any]:
        """Return the counts; null where nothing counted, as in a project of Spark."""
        if self._supervisor is None:
            return dict.fromkeys(("run", "batches", "restarts", "rows", "failed_expectations", "lag"))
        from headrace.spark.pipelines.totals import no_totals

        batch: Mapping[str, Any] = self._supervisor.batch or {}
        totals = batch.get("totals", no_totals())
        return {
            "run": self._supervisor.record.run,
            "batches": totals["batches"],
            "restarts": max(totals["restarts"], self._supervisor.restarts),
            "rows": totals["rows"],
            "failed_expectations": totals["failed_expectations"],
            "lag": {name: batch["lag"][name] for name in ("records", "seconds")} if batch.get("lag") else None,
        }
