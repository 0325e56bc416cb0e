"""The embedded broker: up at once, many at a time, gone without a trace."""

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from headrace.broker.node import Node
from headrace.client import Admin
from headrace.ports.disk import DiskLockHeld
from headrace.testing import EmbeddedBroker
from headrace.testing import private_folders as folders

pytestmark = pytest.mark.process

WAIT_S_MAX = 60

COUNTED = """
import os
from headrace.testing import EmbeddedBroker

def open_files():
    return len(os.listdir("/proc/self/fd"))

with EmbeddedBroker() as broker:
    broker.create_topic("warm")
before = open_files()
for _ in range(3):
    with EmbeddedBroker() as broker:
        broker.create_topic("orders", partitions=3)
print(before, open_files())
"""

THREADS = """
import threading
from headrace.testing import EmbeddedBroker

def others():
    return [thread.name for thread in threading.enumerate() if thread is not threading.main_thread()]

with EmbeddedBroker() as broker:
    broker.create_topic("orders", partitions=3)
    print(others())
print(others())
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where private folders are: where no other test run looks for what dead owners have left."""
    monkeypatch.setattr(folders, "MEMORY_FOLDER", str(tmp_path))
    return tmp_path


def send(bootstrap_servers: str, topic: str, values: list[bytes]) -> None:
    producer = Producer({"bootstrap.servers": bootstrap_servers, "log_level": 0})
    for value in values:
        producer.produce(topic, value)
    assert producer.flush(WAIT_S_MAX) == 0


def read(bootstrap_servers: str, topic: str, count: int) -> list[bytes]:
    consumer = Consumer(
        {"bootstrap.servers": bootstrap_servers, "group.id": "g", "enable.auto.commit": False, "log_level": 0}
    )
    consumer.assign([TopicPartition(topic, 0, 0)])
    values: list[bytes] = []
    while len(values) < count:
        message = consumer.poll(WAIT_S_MAX)
        assert message is not None, f"only {len(values)} of {count} came"
        assert message.error() is None
        values.append(message.value())
    consumer.close()
    return values


@pytest.fixture(params=[False, True], ids=["thread", "process"])
def broker(request: pytest.FixtureRequest) -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(process=request.param) as running:
        yield running


def test_a_stock_client_writes_and_reads(broker: EmbeddedBroker) -> None:
    topic = broker.create_topic("orders")
    values = [b"value %d" % number for number in range(100)]
    send(broker.bootstrap_servers, topic, values)
    assert read(broker.bootstrap_servers, topic, 100) == values


def test_topics_have_partitions_and_configs(broker: EmbeddedBroker) -> None:
    broker.create_topic("orders", partitions=4, configs={"retention.ms": "1000"})
    with Admin(broker.bootstrap_servers) as admin:
        [topic] = admin.topics(["orders"])
        assert len(topic.partitions) == 4
    with pytest.raises(ValueError, match="orders"):
        broker.create_topic("orders")
    with pytest.raises(ValueError, match=r"retention\.ms"):
        broker.create_topic("other", configs={"retention.minutes": "1"})
    broker.delete_topic("orders")
    with pytest.raises(ValueError, match="orders"):
        broker.delete_topic("orders")


def test_many_brokers_live_in_one_process() -> None:
    brokers = [EmbeddedBroker().start() for _ in range(5)]
    try:
        for number, broker in enumerate(brokers):
            send(broker.bootstrap_servers, broker.create_topic("t"), [b"broker %d" % number])
        for number, broker in enumerate(brokers):
            assert read(broker.bootstrap_servers, "t", 1) == [b"broker %d" % number]
    finally:
        for broker in brokers:
            broker.stop()


def test_nothing_is_left_behind() -> None:
    broker = EmbeddedBroker().start()
    folder = broker._folders[0]
    assert folder is not None
    assert Path(folder).is_dir()
    broker.stop()
    assert not Path(folder).exists()
    broker.stop()  # twice does no harm


def test_no_thread_is_left_behind() -> None:
    """In a process of its own: here, brokers and clients of other tests begin threads too."""
    listed = subprocess.run([sys.executable, "-c", THREADS], capture_output=True, text=True, check=True)
    running, left = listed.stdout.splitlines()
    assert "headrace 127.0.0.1:" in running
    assert left == "[]"


def test_a_folder_of_ones_own_outlives_the_broker(tmp_path: Path) -> None:
    data = str(tmp_path / "data")
    with EmbeddedBroker(data_dir=data) as broker:
        send(broker.bootstrap_servers, broker.create_topic("kept"), [b"first"])
    with EmbeddedBroker(data_dir=data) as broker:
        send(broker.bootstrap_servers, "kept", [b"second"])
        assert read(broker.bootstrap_servers, "kept", 2) == [b"first", b"second"]


def test_a_folder_in_use_is_refused(tmp_path: Path) -> None:
    data = str(tmp_path / "data")
    with EmbeddedBroker(data_dir=data):
        with pytest.raises(DiskLockHeld) as refused:
            EmbeddedBroker(data_dir=data).start()
        assert refused.value.owner == str(os.getpid())


def test_leftovers_of_dead_owners_are_removed(place: Path) -> None:
    owner = subprocess.Popen([sys.executable, "-c", ""])
    owner.wait()
    left = place / f"{folders.PREFIX}{owner.pid}-left"
    left.mkdir()
    (left / "data").write_bytes(b"x")
    with EmbeddedBroker():
        assert not left.exists()


def test_a_killed_test_run_leaves_its_folder_for_the_next(place: Path) -> None:
    """The owner dies without any chance to clean up."""
    script = (
        "import os, signal, sys; from headrace.testing import EmbeddedBroker, private_folders;"
        "private_folders.MEMORY_FOLDER = sys.argv[1]; broker = EmbeddedBroker().start();"
        "print(broker._folders[0], flush=True); os.kill(os.getpid(), signal.SIGKILL)"
    )
    killed = subprocess.run([sys.executable, "-c", script, str(place)], capture_output=True, text=True, check=False)
    folder = Path(killed.stdout.strip())
    assert folder.is_dir()
    with EmbeddedBroker():
        assert not folder.exists()


def test_a_wrong_config_is_reported_at_the_start() -> None:
    with pytest.raises(ValueError, match=r"did you mean .?num\.partitions"):
        EmbeddedBroker(config={"num.partition": "3"}).start()


def test_a_process_that_cannot_start_is_reported() -> None:
    with pytest.raises(RuntimeError, match="did not start"):
        EmbeddedBroker(process=True, config={"listeners": "PLAINTEXT://256.0.0.1:0"}).start()


def test_a_stop_that_takes_too_long_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder would be looked at, or removed, while the broker still writes there."""
    may_close, close = threading.Event(), Node.close

    def close_late(node: Node) -> None:
        assert may_close.wait(WAIT_S_MAX)
        close(node)

    monkeypatch.setattr(Node, "close", close_late)
    monkeypatch.setattr("headrace.testing.embedded.STOP_MS_MAX", 10)
    broker = EmbeddedBroker().start()
    (thread,) = (each for each in threading.enumerate() if each.name == f"headrace {broker.bootstrap_servers}")
    with pytest.raises(RuntimeError, match=r"has not stopped in 0\.01 s"):
        broker.stop()
    may_close.set()
    thread.join(WAIT_S_MAX)
    broker.stop()


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="counts descriptors in /proc: run on Linux")
def test_no_file_stays_open_after_the_end() -> None:
    """In a process of its own: here, what other tests have left in the background opens and closes files too."""
    counted = subprocess.run([sys.executable, "-c", COUNTED], capture_output=True, text=True, check=True)
    before, after = map(int, counted.stdout.split())
    assert after <= before
