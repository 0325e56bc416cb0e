"""Apache Kafka for comparison: downloaded from Maven into the cache folder, run as combined nodes."""

import os
import shutil
import subprocess
import tempfile
import uuid
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from pathlib import Path

from headrace.bench import processes
from headrace.bench.brokers import SHARED_SETTINGS, BrokerProcess, free_ports
from headrace.bench.errors import ToolMissing
from tools.bench.maven import Artifact, fetched_jars

KAFKA_VERSION = "4.3.1"
KAFKA_NAME = f"kafka {KAFKA_VERSION}"
LOGGING_VERSION = "2.24.3"
FORMAT_SECONDS_MAX = 60
HEAP = ("-Xms1G", "-Xmx1G", "-XX:+UseG1GC")

_ARTIFACTS = (
    Artifact("org.apache.kafka", "kafka_2.13", KAFKA_VERSION),
    Artifact("org.apache.kafka", "kafka-tools", KAFKA_VERSION),
    Artifact("org.apache.logging.log4j", "log4j-slf4j-impl", LOGGING_VERSION),
)


def kafka_libraries() -> Path:
    """Return the folder with Kafka's jars, downloaded on first use; ToolMissing names a missing tool."""
    if shutil.which("java") is None:
        raise ToolMissing("Apache Kafka needs java, which is not installed")
    return fetched_jars(f"kafka-{KAFKA_VERSION}", _ARTIFACTS, what="Apache Kafka")


class KafkaBroker(BrokerProcess):
    def __init__(
        self,
        folder: Path,
        settings: Mapping[str, str] | None = None,
        *,
        cluster_id: str | None = None,
        controller_port: int | None = None,
    ) -> None:
        """A node of a cluster has the id of the cluster, its own port, and `controller.quorum.voters` in `settings`."""
        super().__init__(KAFKA_NAME, folder)
        self._libraries = kafka_libraries()
        self._properties = folder / "server.properties"
        (self._port,) = free_ports(1)
        if controller_port is None:
            (controller_port,) = free_ports(1)
            quorum = {"controller.quorum.bootstrap.servers": f"127.0.0.1:{controller_port}"}
        else:
            quorum = {}
        texts = {
            **_node_settings(self._port, controller_port, folder),
            **quorum,
            **SHARED_SETTINGS,
            **(settings or {}),
        }
        self._properties.write_text("".join(f"{name}={text}\n" for name, text in texts.items()))
        command = [*self._java(), "kafka.tools.StorageTool", "format", *(["--standalone"] if quorum else [])]
        command += ["-t", cluster_id or new_cluster_id(), "-c", str(self._properties)]
        processes.run(command, messages=self.messages, seconds_max=FORMAT_SECONDS_MAX)

    def _java(self, *options: str) -> list[str]:
        return ["java", *options, "-cp", str(self._libraries / "*")]

    def _spawn(self) -> subprocess.Popen[bytes]:
        command = [*self._java(*HEAP), "kafka.Kafka", str(self._properties)]
        return processes.start(command, messages=self.messages)

    def _find_address(self, process: subprocess.Popen[bytes]) -> str:
        return f"127.0.0.1:{self._port}"


def new_cluster_id() -> str:
    # The tool takes an id that starts with a hyphen as an option.
    return urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=").replace("-", "_")


def java_version() -> str:
    """Return the first line of `java -version`."""
    with tempfile.TemporaryDirectory() as folder:
        messages = Path(folder) / "messages"
        processes.run(["java", "-version"], messages=messages, seconds_max=FORMAT_SECONDS_MAX)
        return messages.read_text().splitlines()[0]


def _node_settings(port: int, controller_port: int, folder: Path) -> dict[str, str]:
    return {
        "process.roles": "broker,controller",
        "node.id": "1",
        "listeners": f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}",
        "advertised.listeners": f"PLAINTEXT://127.0.0.1:{port}",
        "controller.listener.names": "CONTROLLER",
        "log.dirs": os.fspath(folder / "data"),
        "offsets.topic.replication.factor": "1",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
        "share.coordinator.state.topic.replication.factor": "1",
        "share.coordinator.state.topic.min.isr": "1",
    }
