"""Topics that a pipeline makes: as many partitions and the configs that its sinks say."""

from pathlib import Path

import pytest

from headrace.client import Admin, ConfigResource, ResourceType
from headrace.spark.pipelines.definition_reader import read_pipeline
from headrace.spark.pipelines.problems import DefinitionError
from headrace.spark.pipelines.topics import other_partitions, prepare_topics
from headrace.testing import EmbeddedBroker

pytestmark = pytest.mark.process

PIPELINE = """\
name: p
source: {topic: in, format: string}
sinks:
  - topic: out
    partitions: 5
    configs: {cleanup.policy: compact, retention.ms: 1000}
  - topic_from: value
    topics: [a, b]
    partitions: 2
  - {topic: plain}
"""


def write(folder: Path, text: str) -> Path:
    (folder / "pipeline.yml").write_text(text)
    return folder


def test_topics_are_made_as_their_sinks_say(tmp_path: Path) -> None:
    pipeline = read_pipeline(write(tmp_path, PIPELINE))
    with EmbeddedBroker(config={"num.partitions": "3"}) as broker, Admin(broker.bootstrap_servers) as admin:
        broker.create_topic("in")
        assert prepare_topics(admin, pipeline) == ["a", "b", "out", "plain"]
        counts = {each.name: len(each.partitions) for each in admin.topics(["out", "a", "b", "plain"])}
        assert counts == {"out": 5, "a": 2, "b": 2, "plain": 3}
        resource = ConfigResource(ResourceType.TOPIC, "out")
        configs = {entry.name: entry.value for entry in admin.describe_configs([resource])[resource]}
        assert (configs["cleanup.policy"], configs["retention.ms"]) == ("compact", "1000")
        assert prepare_topics(admin, pipeline) == []
        assert other_partitions(admin, pipeline) == []
        changed = read_pipeline(write(tmp_path, PIPELINE.replace("partitions: 5", "partitions: 7")))
        (said,) = other_partitions(admin, changed)
        assert said.startswith('topic "out" has 5 partitions and not 7: it existed before')


def test_a_config_that_the_broker_refuses_is_reported_by_its_line(tmp_path: Path) -> None:
    pipeline = read_pipeline(write(tmp_path, PIPELINE.replace("cleanup.policy: compact", "cleanup.policy: sometimes")))
    with EmbeddedBroker() as broker, Admin(broker.bootstrap_servers) as admin:
        broker.create_topic("in")
        with pytest.raises(DefinitionError, match=r'pipeline.yml:6: sinks\[0\].configs: topic "out" cannot be created'):
            prepare_topics(admin, pipeline)


@pytest.mark.parametrize(
    ("sinks", "said"),
    [
        ("sink: {topic: out, partitions: 0}", r"sink.partitions: 0 is not between 1 and"),
        ("sink: {topic: out, partitons: 3}", r'did you mean "partitions"\?'),
        ("sink: {topic: out, configs: compact}", r"sink.configs: a mapping of names to values is needed here"),
        (
            "sinks: [{topic: out, partitions: 3}, {topic: out}]",
            r'topic "out" has another value in sinks\[0\]: use the same',
        ),
        ("sink: {parquet: files, partitions: 3}", r'"partitions" is not known in sink'),
    ],
)
def test_mistakes_are_reported(tmp_path: Path, sinks: str, said: str) -> None:
    with pytest.raises(DefinitionError, match=said):
        read_pipeline(write(tmp_path, f"name: p\nsource: {{topic: in, format: string}}\n{sinks}\n"))
