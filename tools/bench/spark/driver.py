"""A Spark session in a separate process, which runs one query after another."""

import json
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from headrace.bench import processes
from headrace.bench.errors import BenchError, RunRejected
from headrace.spark.range_reader import DECODER_VARIABLE
from tools.bench.modules import module_command

MASTER = "local[2]"
START_SECONDS_MAX = 180
ANSWER_SECONDS_MAX = 1_200
STOP_SECONDS_MAX = 30
ENDING_SECONDS_MAX = 5
MEMORY = "2g"
PROGRESS_MAX = 2_000
"""Micro-batches of a query whose progress is kept: more than any query has."""


class Driver:
    """A Spark process that starts with the first task and ends with the benchmark, even if the benchmark dies."""

    def __init__(self, folder: Path, *, jars: Sequence[Path] = (), with_helper: bool = True) -> None:
        self._folder = folder
        self._jars = jars
        self._with_helper = with_helper
        self._process: subprocess.Popen[bytes] | None = None
        self.about: Mapping[str, Any] = {}
        """Versions of Spark and Java, and whether there is a compiled helper."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        assert process.stdin is not None
        process.stdin.close()
        try:
            process.wait(STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            pass  # it is stopped below
        processes.stop(process)

    def start(self) -> Self:
        if self._process is None:
            self._folder.mkdir(parents=True, exist_ok=True)
            command = module_command("tools.bench.spark.driver_process", json.dumps(self._conf()))
            self._process = processes.start(
                command,
                messages=self._messages,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                environment={} if self._with_helper else {DECODER_VARIABLE: "numpy"},
            )
            self.about = self._answer(START_SECONDS_MAX)
        return self

    def ask(self, task: str, **arguments: object) -> Any:
        """Run a task and return its result; raise RunRejected with Spark's error if it fails."""
        self.start()
        assert self._process is not None
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps({"task": task, **arguments}).encode() + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise BenchError(f"Spark's process is gone{processes.last_words(self._messages)}") from None
        answer = self._answer(ANSWER_SECONDS_MAX)
        if "error" in answer:
            raise RunRejected(f"Spark failed: {answer['error']}")
        return answer

    def cpu_seconds(self) -> float:
        """Return the CPU time of Spark, its Java process and its Python workers."""
        assert self._process is not None
        return processes.cpu_seconds(self._process.pid)

    @property
    def _messages(self) -> Path:
        return self._folder / "messages.txt"

    def _conf(self) -> dict[str, str]:
        return {
            "spark.master": MASTER,
            "spark.ui.enabled": "false",
            "spark.driver.memory": MEMORY,
            "spark.local.dir": str(self._folder / "local"),
            "spark.sql.warehouse.dir": str(self._folder / "warehouse"),
            "spark.sql.streaming.numRecentProgressUpdates": str(PROGRESS_MAX),
            "spark.jars": ",".join(map(str, self._jars)),
        }

    def _answer(self, seconds_max: float) -> Any:
        assert self._process is not None
        assert self._process.stdout is not None
        line = processes.first_line(self._process.stdout, seconds_max)
        if not line:
            how = "ended" if self._has_ended() else f"did not answer within {seconds_max:.0f} s"
            raise BenchError(f"Spark's process {how}{processes.last_words(self._messages)}")
        return json.loads(line)

    def _has_ended(self) -> bool:
        """Tell whether the process has ended; one that has closed its output is about to end."""
        assert self._process is not None
        try:
            self._process.wait(ENDING_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            return False
        return True
