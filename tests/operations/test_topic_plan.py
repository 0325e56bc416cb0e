"""The plan of `topics apply`, decided from a file and a cluster's topics."""

import pytest

from headrace.operations.topic_plan import Action, ExistingTopic, PlanError, WantedTopic, parse_topics, plan


def existing(name: str = "chat", partitions: int = 2, configs: dict[str, str] | None = None) -> ExistingTopic:
    return ExistingTopic(name=name, partitions=partitions, replication_factor=1, configs=configs or {})


def steps(wanted: list[WantedTopic], present: list[ExistingTopic], *, prune: bool = False) -> list[tuple[str, ...]]:
    return [
        (str(step.action), step.topic, step.what, step.before, step.after)
        for step in plan(wanted, present, prune=prune)
    ]


@pytest.mark.parametrize("wrapped", [True, False])
def test_a_file_is_a_list_or_a_table_with_one(wrapped: bool) -> None:
    topics = [{"name": "chat", "partitions": 2, "replication_factor": 1}, {"name": "bare"}]
    assert parse_topics({"topics": topics} if wrapped else topics) == [
        WantedTopic(name="chat", partitions=2, replication_factor=1),
        WantedTopic(name="bare"),
    ]


def test_config_values_become_texts_and_nested_tables_names() -> None:
    configs = {"retention": {"ms": 5}, "preallocate": True, "cleanup.policy": ["compact", "delete"], "x.y": "z"}
    assert parse_topics([{"name": "t", "configs": configs}])[0].configs == {
        "retention.ms": "5",
        "preallocate": "true",
        "cleanup.policy": "compact,delete",
        "x.y": "z",
    }


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ("text", "must be a list of topics"),
        ({"topic": []}, 'one list named "topics", not "topic"'),
        ({"topics": {}}, "must be a list"),
        (["chat"], "topic 1 must be a table"),
        ([{"partitions": 2}], "topic 1 has no name: it may have name, partitions"),
        ([{"name": "a"}, {"name": "a"}], 'topic "a" is in the file twice'),
        ([{"name": "a", "partitions": 0}], "partitions must be a whole number above 0"),
        ([{"name": "a", "partitions": True}], "partitions must be a whole number above 0"),
        ([{"name": "a", "partitions": "2"}], "partitions must be a whole number above 0"),
        ([{"name": "a", "replicas": 2}], 'topic "a" has "replicas": it may have name, partitions'),
        ([{"name": "a", "configs": []}], "configs must be a table"),
        ([{"name": "a", "configs": {"b": None}}], 'config "b" must be a string'),
    ],
)
def test_a_file_that_is_not_topics_is_refused(document: object, message: str) -> None:
    with pytest.raises(PlanError, match=message):
        parse_topics(document)


def test_nothing_to_do() -> None:
    assert steps([WantedTopic(name="chat", partitions=2)], [existing()]) == []


def test_a_missing_topic_is_created_whole() -> None:
    wanted = WantedTopic(name="new", partitions=3, configs={"retention.ms": "5"})
    (step,) = plan([wanted], [existing()], prune=False)
    assert step.action is Action.CREATE
    assert step.wanted is wanted
    assert step.after == "partitions=3, replication_factor=default, retention.ms=5"


def test_partitions_grow_and_never_shrink() -> None:
    assert steps([WantedTopic(name="chat", partitions=5)], [existing()]) == [
        ("add partitions", "chat", "partitions", "2", "5")
    ]
    assert steps([WantedTopic(name="chat", partitions=1)], [existing()]) == [
        ("refuse", "chat", "partitions can only grow", "2", "1")
    ]


def test_another_replication_factor_is_refused() -> None:
    assert steps([WantedTopic(name="chat", replication_factor=3)], [existing()])[0][0] == "refuse"


def test_configs_are_set_where_they_differ() -> None:
    wanted = WantedTopic(name="chat", configs={"retention.ms": "5", "segment.ms": "7", "cleanup.policy": "a, b"})
    present = existing(configs={"retention.ms": "4", "segment.ms": "7", "flush.ms": "9"})
    assert steps([wanted], [present]) == [
        ("set config", "chat", "cleanup.policy", "default", "a, b"),
        ("set config", "chat", "retention.ms", "4", "5"),
    ]


def test_values_that_mean_the_same_are_not_changed() -> None:
    wanted = WantedTopic(name="chat", configs={"cleanup.policy": "compact, delete", "preallocate": "TRUE"})
    present = existing(configs={"cleanup.policy": "compact,delete", "preallocate": "true"})
    assert steps([wanted], [present]) == []


def test_only_prune_takes_away() -> None:
    internal = ExistingTopic(name="__offsets", partitions=1, replication_factor=1, configs={}, internal=True)
    present = [existing(configs={"flush.ms": "9"}), existing("old"), internal]
    assert steps([WantedTopic(name="chat")], present) == []
    assert steps([WantedTopic(name="chat")], present, prune=True) == [
        ("reset config", "chat", "flush.ms", "9", "default"),
        ("delete", "old", "topic", "2 partitions", "gone"),
    ]
