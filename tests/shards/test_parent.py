"""`headrace broker --shards`: several brokers as one system, under one parent."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from urllib.request import urlopen

import pytest
from click.testing import CliRunner

from headrace import Admin, Consumer, Producer
from headrace.cli.main import cli
from headrace.client import NewTopic
from headrace.operations.folder_owner import folder_owner
from headrace.ports.real.processes import is_running
from headrace.testing import EmbeddedBroker
from tests.process_groups import running, wait_until
from tests.reserved_ports import reserved_address

pytestmark = pytest.mark.process

PROGRAM = ("-c", "from headrace.cli.main import main; main()", "broker")
LISTENING = "headrace listening on "
END_SECONDS_MAX = 60


@contextmanager
def started(folder: Path, shards: int, *options: str) -> Iterator[list[str]]:
    """The addresses of the shards of a parent, which is stopped at the end."""
    command = (sys.executable, *PROGRAM, "--data-dir", str(folder), "--listen", "127.0.0.1:0")
    with running(*command, "--shards", str(shards), *options) as process:
        assert process.stdout is not None
        lines = [process.stdout.readline().strip() for _ in range(shards)]
        assert all(line.startswith(LISTENING) for line in lines), lines
        yield [line.removeprefix(LISTENING) for line in lines]
        process.send_signal(signal.SIGTERM)
        assert process.wait(END_SECONDS_MAX) == 0


def brokers(bootstrap: str) -> list[int]:
    with Admin(bootstrap) as admin:
        return [broker.node_id for broker in admin.cluster().brokers]


def create_topic(bootstrap: str, name: str, partitions: int) -> None:
    with Admin(bootstrap) as admin:
        admin.create_topics([NewTopic(name, partitions=partitions)])[name].check(name)


def leaders(bootstrap: str, topic: str) -> set[int]:
    with Admin(bootstrap) as admin:
        return {partition.leader for partition in admin.topics([topic])[0].partitions}


def shard_process(folder: Path, shard: int) -> int:
    owner = folder_owner(folder / f"shard-{shard}")
    assert owner is not None
    return owner


def _knows_both(address: str) -> bool:
    return brokers(address) == [1, 1001]


def test_shards_are_one_cluster_and_a_dead_one_returns(tmp_path: Path) -> None:
    metrics = reserved_address()
    options = ("--set", f"headrace.metrics.listen={metrics}", "--set", "headrace.controllers.target=1")
    with started(tmp_path, 2, *options) as addresses:
        for address in addresses:
            wait_until(partial(_knows_both, address), "a shard is missing")
        create_topic(addresses[1], "t", 4)
        wait_until(lambda: leaders(addresses[1], "t") == {1, 1001}, "not every shard leads")
        with Producer(addresses[0]) as producer:
            for number in range(100):
                producer.send("t", b"%d" % number, partition=number % 4)
        with urlopen(f"http://{metrics}/metrics", timeout=END_SECONDS_MAX) as scrape:
            page = scrape.read().decode()
        assert 'headrace_partitions{shard="0"}' in page
        assert 'headrace_shard_up{shard="1"} 1' in page

        victim = shard_process(tmp_path, 1)
        os.kill(victim, signal.SIGKILL)
        wait_until(lambda: folder_owner(tmp_path / "shard-1") not in (None, victim), "the shard is not started again")
        with Consumer("t", bootstrap_servers=addresses[0], auto_offset_reset="earliest") as consumer:
            read = sorted(int(next(consumer).value or b"") for _ in range(100))
        assert read == list(range(100))


def test_shards_end_with_a_killed_parent(tmp_path: Path) -> None:
    command = (sys.executable, *PROGRAM, "--data-dir", str(tmp_path), "--listen", "127.0.0.1:0", "--shards", "2")
    with running(*command) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith(LISTENING)
        children = [shard_process(tmp_path, shard) for shard in range(2)]
        process.kill()
        wait_until(lambda: not any(map(is_running, children)), "a shard stays")


def test_a_single_broker_becomes_shard_0_and_more_are_added(tmp_path: Path) -> None:
    with EmbeddedBroker(data_dir=str(tmp_path), process=True) as broker:
        topic = broker.create_topic("kept", partitions=2)
        with Producer(broker.bootstrap_servers) as producer:
            producer.send(topic, b"old", partition=0)
    with started(tmp_path, 2) as addresses:
        wait_until(lambda: brokers(addresses[0]) == [1, 1001], "a shard is missing")
        with Consumer(topic, bootstrap_servers=addresses[1], auto_offset_reset="earliest") as consumer:
            assert next(consumer).value == b"old"
    with started(tmp_path, 3) as addresses:
        wait_until(lambda: brokers(addresses[2]) == [1, 1001, 2001], "a shard is missing")
        with Admin(addresses[0]) as admin:
            assert CliRunner().invoke(
                cli, ["topics", "create", "new", "--partitions", "3", "--bootstrap", addresses[0]]
            )
            assert {partition.leader for partition in admin.topics(["new"])[0].partitions} == {1, 1001, 2001}
    assert json.loads((tmp_path / "shards.json").read_text())["shards"] == 3
    for fewer in (["--shards", "2"], []):
        refused = CliRunner().invoke(cli, ["broker", "--data-dir", str(tmp_path), *fewer])
        assert refused.exit_code == 2
        assert "has 3 shards, asked for" in refused.stderr
        assert "start it with --shards 3" in refused.stderr


@pytest.mark.parametrize("count", ["0", "-1", "257", "many"])
def test_a_wrong_number_of_shards_is_refused(tmp_path: Path, count: str) -> None:
    refused = CliRunner().invoke(cli, ["broker", "--data-dir", str(tmp_path / "data"), "--shards", count])
    assert refused.exit_code == 2
    assert "is not a number of shards: use 1 to 256, or auto" in refused.stderr
    assert not (tmp_path / "data").exists()


def test_a_shard_that_cannot_start_ends_the_parent(tmp_path: Path) -> None:
    options = ("--data-dir", str(tmp_path), "--listen", "203.0.113.1:9092", "--shards", "2")
    ended = subprocess.run(
        [sys.executable, *PROGRAM, *options], capture_output=True, text=True, check=False, timeout=END_SECONDS_MAX
    )
    assert ended.returncode == 1
    assert "not an address of this machine" in ended.stderr
    assert "a shard could not start" in ended.stderr
