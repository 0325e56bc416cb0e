"""Options are checked before anything is written, and every error names the option."""

import pickle
from collections.abc import Callable
from typing import Any

import pytest

from headrace.client.config import ProducerConfig
from headrace.spark.option_names import OptionError, check_names
from headrace.spark.sink.options import BATCH_BYTES_DEFAULT, parse_sink_options
from headrace.spark.sink.tables.options import parse_table_options
from headrace.wire.records.compression import Compression

SERVERS = {"kafka.bootstrap.servers": "127.0.0.1:9"}


def test_what_is_not_said_is_left_to_defaults() -> None:
    options = parse_sink_options(SERVERS)
    assert (options.topic, options.delivery, options.sink_name, options.idempotence_key) == (None, None, "sink", None)
    config = options.producer_config()
    assert (config.bootstrap_servers, config.acks, config.batch_size) == ("127.0.0.1:9", "all", BATCH_BYTES_DEFAULT)
    assert options.compression == Compression.NONE


def test_options_as_spark_gives_them() -> None:
    given = {
        "bootstrap.servers": "h:1,i:2",
        "topic": "t",
        "sinkname": "second",
        "idempotencekey": "nightly-7",
        "idempotencebatchid": "3",
        "kafka.compression.type": "zstd",
        "kafka.transaction.timeout.ms": "1800000",
        "kafka.security.protocol": "SASL_SSL",
        "kafka.sasl.username": "me",
        "checkpointlocation": "/x",
        "queryname": "q",
    }
    options = pickle.loads(pickle.dumps(parse_sink_options(given)))
    assert (options.topic, options.sink_name, options.idempotence_key, options.idempotence_batch_id) == (
        "t",
        "second",
        "nightly-7",
        3,
    )
    assert options.compression == Compression.ZSTD
    config = options.producer_config(transactional_id="x")
    assert (config.transaction_timeout_ms, config.transactional_id) == (1_800_000, "x")
    assert (options.admin_config().security_protocol, options.admin_config().sasl_username) == ("SASL_SSL", "me")


def test_a_setting_that_equals_the_default_of_the_client_is_kept() -> None:
    """The broker gives batch writers more time than the client gives transactions, unless the option says otherwise."""
    default = ProducerConfig().transaction_timeout_ms
    options = parse_sink_options({**SERVERS, "kafka.transaction.timeout.ms": str(default)})
    assert dict(options.client)["transaction_timeout_ms"] == default
    assert "transaction_timeout_ms" not in dict(parse_sink_options(SERVERS).client)


def test_what_the_kafka_connector_also_takes() -> None:
    options = parse_sink_options({**SERVERS, "topic": " t ", "includeheaders": "true"})
    assert options.topic == "t"


def test_fewer_acknowledgements_are_at_least_once() -> None:
    assert parse_sink_options({**SERVERS, "kafka.acks": "1"}).delivery == "at-least-once"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, 'option "kafka.bootstrap.servers" is missing'),
        ({**SERVERS, "bootstrap.servers": "other:1"}, "contradict each other"),
        ({**SERVERS, "topic": ""}, 'option "topic" is empty'),
        ({**SERVERS, "delivery": "twice"}, 'option "delivery" is one of exactly-once, at-least-once'),
        ({**SERVERS, "delivery": "at-least-once", "idempotencekey": "k"}, "leave one of the two out"),
        ({**SERVERS, "idempotencebatchid": "1"}, "set that too"),
        (
            {**SERVERS, "idempotencekey": "k", "idempotencebatchid": "-1"},
            'option "idempotenceBatchId" is a whole number',
        ),
        ({**SERVERS, "delivery": "exactly-once", "kafka.acks": "1"}, "writing exactly once needs kafka.acks=all"),
        ({**SERVERS, "idempotencekey": "k", "kafka.acks": "0"}, "writing exactly once needs kafka.acks=all"),
        ({**SERVERS, "delivery": "lanes", "lanes": "2"}, 'write_lanes needs the option "topic"'),
        ({**SERVERS, "delivery": "lanes", "topic": "t"}, "lanes are written by headrace.spark.write_lanes"),
        ({**SERVERS, "topic": "t", "lanes": "2"}, "lanes are written by headrace.spark.write_lanes"),
        ({**SERVERS, "delivery": "lanes", "topic": "t", "lanes": "0"}, "there are 1 to 1000 lanes, not '0'"),
        ({**SERVERS, "sinkname": "a#b"}, 'option "sinkName" has 1 to 100 letters'),
        ({**SERVERS, "idempotencekey": ""}, 'option "idempotenceKey" has 1 to 100 letters'),
        (
            {**SERVERS, "kafka.compresion.type": "lz4"},
            "unknown setting 'compresion.type': did you mean 'compression'",
        ),
        ({**SERVERS, "kafka.compression.type": "lzma"}, "\"kafka.compression.type\".* unknown compression 'lzma'"),
        ({**SERVERS, "kafka.transactional.id": "x"}, 'option "kafka.transactional.id" is not for a sink'),
        ({**SERVERS, "topic": "t", "startingoffsets": "latest"}, 'option "startingOffsets" is for reading: a write'),
        ({**SERVERS, "topic": "t", "commitgroup": "g"}, 'option "commitGroup" is for reading: a write'),
        ({**SERVERS, "topic": "t", "kafka.group.id": "g"}, 'option "kafka.group.id" is not supported by this client'),
        ({**SERVERS, "kafka.key.serializer": "x"}, 'option "kafka.key.serializer" cannot be set'),
        (
            {**SERVERS, "kafka.ssl.truststore.location": "ca.pem"},
            'option "kafka.ssl.truststore.location" is .* leave kafka.ssl.truststore.location out',
        ),
        ({**SERVERS, "kafka.batch.size": "0"}, "kafka.batch.size must be above zero"),
    ],
)
def test_a_wrong_option_says_what_to_do(given: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        parse_sink_options(given)


@pytest.mark.parametrize("check", [check_names, parse_table_options])
def test_options_of_an_earlier_release_are_refused_with_their_present_name(check: Callable[[Any], object]) -> None:
    """They are not ignored: without its batch id a write could repeat rows."""
    for name in ("idempotenceEpoch", "idempotenceepoch"):
        with pytest.raises(OptionError, match=r'"idempotenceEpoch" was renamed .* write "idempotenceBatchId"'):
            check({"path": "/x", "idempotenceKey": "k", name: "3"})
