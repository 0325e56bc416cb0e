"""One start of librdkafka's test-runner: its environment, its time limit, and its summary."""

import os
import re
import signal
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from compat.librdkafka.suite import Batch

BROKER_VERSION = "4.3.0"
"""The broker version given to the runner; by default it assumes 2.4 and leaves much out."""

TIMEOUT_MULTIPLIER = 2
"""For the runner's own timeouts; librdkafka's makers use the same."""

PASSED = "passed"
FAILED = "failed"
SKIPPED = "skipped"
STATES = {"PASSED": PASSED, "FAILED": FAILED, "SKIPPED": SKIPPED}
COLOUR = re.compile(r"\x1b\[[0-9;]*m")
SUMMARY_LINE = re.compile(r"^\| (?P<name>\S+) +\| +(?P<state>[A-Z]+) \| +[0-9.]+s +\| ?(?P<detail>.*)$", re.MULTILINE)
FAILURE = re.compile(r'^### Test "(?P<name>\S+)[^"\n]*" failed at [^\n]*###\n(?P<detail>.*)$', re.MULTILINE)
"""Said at once, where the summary is lost when the runner gives up."""

RANDOM_NAME = re.compile(r"rdkafkatest_rnd[0-9a-f]+_")
DETAIL_CHARACTERS_MAX = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    result: str
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """Folders: of the tests, of what imitates a Kafka distribution (if any), and where the runner's output is kept."""

    tests: Path
    kafka_home: Path | None
    outputs: Path


def run_batch(batch: Batch, surroundings: Surroundings, bootstrap_servers: str, *, broker: str) -> dict[str, Verdict]:
    """Verdicts by key of the entry."""
    surroundings.outputs.mkdir(parents=True, exist_ok=True)
    output = surroundings.outputs / f"{batch.number}{batch.choice}-{batch.protocol}-{broker}.txt"
    with tempfile.TemporaryDirectory() as folder:
        conf = Path(folder) / "test.conf"
        conf.write_text(f"test.timeout.multiplier={TIMEOUT_MULTIPLIER}\nmetadata.broker.list={bootstrap_servers}\n")
        environment = _environment(batch, surroundings, conf, bootstrap_servers)
        ending = _run(batch, surroundings.tests, environment, output)
    for litter in surroundings.tests.glob("stats_*.json"):
        litter.unlink()
    return verdicts(batch, COLOUR.sub("", output.read_text(errors="replace")), ending)


def _environment(batch: Batch, surroundings: Surroundings, conf: Path, bootstrap_servers: str) -> Mapping[str, str]:
    """Without CI, by which the runner changes its timeouts."""
    inherited = {name: text for name, text in os.environ.items() if name != "CI"}
    home = {} if surroundings.kafka_home is None else {"KAFKA_PATH": str(surroundings.kafka_home)}
    return {
        **inherited,
        **home,
        "TESTS": batch.number,
        "TEST_KAFKA_VERSION": BROKER_VERSION,
        "TEST_SCENARIO": batch.scenario,
        "TEST_CONSUMER_GROUP_PROTOCOL": batch.protocol,
        "RDKAFKA_TEST_CONF": str(conf),
        "BROKERS": bootstrap_servers,
        "LD_LIBRARY_PATH": "../src:../src-cpp",
    }


def _run(batch: Batch, tests: Path, environment: Mapping[str, str], output: Path) -> str:
    """Return how the run failed, if it did; a run that takes too long is killed with all its processes."""
    with output.open("wb") as file:
        process = subprocess.Popen(
            ["./test-runner", "-p1", batch.choice],
            cwd=tests,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            status = process.wait(batch.run_s_max)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            return f"did not end within {batch.run_s_max} s"
    if status < 0:
        return f"the runner died of {signal.Signals(-status).name}"
    return f"the runner ended with status {status}" if status else ""


def verdicts(batch: Batch, said: str, ending: str) -> dict[str, Verdict]:
    """From the summary; an entry that is not in it, or that passed in a run that ended badly, has failed."""
    summary = {line["name"]: line for line in SUMMARY_LINE.finditer(said)}
    failures = {line["name"]: line["detail"] for line in reversed(list(FAILURE.finditer(said)))}
    unexplained = "" if any(line["state"] == "FAILED" for line in summary.values()) else ending
    found: dict[str, Verdict] = {}
    for entry in batch.entries:
        line = summary.get(entry.name)
        if entry.name in failures:
            found[entry.key] = Verdict(result=FAILED, detail=_shortened(failures[entry.name]))
        elif line is None or line["state"] not in STATES:
            found[entry.key] = Verdict(result=FAILED, detail=ending or "not in the runner's summary")
        elif line["state"] == "PASSED" and unexplained:
            found[entry.key] = Verdict(result=FAILED, detail=f"{ending} after the test")
        else:
            found[entry.key] = Verdict(result=STATES[line["state"]], detail=_shortened(line["detail"]))
    return found


def _shortened(detail: str) -> str:
    return RANDOM_NAME.sub("", detail.strip())[:DETAIL_CHARACTERS_MAX]
