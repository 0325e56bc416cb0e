"""Files, environment and command line: how they are read, which wins, and what a refusal says."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.model.configs import BROKER_CONFIGS, BrokerConfig, ConfigError, Listener
from headrace.model.configs.sources import (
    SOURCE_TEXT_LENGTH_MAX,
    Setting,
    merged,
    parse_assignments,
    parse_environment,
    parse_file,
    parse_properties,
    parse_toml,
)


def settings(text: str) -> list[tuple[str, str]]:
    return [(setting.name, setting.text) for setting in parse_properties(text, "p")]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a=b", [("a", "b")]),
        ("a = b ", [("a", "b ")]),
        ("a : b", [("a", "b")]),
        ("a b", [("a", "b")]),
        ("a", [("a", "")]),
        ("a==b", [("a", "=b")]),
        ("# a=b\n! c=d\n\n  \t\ne=f", [("e", "f")]),
        ("a=b\\\n   c\\\n d\ne=f", [("a", "bcd"), ("e", "f")]),
        ("a=b\\\\\nc=d", [("a", "b\\"), ("c", "d")]),
        ("a\\=b=c", [("a=b", "c")]),
        ("a\\ b=c", [("a b", "c")]),
        ("a=\\u00e9\\t\\q", [("a", "é\tq")]),
        ("a=\\ud83d\\ude00", [("a", "\U0001f600")]),
        ("a=b\r\nc=d\re=f", [("a", "b"), ("c", "d"), ("e", "f")]),
        ("a=b\\", [("a", "b")]),
        ("\\\na=b", [("a", "b")]),
        ("a=http://x:1", [("a", "http://x:1")]),
    ],
)
def test_properties_are_read_as_java_reads_them(text: str, expected: list[tuple[str, str]]) -> None:
    assert settings(text) == expected


def test_properties_remember_their_line() -> None:
    places = [setting.place for setting in parse_properties("a=1\\\n2\n\n# c\nb=3", "s.properties")]
    assert places == ["s.properties:1", "s.properties:5"]


@given(st.text(max_size=200))
def test_properties_are_read_or_refused_whatever_they_hold(text: str) -> None:
    try:
        found = parse_properties(text, "p")
    except ConfigError:
        assert "\\u" in text
    else:
        assert len(found) <= len(text.splitlines()) + text.count("\r")


_PLAIN = st.text(st.characters(min_codepoint=33, max_codepoint=0x2FFF, exclude_characters="\\=:#!"), min_size=1)


@given(st.dictionaries(_PLAIN, _PLAIN, max_size=5))
def test_plain_settings_survive_a_properties_file(texts: dict[str, str]) -> None:
    written = "\n".join(f"{name}={text}" for name, text in texts.items())
    assert dict(settings(written)) == {name: text.lstrip(" \t\f") for name, text in texts.items()}


def test_toml_tables_join_with_dots() -> None:
    text = """\
"node.id" = 3
listeners = ["A://x:1", "B://x:2"]
[log]
dirs = "x"
[log.retention]
ms = 5
[auto.create.topics]
enable = false
"""
    found = parse_toml(text, "h.toml")
    assert [(setting.name, setting.text) for setting in found] == [
        ("node.id", "3"),
        ("listeners", "A://x:1,B://x:2"),
        ("log.dirs", "x"),
        ("log.retention.ms", "5"),
        ("auto.create.topics.enable", "false"),
    ]
    assert [setting.place for setting in found] == [f"h.toml:{line}" for line in (1, 2, 4, 6, 8)]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a = 1\nb = [\nc", "h.toml:3: this is not TOML"),
        ("a = 2020-01-01", "must be a string, a number"),
        ("a = [[1]]", "must be a string, a number"),
        ("a" + ".a" * 20 + " = 1", "nested tables"),
        ("#" * (SOURCE_TEXT_LENGTH_MAX + 1), "characters, but at most"),
    ],
)
def test_toml_that_is_not_config_is_refused(text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        parse_toml(text, "h.toml")


def test_the_ending_of_the_name_chooses_the_format() -> None:
    assert parse_file("node.id=1", "a.toml") == [Setting("node.id", "1", "a.toml:1")]
    assert parse_file("node.id 1", "a.properties") == [Setting("node.id", "1", "a.properties:1")]


def test_environment_names_every_config_once() -> None:
    environment = {
        "HEADRACE_" + key.name.removeprefix("headrace.").replace(".", "_").upper(): "x" for key in BROKER_CONFIGS
    }
    assert len(environment) == len(BROKER_CONFIGS)
    names = {setting.name for setting in parse_environment({**environment, "PATH": "x", "HEADRACE_BOOTSTRAP": "x"})}
    assert names == {key.name for key in BROKER_CONFIGS}


def test_later_sources_win() -> None:
    texts = merged(
        parse_properties("node.id=1\nlog.dir=a\nnum.partitions=1", "f"),
        parse_environment({"HEADRACE_LOG_DIR": "b", "HEADRACE_NUM_PARTITIONS": "2"}),
        parse_assignments(["num.partitions=3"]),
    )
    assert texts == {"node.id": "1", "log.dir": "b", "num.partitions": "3"}


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (
            parse_properties("node.id=1\nlog.retention.hour=2", "server.properties"),
            'server.properties:2: unknown config "log.retention.hour": did you mean "log.retention.hours"? '
            "(headrace configs list --broker shows all)",
        ),
        (
            parse_environment({"HEADRACE_LOG_RETENTION_MSS": "2"}),
            "environment HEADRACE_LOG_RETENTION_MSS: unknown config",
        ),
        (parse_assignments(["node.id=x"]), '--set: config "node.id" is "x": must be a whole number from 0'),
    ],
)
def test_a_refusal_names_the_place(source: list[Setting], message: str) -> None:
    with pytest.raises(ConfigError) as refused:
        merged(source)
    assert str(refused.value).startswith(message)


def test_an_assignment_needs_a_name_and_an_equals_sign() -> None:
    for wrong in ("node.id", "=5", ""):
        with pytest.raises(ConfigError, match="--set name=value"):
            parse_assignments([wrong])


def test_a_usual_kafka_file_is_accepted() -> None:
    """The settings a stock single-node server.properties of Kafka 4 has, by name."""
    texts = merged(
        parse_properties(
            """
            process.roles=broker,controller
            node.id=1
            controller.quorum.bootstrap.servers=localhost:9093
            listeners=PLAINTEXT://:9092,CONTROLLER://:9093
            inter.broker.listener.name=PLAINTEXT
            advertised.listeners=PLAINTEXT://localhost:9092
            controller.listener.names=CONTROLLER
            listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL
            num.network.threads=3
            num.io.threads=8
            socket.send.buffer.bytes=102400
            socket.receive.buffer.bytes=102400
            socket.request.max.bytes=104857600
            log.dirs=/tmp/kraft-combined-logs
            num.partitions=1
            num.recovery.threads.per.data.dir=1
            offsets.topic.replication.factor=1
            share.coordinator.state.topic.replication.factor=1
            share.coordinator.state.topic.min.isr=1
            transaction.state.log.replication.factor=1
            transaction.state.log.min.isr=1
            log.retention.hours=168
            log.segment.bytes=1073741824
            log.retention.check.interval.ms=300000
            """,
            "server.properties",
        )
    )
    config = BrokerConfig.from_texts(texts)
    assert [listener.name for listener in config.listeners] == ["PLAINTEXT"]
    assert config.cluster.listener == Listener("CONTROLLER", "", 9093)
    assert config.cluster.peers == ()  # the only bootstrap server is this node
