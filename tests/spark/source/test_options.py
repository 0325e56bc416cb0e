"""Every option has a meaning, a default, or an error that names it; all without a broker or a session."""

import json
from pathlib import Path

import pytest
from pyspark.sql.types import StringType, StructField, StructType

from headrace.client.config import ConsumerConfig
from headrace.model.ids import TopicPartition
from headrace.spark import log_once
from headrace.spark.data_source import HeadraceDataSource
from headrace.spark.offset_vectors import CheckpointOffsetError, from_json
from headrace.spark.option_names import OWN_SOURCE_NAMES, SINK_NAMES, SOURCE_NAMES, OptionError
from headrace.spark.source_options import DEFAULT_COLUMNS, SourceOptions, latest_is_not_a_start, parse_source_options

GUIDE = Path(__file__).resolve().parents[3] / "docs" / "guide"
NEEDED = {"kafka.bootstrap.servers": "127.0.0.1:1", "subscribe": "orders"}


def parsed(**options: str) -> SourceOptions:
    return parse_source_options({**NEEDED, **{name.replace("__", "."): text for name, text in options.items()}})


def refused(options: dict[str, str]) -> str:
    with pytest.raises(OptionError) as caught:
        HeadraceDataSource({name.lower(): text for name, text in options.items()})
    return str(caught.value)


def test_defaults_are_the_connectors_but_for_the_isolation() -> None:
    options = parsed()
    assert options.starting is None
    assert options.ending is None
    assert options.data_loss == "fail"
    assert options.isolation == "read_committed"
    assert options.trigger_delay_ms_max == 15 * 60 * 1000
    assert (options.offsets_max, options.offsets_min, options.partitions_min, options.group) == (None,) * 4
    assert options.columns == ("key", "value", "topic", "partition", "offset", "timestamp", "timestampType")


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"subscibe": "t"}, 'unknown option "subscibe" of format "headrace": did you mean "subscribe"?'),
        ({"startingoffset": "latest"}, 'did you mean "startingOffsets"?'),
        ({"maxoffsetspertriger": "1"}, 'did you mean "maxOffsetsPerTrigger"?'),
        ({"kafka.bootstrap.servers": ""}, '"kafka.bootstrap.servers" is missing'),
        ({"bootstrap.servers": "elsewhere:1"}, "contradict each other"),
        ({"assign": '{"t": [0]}'}, "subscribe and assign are given"),
        ({"subscribe": " , "}, 'option "subscribe" names no topic'),
        ({"startingOffsets": "middle"}, 'option "startingOffsets" must be earliest, latest or JSON'),
        ({"startingOffsets": '{"t": 5}'}, 'option "startingOffsets" must be a JSON object'),
        ({"startingOffsets": '{"t": {"0": "five"}}'}, 'option "startingOffsets"'),
        ({"startingOffsets": '{"t": {"0": -3}}'}, 'option "startingOffsets"'),
        ({"startingOffsets": "{"}, 'option "startingOffsets"'),
        ({"endingOffsets": "earliest"}, 'option "endingOffsets" cannot be earliest'),
        ({"endingOffsets": '{"t": {"0": -2}}'}, 'option "endingOffsets" cannot be earliest'),
        ({"startingTimestamp": "yesterday"}, 'option "startingTimestamp" must be a whole number'),
        ({"startingOffsetsByTimestampStrategy": "guess"}, "must be one of error, latest"),
        ({"maxOffsetsPerTrigger": "0"}, 'option "maxOffsetsPerTrigger" must be a whole number of at least 1'),
        ({"maxOffsetsPerTrigger": "9223372036854775808"}, "of at least 1 and less than 2^63"),
        ({"maxOffsetsPerTrigger": "5", "minOffsetsPerTrigger": "6"}, "contradict each other"),
        ({"maxTriggerDelay": "soon"}, 'option "maxTriggerDelay" must be a duration'),
        ({"minPartitions": "-1"}, 'option "minPartitions"'),
        ({"includeHeaders": "yes"}, 'option "includeHeaders" must be true or false'),
        ({"failOnDataLoss": "true", "dataLossPolicy": "earliest"}, "contradict each other"),
        ({"failOnDataLoss": "false", "dataLossPolicy": "fail"}, "contradict each other"),
        ({"dataLossPolicy": "ignore"}, "must be one of fail, skip-and-report, earliest"),
        ({"columns": "key,values"}, 'option "columns" names "values"'),
        ({"columns": "key,key"}, "names a column twice"),
        ({"columns": "key", "includeHeaders": "true"}, "contradict each other"),
        ({"valueFormat": "xml"}, 'option "valueFormat" must be one of binary, string, json'),
        ({"valueFormat": "json"}, 'option "schema" is needed'),
        ({"schema": "a INT"}, 'options "schema" and "valueFormat" (binary) contradict each other'),
        (
            {"valueFormat": "json", "schema": "id INTT"},
            'option "schema" (id INTT) is not valid: field "id": unknown type',
        ),
        ({"valueFormat": "json", "schema": "id"}, 'field "id" has no type'),
        ({"valueFormat": "json", "schema": "a INTERVAL DAY TO SECOND"}, 'unknown type "interval"'),
        ({"onBadRecord": "drop"}, 'option "onBadRecord" needs option "valueFormat"'),
        ({"commitGroup": ""}, 'option "commitGroup" is empty'),
        ({"kafka.fetch.max.byte": "1"}, "did you mean 'fetch.max.bytes'?"),
        ({"kafka.isolation.level": "read_all"}, "kafka.isolation.level must be one of"),
        ({"kafka.auto.offset.reset": "latest"}, 'use "startingOffsets"'),
        ({"kafka.enable.auto.commit": "true"}, 'option "kafka.enable.auto.commit" cannot be set'),
        ({"kafka.ssl.truststore.type": "JKS"}, "only PEM files can be read"),
        (
            {"kafka.ssl.truststore.location": "/etc/kafka.client.truststore.jks"},
            "a Java key store: only PEM files can be",
        ),
        (
            {"kafka.ssl.keystore.location": "me.P12"},
            'option "kafka.ssl.keystore.location" is "me.P12", a Java key store',
        ),
        ({"kafka.sasl.jaas.config": "com.example.Other required;"}, 'option "kafka.sasl.jaas.config" is supported'),
        ({"kafka.sasl.kerberos.service.name": "kafka"}, "sasl.kerberos.service.name"),
        ({"topic": "t"}, 'option "topic" is for writing and "subscribe" for reading: leave one of them out'),
        ({"kafka.fetch.max.byte": "1"}, 'option "kafka.fetch.max.byte" is not supported by this client'),
        ({"kafka.isolation.level": "read_all"}, 'option "kafka.isolation.level" is not supported by this client'),
        ({"kafka.sasl.kerberos.service.name": "kafka"}, 'option "kafka.sasl.kerberos.service.name" is not supported'),
        ({"kafka.ssl.engine.factory.class": "x"}, 'option "kafka.ssl.engine.factory.class" is not supported'),
        ({"kafka.security.protocol": "SASL"}, 'option "kafka.security.protocol" is not supported'),
        (
            {"kafka.bootstrap.servers": "a:1,b:x"},
            "option \"kafka.bootstrap.servers\" is not supported by this client: 'b:x' is",
        ),
        ({"kafka.sasl.username": "me"}, 'option "kafka.sasl.username" is not supported'),
        (
            {"kafka.ssl.truststore.location": "/ca.pem"},
            'option "kafka.ssl.truststore.location" is not supported by this client: '
            "kafka.ssl.truststore.location has no effect with kafka.security.protocol 'PLAINTEXT': "
            "set that to SSL or SASL_SSL, or leave kafka.ssl.truststore.location out",
        ),
        (
            {"kafka.ssl.ca.location": "/ca.pem"},
            'option "kafka.ssl.ca.location" is not supported by this client: kafka.ssl',
        ),
        (
            {"kafka.sasl.jaas.config": 'PlainLoginModule required username="me" password="p";'},
            'option "kafka.sasl.jaas.config" is not supported by this client: '
            "kafka.sasl.jaas.config has no effect with",
        ),
        (
            {"kafka.ssl.ca.location": "/a.pem", "kafka.ssl.truststore.location": "/b.pem"},
            'options "kafka.ssl.ca.location" and "kafka.ssl.truststore.location" contradict each other',
        ),
        ({"subscribe": "", "subscribePattern": "a"}, "subscribe and subscribePattern are given"),
    ],
)
def test_wrong_options_are_named(given: dict[str, str], words: str) -> None:
    assert words in refused({**NEEDED, **given})


@pytest.mark.parametrize("pattern", ["(?=a)b", r"(a)\1", "[a", "a{1,9999}", "(?i)orders"])
def test_expressions_that_could_hang_or_mean_something_else_are_refused(pattern: str) -> None:
    options = {"kafka.bootstrap.servers": "127.0.0.1:1", "subscribePattern": pattern}
    assert 'option "subscribePattern"' in refused(options)


def test_one_time_is_above_times_and_those_above_offsets() -> None:
    times = json.dumps({"orders": {"0": 5}})
    chosen = parsed(startingTimestamp="7", startingOffsetsByTimestamp=times, startingOffsets="earliest").starting
    assert (chosen.option, chosen.time_ms) == ("startingTimestamp", 7)
    chosen = parsed(startingOffsetsByTimestamp=times, startingOffsets="earliest").starting
    assert (chosen.option, chosen.offsets) == ("startingOffsetsByTimestamp", {TopicPartition("orders", 0): 5})


def test_a_batch_does_not_begin_at_the_end() -> None:
    for text in ("latest", '{"orders": {"0": -1}}'):
        with pytest.raises(OptionError, match='"startingOffsets" cannot be latest'):
            latest_is_not_a_start(parsed(startingOffsets=text).starting)


def test_security_settings_of_java_reach_the_client() -> None:
    jaas = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="me" password="a\\"b";'
    options = parsed(
        kafka__security__protocol="SASL_SSL",
        kafka__sasl__mechanism="PLAIN",
        kafka__sasl__jaas__config=jaas,
        kafka__ssl__truststore__location="ca.pem",
        kafka__ssl__truststore__type="PEM",
        kafka__ssl__endpoint__identification__algorithm="",
        kafka__group__id="billing",
    )
    config = ConsumerConfig.from_names(options.settings)
    assert (config.sasl_username, config.sasl_password) == ("me", 'a"b')
    assert (config.security_protocol, config.ssl_ca_location, config.ssl_check_hostname) == (
        "SASL_SSL",
        "ca.pem",
        False,
    )
    assert options.group == "billing"


def test_a_batch_read_says_which_options_are_for_streams(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_once, "_said", {})
    source = HeadraceDataSource({**NEEDED, "maxoffsetspertrigger": "5", "commitgroup": "g"})
    source.reader(StructType([StructField(name, StringType()) for name in DEFAULT_COLUMNS]))
    assert capsys.readouterr().err.splitlines() == [
        f'headrace: option "{name}" applies only to streams: leave it out of a batch read'
        for name in ("maxOffsetsPerTrigger", "commitGroup")
    ]


@pytest.mark.parametrize(
    "schema", ["id BIGINT, b ARRAY<INT>", "id: BIGINT", "id BIGINT NOT NULL COMMENT 'x', `a b` DATE"]
)
def test_schemas_as_spark_writes_them(schema: str) -> None:
    assert parsed(valueFormat="json", schema=schema).values.spark_type == f"STRUCT<{schema}>"


def test_the_guide_has_every_option() -> None:
    text = "".join((GUIDE / name).read_text() for name in ("spark.md", "spark-sink.md"))
    names = (*SOURCE_NAMES, *OWN_SOURCE_NAMES, *SINK_NAMES)
    assert [name for name in names if f"`{name}`" not in text] == []


def test_what_spark_adds_is_no_mistake() -> None:
    HeadraceDataSource({**NEEDED, "queryname": "q", "checkpointlocation": "c", "path": "p", "owner": "me"})


def test_a_foreign_checkpoint_is_distinguished_from_ours() -> None:
    with pytest.raises(CheckpointOffsetError, match="another query"):
        from_json({"rowsPerSecond": 5})
