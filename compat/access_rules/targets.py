"""Two brokers with the same users and topics: Headrace, and Apache Kafka with its StandardAuthorizer."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any

from compat.access_rules.pairs import NAMES, TOPICS, USERS, RandomRequest, error_codes
from compat.kafka import apache_kafka, wait_for_port
from headrace.bench.brokers import free_ports
from headrace.broker.api.registry import SERVED
from headrace.client import Admin, NewTopic
from headrace.core.access.acls import AccessRule, PatternType, Permission, RuleFilter
from headrace.model.access import AclResourceType, Operation
from headrace.model.configs.access import STANDARD_AUTHORIZER
from headrace.testing import EmbeddedBroker
from headrace.wire.apis import ApiKey
from headrace.wire.messages import find_coordinator, init_producer_id
from tests.security.access_requests import CASES, TIMEOUT_MS
from tests.security.raw import Raw

ADMIN = "admin"
JAAS = "org.apache.kafka.common.security.plain.PlainLoginModule required " + " ".join(
    f'user_{name}="{name}-secret"' for name in (ADMIN, *USERS)
)
COMMON = {
    "authorizer.class.name": STANDARD_AUTHORIZER,
    "auto.create.topics.enable": "true",
    "delegation.token.secret.key": "a-key-of-both-brokers",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
}
VISIBLE_S_MAX = 30.0
PAUSE_S = 0.02
EVERY_RULE = RuleFilter(AclResourceType.ANY, None, PatternType.ANY, None, None, Operation.ANY, Permission.ANY)
NEWEST = {api.key: api.max_version for api in SERVED}
COMMIT = next(case for case in CASES if case.key == ApiKey.OFFSET_COMMIT)


class Target:
    """A broker, a connection of each user to it, and its administrator."""

    def __init__(self, name: str, address: str, stack: ExitStack) -> None:
        self.name = name
        self._connections = {user: stack.enter_context(_logged_in(address, user)) for user in USERS}
        self._admin_connection = stack.enter_context(_logged_in(address, ADMIN))
        self._admin = stack.enter_context(
            Admin(
                address,
                security_protocol="SASL_PLAINTEXT",
                sasl_mechanism="PLAIN",
                sasl_username=ADMIN,
                sasl_password=f"{ADMIN}-secret",
            )
        )

    def prepare(self) -> None:
        """Create the topics and have the coordinators loaded."""
        self._admin.create_topics([NewTopic(name) for name in TOPICS])
        for kind in (0, 1):
            wanted = find_coordinator.FindCoordinatorRequest(key_type=kind, coordinator_keys=NAMES)
            self._until(partial(self._succeeds, ApiKey.FIND_COORDINATOR, 4, wanted))

    def _populate(self) -> None:
        """Commit offsets of a group, and begin a producer, of each name."""
        for name in TOPICS:
            producer = init_producer_id.InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=TIMEOUT_MS)
            for topic in TOPICS:
                commit = COMMIT._replace(fields={**COMMIT.fields, "group_id": name}).request(topic, COMMIT.version)
                self._until(partial(self._succeeds, COMMIT.key, COMMIT.version, commit))
            self._until(partial(self._succeeds, ApiKey.INIT_PRODUCER_ID, 4, producer))

    def _succeeds(self, key: ApiKey, version: int, request: object) -> bool:
        return not any(error_codes(self._admin_connection.ask(key, version, request)))

    def replace_rules(self, rules: Sequence[AccessRule]) -> None:
        """Delete all rules and create these, and wait until the broker decides by them."""
        self._admin.delete_access_rules(EVERY_RULE)
        self._until(lambda: not self._admin.access_rules(EVERY_RULE))
        outcomes = self._admin.create_access_rules(rules)
        assert not any(outcome.error for outcome in outcomes.values()), outcomes
        self._until(lambda: set(self._admin.access_rules(EVERY_RULE)) == set(rules))
        self._populate()

    def ask(self, wanted: RandomRequest) -> Any:
        key = wanted.case.key
        version = wanted.case.version if wanted.case.version >= 0 else NEWEST[key]
        return self._connections[wanted.user].ask(key, version, wanted.case.request(wanted.name, version))

    def _until(self, reached: Callable[[], bool]) -> None:
        deadline = time.monotonic() + VISIBLE_S_MAX
        while not reached():
            assert time.monotonic() < deadline, f"{self.name} does not get there"
            time.sleep(PAUSE_S)


@contextmanager
def _logged_in(address: str, user: str) -> Iterator[Raw]:
    with Raw(address) as connection:
        assert not connection.handshake("PLAIN").error_code
        assert not connection.authenticate(f"\0{user}\0{user}-secret".encode()).error_code
        yield connection


@contextmanager
def headrace() -> Iterator[Target]:
    configs = {
        **COMMON,
        "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
        "sasl.enabled.mechanisms": "PLAIN",
        "sasl.jaas.config": f"{JAAS};",
        "super.users": f"User:{ADMIN}",
    }
    with ExitStack() as stack:
        broker = stack.enter_context(EmbeddedBroker(process=True, config=configs))
        yield Target("Headrace", broker.bootstrap_servers, stack)


@contextmanager
def kafka() -> Iterator[Target]:
    (port,) = free_ports(1)
    settings = {
        **COMMON,
        "listeners": "PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller},"
        f"SASL_PLAINTEXT://127.0.0.1:{port}",
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT",
        "inter.broker.listener.name": "PLAINTEXT",
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.sasl_plaintext.plain.sasl.jaas.config": f"{JAAS};",
        # The node itself connects without a login.
        "super.users": f"User:{ADMIN};User:ANONYMOUS",
    }
    with ExitStack() as stack:
        stack.enter_context(apache_kafka(settings))
        wait_for_port(port)
        yield Target("Apache Kafka", f"127.0.0.1:{port}", stack)
