from dataclasses import fields
from typing import Any, get_type_hints

import pytest

from headrace.client.config import (
    AdminConfig,
    ClientConfig,
    ConsumerConfig,
    ProducerConfig,
    resolve_config,
)
from headrace.client.config_options import AdminOptions, ConsumerOptions, ProducerOptions
from headrace.client.errors import InvalidArgument
from headrace.client.foreign_names import HINTS


@pytest.mark.parametrize(
    ("config", "options"),
    [(AdminConfig, AdminOptions), (ProducerConfig, ProducerOptions), (ConsumerConfig, ConsumerOptions)],
)
def test_the_keywords_are_the_fields(config: type[ClientConfig], options: type) -> None:
    types = get_type_hints(config)
    own = {"bootstrap_servers", "value_deserializer"}  # have parameters of their own
    names = {field.name for field in fields(config)} - own
    aliases = {alias.replace(".", "_") for alias in config.KAFKA_NAMES}
    known = get_type_hints(options)
    assert {name: types[name] for name in names} == {name: known[name] for name in known.keys() - aliases}


def test_kafka_names_and_texts() -> None:
    config = ProducerConfig.from_names(
        {
            "bootstrap.servers": "a:1,b:2",
            "compression.type": "zstd",
            "enable.idempotence": "false",
            "linger.ms": "7.5",
            "batch.size": "1000",
            "acks": "1",
            "client_id": "me",
        }
    )
    expected = ProducerConfig(
        bootstrap_servers="a:1,b:2",
        compression="zstd",
        idempotent=False,
        linger_ms=7.5,
        batch_size=1000,
        acks=1,
        client_id="me",
    )
    assert config == expected
    assert ProducerConfig.from_names({"compression_type": "gzip", "enable_idempotence": True}) == ProducerConfig(
        compression="gzip", idempotent=True
    )
    confluent = {"security.protocol": "SASL_SSL", "sasl.mechanisms": "SCRAM-SHA-512"}
    assert ConsumerConfig.from_names(confluent).sasl_mechanism == "SCRAM-SHA-512"
    consumer = ConsumerConfig.from_names(
        {"group.id": "g", "partition.assignment.strategy": "range, roundrobin", "enable.auto.commit": "true"}
    )
    assert consumer.assignors() == ("range", "roundrobin")


def test_keywords_go_over_the_config() -> None:
    given = ConsumerConfig(group_id="g", client_id="one")
    assert resolve_config(ConsumerConfig, given, None, {"client_id": "two"}) == ConsumerConfig(
        group_id="g", client_id="two"
    )
    named = resolve_config(ConsumerConfig, {"group.id": "g"}, "a:1", {"client_id": "two"})
    assert named == ConsumerConfig(group_id="g", client_id="two", bootstrap_servers="a:1")


@pytest.mark.parametrize(
    ("kind", "names", "match"),
    [
        (ConsumerConfig, {"group.idd": "g"}, r"unknown setting 'group.idd': did you mean 'group.id'\?"),
        (ConsumerConfig, {"grup_id": "g"}, r"did you mean 'group_id'\?"),
        (ConsumerConfig, {"GROUP_ID": "g"}, r"did you mean 'group_id'\?"),
        (
            ConsumerConfig,
            {"nonsense": "g"},
            "unknown setting 'nonsense': ConsumerConfig in headrace.client.config lists all",
        ),
        (ProducerConfig, {"servers": "a:1"}, "unknown setting 'servers': it is bootstrap_servers here"),
        (AdminConfig, {"brokers": "a:1"}, "it is bootstrap_servers here"),
        (ProducerConfig, {"metadata.broker.list": "a:1"}, "it is bootstrap_servers here"),
        (ConsumerConfig, {7: "g"}, "is a string, not 7"),
        (ConsumerConfig, {"group.id": "g", "group_id": "h"}, "given twice"),
        (ConsumerConfig, {"max.poll.records": "many"}, "cannot be 'many'"),
        (ConsumerConfig, {"enable.auto.commit": "perhaps"}, "cannot be 'perhaps'"),
        (ConsumerConfig, {"isolation.level": "serializable"}, "read_committed, not 'serializable'"),
        (ConsumerConfig, {"heartbeat_interval_ms": 50_000}, "below session_timeout_ms"),
        (ConsumerConfig, {"partition_assignment_strategy": "random"}, "roundrobin"),
        (ConsumerConfig, {"request_timeout_ms": 0}, "above zero"),
        (ConsumerConfig, {"request_timeout_ms": None}, "is a whole number, not None"),
        (ConsumerConfig, {"sasl_password": b"hush"}, "sasl_password is text or None, not bytes"),
        (ConsumerConfig, {"group_id": 5}, "group_id is text or None, not 5"),
        (ConsumerConfig, {"bootstrap_servers": 5}, "is text or several texts, not 5"),
        (ConsumerConfig, {"enable_auto_commit": 1}, "is True or False, not 1"),
        (ConsumerConfig, {"consumer_timeout_ms": -1}, "must not be negative"),
        (ConsumerConfig, {"value_deserializer": 5}, "msgpack or a function or None, not 5"),
        (ProducerConfig, {"batch_size": 1.5}, "is a whole number, not 1.5"),
        (ProducerConfig, {"batch_size": True}, "is a whole number, not True"),
        (ProducerConfig, {"linger_ms": -1}, "must not be negative"),
        (ProducerConfig, {"partitioner": 5}, "round-robin or a function, not 5"),
        (AdminConfig, {"timeout_ms": 0}, "above zero"),
        (ConsumerConfig, {"security.protocol": "TLS"}, "SASL_SSL"),
        (ConsumerConfig, {"sasl.username": "me"}, "set that to SASL_PLAINTEXT or SASL_SSL, or leave sasl_username out"),
        (ConsumerConfig, {"security.protocol": "SSL", "sasl.password": "x"}, "with security_protocol 'SSL'"),
        (ConsumerConfig, {"ssl.ca.location": "x.pem"}, "set that to SSL or SASL_SSL"),
        (ConsumerConfig, {"ssl_cafile": "x.pem"}, "unknown setting 'ssl_cafile': it is ssl_ca_location here"),
        (ProducerConfig, {"ssl.truststore.location": "x.jks"}, "it is ssl_ca_location here, a PEM file"),
        (ProducerConfig, {"retries": 3}, "until delivery_timeout_ms is over"),
        (ProducerConfig, {"queue.buffering.max.ms": 3}, "it is linger_ms here"),
        (ProducerConfig, {"acks": 1, "transactional.id": "t"}, 'needs acks="all"'),
        (ProducerConfig, {"transactional.id": "t", "enable.idempotence": False}, "is always idempotent"),
        (ProducerConfig, {"transactional_id": ""}, "must not be empty"),
        (ProducerConfig, {"max_in_flight_requests_per_connection": 6}, "at most five"),
        (ProducerConfig, {"partitioner": "sticky"}, "round-robin"),
        (ProducerConfig, {"compression": "zip"}, "unknown compression 'zip'"),
        (ProducerConfig, {"batch_size": "0"}, "above zero"),
    ],
)
def test_what_is_wrong_is_said(kind: type[ClientConfig], names: dict[Any, Any], match: str) -> None:
    with pytest.raises(InvalidArgument, match=match):
        kind.from_names(names)


def test_a_config_of_another_kind() -> None:
    with pytest.raises(InvalidArgument, match="a ConsumerConfig or a dict"):
        resolve_config(ConsumerConfig, ProducerConfig(), None, {})


@pytest.mark.parametrize("name", sorted(HINTS))
def test_names_of_other_clients_are_not_ours(name: str) -> None:
    """A hint that names a setting names one that there is."""
    kinds = (ClientConfig, AdminConfig, ProducerConfig, ConsumerConfig)
    ours = {field.name for kind in kinds for field in fields(kind)}
    assert name not in ours
    named = {word.strip(",:") for word in HINTS[name].split() if "_" in word and "(" not in word}
    assert named - {"timeout_ms"} <= ours
