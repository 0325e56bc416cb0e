"""`headrace broker`: where its configs come from, and what it says when it cannot start."""

import errno
from pathlib import Path

import pytest
from click.testing import CliRunner

from headrace.cli import broker
from headrace.cli.main import cli
from headrace.client.addresses import parse_bootstrap
from headrace.client.core.link import Address
from headrace.model.configs import BrokerConfig, Listener
from headrace.ports.disk import DiskLockHeld


@pytest.fixture(autouse=True)
def _no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.environ", {})


def test_nothing_is_needed() -> None:
    config = broker.load_config(None, (), None, None)
    assert config.listeners == (Listener("PLAINTEXT", "127.0.0.1", 9092),)
    assert config.log_dirs == ("./headrace-data",)


def test_flags_win_over_environment_over_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "server.properties"
    path.write_text("node.id=1\nlog.dirs=/a\nnum.partitions=1\nlisteners=PLAINTEXT://:1\n")
    monkeypatch.setattr("os.environ", {"HEADRACE_NUM_PARTITIONS": "2", "HEADRACE_LOG_DIRS": "/b", "HOME": "/"})
    config = broker.load_config(path, ("num.partitions=3",), "/c", "[::1]:0")
    assert (config.node_id, config.num_partitions, config.log_dirs) == (1, 3, ("/c",))
    assert config.listeners == (Listener("PLAINTEXT", "::1", 0),)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--set", "log.retention.hour=1"], 'did you mean "log.retention.hours"?'),
        (["--set", "log.retention.hours"], "write it as --set name=value"),
        (["--listen", "nowhere:port"], "--listen: config"),
        (["--config", "none.properties"], "cannot read config file none.properties: No such file"),
        (["--set", "listeners=SSL://:1"], "headrace tls init makes files for a test"),
    ],
)
def test_wrong_configs_end_with_code_2_and_a_hint(arguments: list[str], message: str) -> None:
    result = CliRunner().invoke(cli, ["broker", *arguments])
    assert result.exit_code == 2
    assert message in result.stderr
    assert result.stderr.startswith("headrace: ")


def test_a_file_that_is_no_text(tmp_path: Path) -> None:
    path = tmp_path / "server.properties"
    path.write_bytes(b"\xff\xfe\x00")
    result = CliRunner().invoke(cli, ["broker", "--config", str(path)])
    assert result.exit_code == 2
    assert "not UTF-8" in result.stderr


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (DiskLockHeld("/data/.lock", "4121"), "data folder /data is in use by process 4121; stop it or choose another"),
        (OSError(errno.EADDRINUSE, "taken"), "the port is in use"),
        (OSError(errno.EADDRNOTAVAIL, "no"), "not an address of this machine"),
        (PermissionError(errno.EACCES, "no", "/elsewhere"), "permission denied /elsewhere: choose a folder"),
        (OSError(errno.ENOSPC, "full", "/d"), "the disk is full /d"),
        (OSError(errno.EIO, "broken"), "broken; headrace doctor may know why"),
    ],
)
def test_a_start_that_fails_says_what_to_do(error: Exception, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def run(config: BrokerConfig, *, on_ready: object) -> int:
        raise error

    monkeypatch.setattr("headrace.broker.process.run", run)
    result = CliRunner().invoke(cli, ["broker"])
    assert result.exit_code == 1
    assert message in result.stderr


def test_the_first_line_names_the_address(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    broker._announce(["127.0.0.1:9092", ":9093", "[::1]:9094"])
    assert capsys.readouterr().out.splitlines() == [
        "headrace listening on 127.0.0.1:9092",
        "headrace listening on 0.0.0.0:9093",
        "headrace listening on [::1]:9094",
    ]


@pytest.mark.parametrize(
    ("given", "listener"),
    [
        ("localhost", Listener("PLAINTEXT", "localhost", 9092)),
        ("[::1]", Listener("PLAINTEXT", "::1", 9092)),
        ("localhost:0", Listener("PLAINTEXT", "localhost", 0)),
    ],
)
def test_an_address_without_a_port_has_the_port_that_clients_assume(given: str, listener: Listener) -> None:
    assert broker.load_config(None, (), None, given).listeners == (listener,)
    if listener.port:
        assert parse_bootstrap(given) == (Address(listener.host, listener.port),)
