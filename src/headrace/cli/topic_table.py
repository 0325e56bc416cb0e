"""The output of `headrace topics describe`."""

import click

from headrace.cli.console import clean, print_table
from headrace.client.types import ConfigSource
from headrace.model.ids import NO_NODE
from headrace.operations.amounts import count_text, size_text
from headrace.operations.topic_details import UNKNOWN, TopicDetails


def print_details(topic: TopicDetails, *, all_configs: bool) -> None:
    records = sum(
        partition.end_offset - partition.start_offset for partition in topic.partitions if partition.end_offset >= 0
    )
    size = sum(max(partition.size_bytes, 0) for partition in topic.partitions)
    kind = "internal topic" if topic.internal else "topic"
    click.echo(
        f"{kind} {clean(topic.name)}  id {topic.topic_id}  {count_text(len(topic.partitions), 'partition')}  "
        f"{count_text(records, 'offset')}  {size_text(size)}"
    )
    has_eligible = any(partition.eligible for partition in topic.partitions)
    eligible = ("eligible",) if has_eligible else ()
    columns = ("partition", "leader", "leader epoch", "replicas", "in sync", *eligible, "start", "end", "size")
    print_table(
        columns,
        (
            (
                partition.partition,
                "none" if partition.leader == NO_NODE else partition.leader,
                partition.leader_epoch,
                ",".join(map(str, partition.replicas)),
                ",".join(map(str, partition.isr)),
                *((",".join(map(str, partition.eligible)),) if has_eligible else ()),
                _known(partition.start_offset),
                _known(partition.end_offset),
                size_text(partition.size_bytes),
            )
            for partition in topic.partitions
        ),
        right=("partition", "leader", "leader epoch", "start", "end", "size"),
        styles={"leader": lambda cell: "bold red" if cell == "none" else ""},
    )
    shown = [entry for entry in topic.configs if all_configs or entry.source == ConfigSource.TOPIC]
    if shown:
        click.echo()
        rows = ((entry.name, entry.value or "", config_source_text(entry.source)) for entry in shown)
        print_table(("config", "value", "from"), rows)


def _known(offset: int) -> str:
    return "unknown" if offset == UNKNOWN else str(offset)


def config_source_text(source: ConfigSource) -> str:
    return {
        ConfigSource.TOPIC: "topic",
        ConfigSource.DYNAMIC_BROKER: "broker, dynamic",
        ConfigSource.DYNAMIC_DEFAULT_BROKER: "all brokers, dynamic",
        ConfigSource.STATIC_BROKER: "broker, at start",
        ConfigSource.DEFAULT: "default",
    }.get(source, "unknown")
