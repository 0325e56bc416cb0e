"""The tables hold what Kafka has, and refuse what it refuses, with a message that helps."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.model.configs import BROKER_CONFIGS, TOPIC_CONFIGS, ConfigError, ConfigKey, ConfigType
from headrace.model.configs.definition import ConfigValue, parse_value, render_value

KAFKA_TOPIC_CONFIGS = {
    "cleanup.policy": "delete",
    "compression.gzip.level": "-1",
    "compression.lz4.level": "9",
    "compression.type": "producer",
    "compression.zstd.level": "3",
    "delete.retention.ms": "86400000",
    "file.delete.delay.ms": "60000",
    "flush.messages": "9223372036854775807",
    "flush.ms": "9223372036854775807",
    "follower.replication.throttled.replicas": "",
    "index.interval.bytes": "4096",
    "leader.replication.throttled.replicas": "",
    "local.retention.bytes": "-2",
    "local.retention.ms": "-2",
    "max.compaction.lag.ms": "9223372036854775807",
    "max.message.bytes": "1048588",
    "message.timestamp.after.max.ms": "3600000",
    "message.timestamp.before.max.ms": "9223372036854775807",
    "message.timestamp.type": "CreateTime",
    "min.cleanable.dirty.ratio": "0.5",
    "min.compaction.lag.ms": "0",
    "min.insync.replicas": "1",
    "preallocate": "false",
    "remote.log.copy.disable": "false",
    "remote.log.delete.on.disable": "false",
    "remote.storage.enable": "false",
    "retention.bytes": "-1",
    "retention.ms": "604800000",
    "segment.bytes": "1073741824",
    "segment.index.bytes": "10485760",
    "segment.jitter.ms": "0",
    "segment.ms": "604800000",
    "unclean.leader.election.enable": "false",
}
ALL_KEYS = [*TOPIC_CONFIGS, *BROKER_CONFIGS]


def test_topic_table_is_kafkas_with_its_defaults() -> None:
    ours = {key.name: render_value(key.default) for key in TOPIC_CONFIGS if not key.name.startswith("headrace.")}
    assert ours == KAFKA_TOPIC_CONFIGS


@pytest.mark.parametrize("key", ALL_KEYS, ids=lambda key: key.name)
def test_every_default_is_a_value_its_own_row_accepts(key: ConfigKey) -> None:
    text = render_value(key.default)
    if text is not None and not (text == "" and key.choices):
        assert parse_value(key, text) == key.default
    assert key.documentation.endswith(".")


def test_counterparts_exist_and_have_the_same_default() -> None:
    for key in TOPIC_CONFIGS:
        defaults = []
        for counterpart in key.counterparts:
            default = BROKER_CONFIGS.lookup(counterpart.name).default
            if default is not None:
                defaults.append(default * counterpart.factor if isinstance(default, int) else default)
        if key.counterparts:
            assert next(iter(defaults), None) == key.default, key.name


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        ("retention.ms", "abc", "whole number from -1"),
        ("retention.ms", "-2", "whole number from -1"),
        ("retention.ms", "1_000", "whole number"),
        ("retention.ms", "٣", "whole number"),
        ("retention.ms", "9223372036854775808", "to 9223372036854775807"),
        ("retention.ms", "", "whole number"),
        ("segment.bytes", "13", "from 14"),
        ("segment.bytes", "2147483648", "to 2147483647"),
        ("min.cleanable.dirty.ratio", "1.5", "number from 0 to 1"),
        ("min.cleanable.dirty.ratio", "nan", "number from 0 to 1"),
        ("cleanup.policy", "shrink", "list of compact, delete"),
        ("cleanup.policy", "", "list of compact, delete"),
        ("cleanup.policy", "delete,,compact", "empty item"),
        ("compression.type", "brotli", "one of uncompressed"),
        ("message.timestamp.type", "createtime", "one of CreateTime"),
        ("preallocate", "yes", "true or false"),
        ("leader.replication.throttled.replicas", "a:1", "partition:broker"),
        ("compression.type", "x" * 40_000, "40000 characters"),
        ("compression.type", "gz\x00ip", "null character"),
    ],
)
def test_wrong_topic_values_are_refused_with_a_reason(name: str, text: str, reason: str) -> None:
    with pytest.raises(ConfigError, match=reason) as refused:
        TOPIC_CONFIGS.parse(name, text, subject='topic "orders"')
    assert f'config "{name}" for topic "orders"' in str(refused.value)
    assert len(str(refused.value)) < 300


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("retention.ms", " 42 ", 42),
        ("retention.ms", "+7", 7),
        ("cleanup.policy", "compact, delete", ("compact", "delete")),
        ("preallocate", "TRUE", True),
        ("min.cleanable.dirty.ratio", ".25", 0.25),
        ("leader.replication.throttled.replicas", "*", ("*",)),
        ("leader.replication.throttled.replicas", "0:1,1:2", ("0:1", "1:2")),
    ],
)
def test_right_topic_values_are_parsed(name: str, text: str, value: ConfigValue) -> None:
    assert TOPIC_CONFIGS.parse(name, text) == value


def test_unknown_name_gets_the_nearest_right_one() -> None:
    with pytest.raises(ConfigError) as refused:
        TOPIC_CONFIGS.parse("retention.minutes", "5", subject='topic "orders"')
    assert str(refused.value) == (
        'unknown config "retention.minutes" for topic "orders": did you mean "retention.ms"? '
        "(headrace configs list --topic shows all)"
    )


@pytest.mark.parametrize(
    ("table", "name", "nearest"),
    [
        (TOPIC_CONFIGS, "log.retention.ms", "retention.ms"),
        (TOPIC_CONFIGS, "message.max.bytes", "max.message.bytes"),
        (TOPIC_CONFIGS, "cleanup.polcy", "cleanup.policy"),
        (BROKER_CONFIGS, "retention.ms", "log.retention.ms"),
        (BROKER_CONFIGS, "listener", "listeners"),
        (BROKER_CONFIGS, "headrace.metric.listen", "headrace.metrics.listen"),
    ],
)
def test_suggestions(table: object, name: str, nearest: str) -> None:
    assert table in (TOPIC_CONFIGS, BROKER_CONFIGS)
    chosen = TOPIC_CONFIGS if table is TOPIC_CONFIGS else BROKER_CONFIGS
    with pytest.raises(ConfigError, match=f'did you mean "{nearest}"'):
        chosen.lookup(name)


def test_a_name_like_no_other_gets_no_suggestion_and_no_control_characters() -> None:
    with pytest.raises(ConfigError) as refused:
        TOPIC_CONFIGS.lookup("\x1b[31mzzzzqqqq\n" * 50)
    message = str(refused.value)
    assert "did you mean" not in message
    assert "\x1b" not in message
    assert "\n" not in message
    assert len(message) < 300


def test_lists_are_appended_to_and_subtracted_from() -> None:
    assert TOPIC_CONFIGS.appended("cleanup.policy", None, "compact") == "delete,compact"
    assert TOPIC_CONFIGS.appended("cleanup.policy", "compact", "compact,delete") == "compact,delete"
    assert TOPIC_CONFIGS.subtracted("cleanup.policy", "compact,delete", "delete") == "compact"
    with pytest.raises(ConfigError, match="not a list"):
        TOPIC_CONFIGS.appended("retention.ms", "5", "6")


@given(st.sampled_from(ALL_KEYS), st.text(max_size=40))
def test_any_text_parses_to_a_value_that_renders_and_parses_again_or_is_refused(key: ConfigKey, text: str) -> None:
    try:
        value = parse_value(key, text)
    except ValueError:
        return
    rendered = render_value(value)
    assert rendered is not None
    if key.type is not ConfigType.DOUBLE:
        assert parse_value(key, rendered) == value
