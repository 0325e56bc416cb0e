"""The steps of docs/guide/migration-to-sasl-ssl.md, from PLAINTEXT to SASL_SSL: clients write throughout."""

import signal
import subprocess
import sys
import threading
import time
from contextlib import ExitStack

import pytest

from headrace.client import Admin, Consumer, NewScramUser, NewTopic, Producer, ScramMechanism
from headrace.client.errors import ClientError
from headrace.core.access.acls import AccessRule, PatternType, Permission
from headrace.model.access import AclResourceType, Operation
from headrace.operations.local_nodes import LocalNode, share_key
from headrace.ports.real.held_ports import held_port
from tests.security.certificates import Authority

pytestmark = [pytest.mark.process, pytest.mark.record_integrity]

NODES = (1, 2, 3)
SOON_S = 120
WAIT_MS = 1_000 * SOON_S
PLAINTEXT, BOTH, SECURED = range(3)
TOPIC = "orders"
SHA = ScramMechanism.SCRAM_SHA_512


class Broker:
    def __init__(self, cluster, node_id, ports):
        self.cluster = cluster
        self.node_id = node_id
        self.plaintext, self.secured, self.peers = (port.getsockname()[1] for port in ports)
        self.folder = cluster.folder / f"broker-{node_id}"
        self.process = None

    def config(self, step):
        listeners = {
            PLAINTEXT: f"PLAINTEXT://127.0.0.1:{self.plaintext}",
            BOTH: f"PLAINTEXT://127.0.0.1:{self.plaintext},SASL_SSL://127.0.0.1:{self.secured}",
            SECURED: f"SASL_SSL://127.0.0.1:{self.secured}",
        }[step]
        first = self.cluster.brokers[1]
        texts = {
            "node.id": self.node_id,
            "log.dirs": self.folder,
            "listeners": f"{listeners},CONTROLLER://127.0.0.1:{self.peers}",
            "headrace.controllers.target": 3,
            "headrace.host": f"broker-{self.node_id}",
            "headrace.preallocate.bytes": 0,
            "headrace.disk.free.min.bytes": 0,
            "headrace.log.level": "warning",
            "auto.create.topics.enable": "false",
        }
        if self is not first:
            texts["controller.quorum.bootstrap.servers"] = f"127.0.0.1:{first.peers}"
        if step != PLAINTEXT:
            texts |= {
                "ssl.keystore.location": self.cluster.authority.broker,
                "sasl.enabled.mechanisms": "SCRAM-SHA-512",
                "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
                "super.users": "User:admin;User:ANONYMOUS" if step == BOTH else "User:admin",
            }
        return "".join(f"{name}={text}\n" for name, text in texts.items())

    def start(self, step):
        file = self.cluster.folder / f"broker-{self.node_id}.properties"
        file.write_text(self.config(step))
        self.process = subprocess.Popen(
            [sys.executable, "-m", "headrace", "broker", "--config", str(file)], stdout=subprocess.PIPE, text=True
        )

    def await_ready(self):
        assert self.process.stdout.readline().startswith("headrace listening on")

    def stop(self):
        if self.process is not None:
            self.process.send_signal(signal.SIGTERM)
            self.process.wait(SOON_S)
            self.process.stdout.close()


class Cluster:
    def __init__(self, folder, stack):
        self.folder = folder
        self.authority = Authority(folder / "certs")
        self.brokers = {}
        for node_id in NODES:
            ports = [stack.enter_context(held_port()) for _ in range(3)]
            self.brokers[node_id] = Broker(self, node_id, ports)
        share_key(
            [LocalNode(each.node_id, each.plaintext, each.peers, str(each.folder)) for each in self.brokers.values()]
        )
        stack.callback(self.stop)
        for each in self.brokers.values():
            each.start(PLAINTEXT)
        for each in self.brokers.values():
            each.await_ready()

    def stop(self):
        for each in self.brokers.values():
            each.stop()

    def plaintext(self):
        return {"bootstrap_servers": ",".join(f"127.0.0.1:{each.plaintext}" for each in self.brokers.values())}

    def secured(self, user):
        return {
            "bootstrap_servers": ",".join(f"127.0.0.1:{each.secured}" for each in self.brokers.values()),
            "security_protocol": "SASL_SSL",
            "ssl_ca_location": self.authority.ca,
            "sasl_mechanism": "SCRAM-SHA-512",
            "sasl_username": user,
            "sasl_password": f"{user}-secret",
        }

    def await_in_sync(self, settings):
        """Wait until every replica is in sync, as the guide says before the next broker is restarted."""
        deadline = time.monotonic() + SOON_S
        with Admin(config={**settings, "timeout_ms": WAIT_MS}) as admin:
            while True:
                (described,) = admin.topics([TOPIC])
                if not described.error and all(len(each.isr) == len(NODES) for each in described.partitions):
                    return
                assert time.monotonic() < deadline, described
                time.sleep(0.1)

    def restart_one_by_one(self, step, settings):
        for each in self.brokers.values():
            each.stop()
            each.start(step)
            each.await_ready()
            self.await_in_sync(settings)


class Writer:
    """A client that writes all the time; its application sees any error at the end."""

    def __init__(self, name, settings):
        self._name = name
        self._settings = settings
        self._ended = threading.Event()
        self.delivered = 0
        self.failures = []
        self._thread = threading.Thread(target=self._run, name=name)
        self._thread.start()

    def _run(self):
        try:
            with Producer(config={**self._settings, "delivery_timeout_ms": WAIT_MS}) as producer:
                while not self._ended.is_set():
                    producer.send(TOPIC, f"{self._name}-{self.delivered}".encode(), partition=0).result(
                        timeout_ms=WAIT_MS
                    )
                    self.delivered += 1
                    self._ended.wait(0.005)
        except Exception as error:
            self.failures.append(error)

    def await_progress(self):
        before, deadline = self.delivered, time.monotonic() + SOON_S
        while self.delivered < before + 20:
            assert not self.failures, self.failures
            assert time.monotonic() < deadline
            time.sleep(0.05)

    def end(self):
        self._ended.set()
        self._thread.join(SOON_S)
        assert not self._thread.is_alive()
        assert not self.failures, self.failures


def values(settings, count):
    with Consumer(
        config={**settings, "auto_offset_reset": "earliest", "consumer_timeout_ms": WAIT_MS}, group_id=None
    ) as consumer:
        consumer.assign([(TOPIC, 0)])
        found: list[bytes] = []
        deadline = time.monotonic() + SOON_S
        while len(found) < count:
            assert time.monotonic() < deadline, (len(found), count)
            found += [record.value for record in consumer.poll(timeout_ms=1_000)]
        return found


def test_clients_write_throughout_the_migration(tmp_path):
    with ExitStack() as stack:
        cluster = Cluster(tmp_path, stack)
        with Admin(config={**cluster.plaintext(), "timeout_ms": WAIT_MS}) as admin:
            outcome = admin.create_topics([NewTopic(TOPIC, partitions=1, replication_factor=3)])[TOPIC]
            assert not outcome.error, outcome
        cluster.await_in_sync(cluster.plaintext())
        old = Writer("old", cluster.plaintext())
        stack.callback(old._ended.set)
        old.await_progress()

        with Admin(config=cluster.plaintext()) as admin:  # 1. users
            users = [NewScramUser(name=name, password=f"{name}-secret", mechanism=SHA) for name in ("admin", "shop")]
            assert not any(outcome.error for outcome in admin.alter_scram_users(users).values())
        cluster.restart_one_by_one(BOTH, cluster.plaintext())  # 2. a listener with SASL_SSL, and the authorizer
        old.await_progress()

        with Admin(config=cluster.secured("admin")) as admin:  # 3. rules, then clients one by one
            literal, allow = PatternType.LITERAL, Permission.ALLOW
            rules = [
                AccessRule(AclResourceType.TOPIC, TOPIC, literal, "User:shop", "*", each, allow)
                for each in (Operation.READ, Operation.WRITE)
            ]
            assert not any(outcome.error for outcome in admin.create_access_rules(rules).values())
        new = Writer("new", cluster.secured("shop"))
        stack.callback(new._ended.set)
        new.await_progress()
        old.await_progress()
        old.end()

        cluster.restart_one_by_one(SECURED, cluster.secured("admin"))  # 4. PLAINTEXT goes
        new.await_progress()
        new.end()
        found = values(cluster.secured("shop"), old.delivered + new.delivered)
        for writer, name in ((old, "old"), (new, "new")):
            mine = [value for value in found if value.startswith(name.encode())]
            assert mine == [f"{name}-{number}".encode() for number in range(writer.delivered)]
        with pytest.raises(ClientError), Admin(config={**cluster.plaintext(), "timeout_ms": 2_000}) as admin:
            admin.topics()
