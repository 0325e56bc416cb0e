"""Apache Kafka as the broker, to see whether the cases ask what Kafka does: one node from Maven's jars."""

import contextlib
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from compat.environments import jars_from_maven
from compat.segments import ARTIFACTS, KAFKA_VERSION
from headrace.bench.brokers import free_ports
from headrace.client import Admin, NewTopic
from headrace.ports.real.processes import stop

START_S_MAX = 60.0
STOP_S_MAX = 30.0
VISIBLE_S = 0.5
"""Kafka answers before the topic is to be seen."""

CLUSTER_ID = "AAAAAAAAAAAAAAAAAAAAAQ"
PROPERTIES = """process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT
log.dirs={folder}/data
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
"""


class ApacheKafka:
    """Looks to the runner like an embedded broker."""

    def __init__(self, bootstrap_servers: str) -> None:
        self.bootstrap_servers = bootstrap_servers
        self._named = 0

    def unused_topic_name(self, text: str) -> str:
        self._named += 1
        return f"topic-{self._named}"

    def create_topic(self, name: str, *, partitions: int = 1, configs: Mapping[str, str] | None = None) -> str:
        with Admin(self.bootstrap_servers) as admin:
            outcome = admin.create_topics([NewTopic(name, partitions=partitions, configs=dict(configs or {}))])[name]
        assert not outcome.error, outcome
        time.sleep(VISIBLE_S)
        return name


@contextlib.contextmanager
def apache_kafka(settings: Mapping[str, str]) -> Iterator[ApacheKafka]:
    """One node, with these settings beside those it needs; raises Missing without Maven.

    A setting that names other listeners finds the ports of the two that must stay as {port} and {controller}.
    """
    classpath = f"{jars_from_maven(f'kafka-{KAFKA_VERSION}', ARTIFACTS)}/*"
    folder = Path(tempfile.mkdtemp(prefix="compat-kafka-"))
    port, controller = free_ports(2)
    properties = folder / "server.properties"
    needed = PROPERTIES.format(port=port, controller=controller, folder=folder)
    added = "".join(f"{name}={text}\n" for name, text in settings.items())
    added = added.replace("{port}", str(port)).replace("{controller}", str(controller))
    properties.write_text(needed + added)
    java = ("java", "-Xmx512M", "-cp", classpath)
    quiet = subprocess.DEVNULL
    format_storage = (*java, "kafka.tools.StorageTool", "format", "-t", CLUSTER_ID, "-c", str(properties))
    subprocess.run(format_storage, check=True, stdout=quiet, stderr=quiet, timeout=START_S_MAX)
    process = subprocess.Popen((*java, "kafka.Kafka", str(properties)), stdout=quiet, stderr=quiet)
    try:
        wait_for_port(port)
        yield ApacheKafka(f"127.0.0.1:{port}")
    finally:
        stop(process, STOP_S_MAX)
        shutil.rmtree(folder)


def wait_for_port(port: int) -> None:
    deadline = time.monotonic() + START_S_MAX
    while time.monotonic() < deadline:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1.0):
            return
        time.sleep(0.2)
    raise TimeoutError(f"Apache Kafka did not listen within {START_S_MAX:.0f} s")
