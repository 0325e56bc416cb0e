"""Types and names for editors: what completion shows, which keywords are known, and what type a value has.

The static half of these tests is mypy's, which reads this file: `assert_type` and the ignores that must not be unused.
"""

# mypy: warn-unused-ignores, disallow-any-generics, enable-error-code="arg-type, misc"

import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, assert_type, get_type_hints

import pytest

import headrace
import headrace.aio
import headrace.client
from headrace.client import ConsumerRecord, errors
from headrace.client.config import AdminConfig, ClientConfig, ConsumerConfig, ProducerConfig
from headrace.client.config_options import AdminOptions, ConsumerOptions, ProducerOptions
from headrace.client.errors import ClientError
from headrace.client.serializers import typed_json, typed_msgpack
from headrace.testing import EmbeddedBroker

WAIT_MS = 60_000


@dataclass
class Order:
    item: str
    count: int


def parse(value: bytes) -> Order:
    return Order(value.decode(), 1)


def test_completion_shows_what_there_is_to_use() -> None:
    shown = dir(headrace)
    assert {"Admin", "Consumer", "Producer", "aio", "__version__"} <= set(shown)
    kinds = {name for name, each in vars(errors).items() if isinstance(each, type) and issubclass(each, ClientError)}
    assert kinds <= set(shown)
    assert {"TYPE_CHECKING", "Any", "import_module"}.isdisjoint(shown)
    for name in shown:
        assert getattr(headrace, name) is not None
    assert {"TYPE_CHECKING", "Any", "import_module"}.isdisjoint(dir(headrace.client))
    assert headrace.BrokerError is errors.BrokerError
    with pytest.raises(AttributeError, match="has no attribute 'Konsumer'"):
        _ = headrace.Konsumer


@pytest.mark.process
def test_importing_the_package_does_not_import_the_client() -> None:
    program = (
        "import sys, headrace; dir(headrace); print('headrace.client' in sys.modules, 'TYPE_CHECKING' in dir(headrace))"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert ran.stdout == "False False\n"


@pytest.mark.parametrize(
    ("config", "options"),
    [(AdminConfig, AdminOptions), (ProducerConfig, ProducerOptions), (ConsumerConfig, ConsumerOptions)],
)
def test_keywords_that_work_are_in_the_types(config: type[ClientConfig], options: type) -> None:
    known = get_type_hints(options)
    for alias, name in config.KAFKA_NAMES.items():
        assert known[alias.replace(".", "_")] == known[name]


@pytest.mark.process
def test_a_producer_takes_kafkas_names() -> None:
    with headrace.Producer("127.0.0.1:1", compression_type="zstd", enable_idempotence=False) as producer:
        assert (producer.config.compression, producer.config.idempotent) == ("zstd", False)


@pytest.mark.process
def test_values_have_the_type_of_their_deserializer() -> None:
    with EmbeddedBroker() as broker:
        topic, servers = broker.create_topic("orders"), broker.bootstrap_servers
        with headrace.Producer(servers, value_serializer="json") as producer:
            producer.send(topic, {"item": "apple", "count": 3}).result(timeout_ms=WAIT_MS)
        with headrace.Consumer(
            topic, bootstrap_servers=servers, auto_offset_reset="earliest", value_deserializer=typed_json(Order)
        ) as consumer:
            record = next(consumer)
            assert_type(record.value, Order)
            assert record.value == Order("apple", 3)


if TYPE_CHECKING:

    def _types() -> None:
        assert_type(headrace.Consumer("t", value_deserializer=parse), headrace.Consumer[Order])
        assert_type(headrace.Consumer("t", value_deserializer=typed_msgpack(Order)), headrace.Consumer[Order])
        assert_type(headrace.Consumer("t").poll(timeout_ms=1), list[ConsumerRecord[Any]])
        assert_type(headrace.Consumer("t", value_deserializer="json"), headrace.Consumer[Any])
        deletes: headrace.Consumer[Order | None] = headrace.Consumer("t", value_deserializer=parse)
        assert_type(next(deletes).value, Order | None)
        headrace.Consumer("t").poll(1_000)  # type: ignore[call-arg]
        headrace.Producer().flush(timeout=10)  # type: ignore[call-arg]
        wrong: headrace.Consumer[str] = headrace.Consumer("t", value_deserializer=parse)  # type: ignore[arg-type]
        print(wrong)

    async def _awaited(plain: headrace.Consumer, of_orders: headrace.aio.Consumer[Order]) -> None:
        assert_type(next(plain).value, Any)
        assert_type((await of_orders.poll(timeout_ms=1))[0].value, Order)
        async for record in of_orders:
            assert_type(record.value, Order)
        await of_orders.poll(1_000)  # type: ignore[call-arg]
