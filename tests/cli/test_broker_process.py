"""`headrace broker` as people start it: a process with a first line, and an end by signal."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.request import urlopen

import pytest
from click.testing import CliRunner

from headrace.cli.main import cli
from tests.reserved_ports import reserved_address

pytestmark = pytest.mark.process

PROGRAM = "from headrace.cli.main import main; main()"
END_SECONDS_MAX = 60


@contextmanager
def started(folder: Path, *arguments: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A broker process and its address."""
    environment = {name: text for name, text in os.environ.items() if not name.startswith("HEADRACE_")}
    command = [
        sys.executable,
        "-c",
        PROGRAM,
        "broker",
        "--data-dir",
        str(folder),
        "--listen",
        "127.0.0.1:0",
        *arguments,
    ]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    ) as process:
        try:
            assert process.stdout is not None
            match = re.fullmatch(r"headrace listening on (127\.0\.0\.1:[0-9]+)\n", process.stdout.readline())
            assert match is not None
            yield process, match[1]
        finally:
            process.kill()


def test_a_broker_keeps_its_data_over_a_restart(tmp_path: Path) -> None:
    with started(tmp_path / "data") as (process, address):
        options = ["--bootstrap", address]
        assert CliRunner().invoke(cli, ["produce", "kept", *options], input="a\nb\n").exit_code == 0
        process.send_signal(signal.SIGTERM)
        assert process.wait(END_SECONDS_MAX) == 0
    with started(tmp_path / "data") as (process, address):
        result = CliRunner().invoke(cli, ["consume", "kept", "--from-beginning", "--bootstrap", address])
        assert result.stdout == "a\nb\n"
        process.send_signal(signal.SIGINT)
        assert process.wait(END_SECONDS_MAX) == 0


def refused(*arguments: str) -> str:
    """Return the message of a broker that cannot start."""
    result = subprocess.run(
        [sys.executable, "-c", PROGRAM, "broker", *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=END_SECONDS_MAX,
    )
    assert result.returncode == 1
    assert result.stdout == ""
    return result.stderr


def test_a_second_broker_on_the_same_folder_is_refused(tmp_path: Path) -> None:
    with started(tmp_path) as (process, _):
        assert refused("--data-dir", str(tmp_path), "--listen", "127.0.0.1:0") == (
            f"headrace: data folder {tmp_path} is in use by process {process.pid}; "
            "stop it or choose another with --data-dir\n"
        )
        findings = CliRunner().invoke(cli, ["doctor", "--data-dir", str(tmp_path)]).stdout
        assert f"is in use by process {process.pid}" in findings


def test_a_taken_port_is_reported(tmp_path: Path) -> None:
    with started(tmp_path / "one") as (_, address):
        assert "the port is in use" in refused("--data-dir", str(tmp_path / "two"), "--listen", address)


def test_a_file_of_configs_and_the_metrics(tmp_path: Path) -> None:
    metrics_address = reserved_address()
    config = tmp_path / "broker.toml"
    config.write_text(f'node.id = 7\n[headrace.metrics]\nlisten = "{metrics_address}"\n')
    with started(tmp_path / "data", "--config", str(config)) as (process, address):
        described = CliRunner().invoke(cli, ["cluster", "brokers", "--bootstrap", address]).stdout
        assert re.search(r"(?m)^ +7  127\.0\.0\.1:", described)
        with urlopen(f"http://{metrics_address}/metrics", timeout=END_SECONDS_MAX) as scrape:
            text = scrape.read().decode()
        assert 'headrace_requests_total{api="metadata"} ' in text
        process.send_signal(signal.SIGTERM)
        assert process.wait(END_SECONDS_MAX) == 0


def test_the_broker_logs_its_start_its_recovery_and_its_end(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    with started(folder) as (process, address):
        assert CliRunner().invoke(cli, ["topics", "create", "kept", "--bootstrap", address]).exit_code == 0
        process.send_signal(signal.SIGTERM)
        assert process.wait(END_SECONDS_MAX) == 0
    with started(folder) as (process, _):
        process.send_signal(signal.SIGTERM)
        assert process.wait(END_SECONDS_MAX) == 0
        assert process.stderr is not None
        starts, recovered, stops, stopped = process.stderr.read().splitlines()
    assert "broker starts" in starts
    assert f"data={folder}" in starts
    assert "listeners=PLAINTEXT://127.0.0.1:0" in starts
    assert re.search(r"version=\d+\.\d+", starts)
    assert re.search(r"recovered 1 partition in \d+\.\d s after a clean stop", recovered)
    assert "broker stops" in stops
    assert "stopped cleanly" in stopped


def test_doctor_looks_at_a_named_folder_alone(tmp_path: Path) -> None:
    with started(tmp_path / "used") as (_, address):
        other = str(tmp_path / "other")
        both = CliRunner().invoke(cli, ["doctor", "--json", "--data-dir", other, "--bootstrap", address]).stdout
        assert "is not a log directory of this broker" in both
        fitting = ["--data-dir", str(tmp_path / "used"), "--bootstrap", address]
        assert (
            "is not a log directory of this broker"
            not in CliRunner().invoke(cli, ["doctor", "--json", *fitting]).stdout
        )
    alone = json.loads(CliRunner().invoke(cli, ["doctor", "--json", "--data-dir", other]).stdout)
    assert all(not finding["about"].startswith("broker") for finding in alone)
