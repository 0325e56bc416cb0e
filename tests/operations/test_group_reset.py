"""Selections of partitions for a reset, and the moves of their offsets."""

import pytest

from headrace.client.types import PartitionDescription, TopicDescription
from headrace.model.ids import TopicPartition
from headrace.operations.errors import OperationError
from headrace.operations.group_reset import ResetSelection, parse_selection, selected_partitions


def topic(name: str, partitions: int) -> TopicDescription:
    return TopicDescription(
        name=name,
        partitions=tuple(
            PartitionDescription(partition=number, leader=1, leader_epoch=0, replicas=(1,), isr=(1,), offline=())
            for number in range(partitions)
        ),
    )


def test_a_selection_is_a_topic_or_some_of_its_partitions() -> None:
    assert parse_selection("orders") == ResetSelection("orders", ())
    assert parse_selection("orders:2,0") == ResetSelection("orders", (2, 0))


@pytest.mark.parametrize("text", ["orders:", "orders:x", "orders:0,", "orders:0:1"])
def test_an_invalid_selection_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        parse_selection(text)


def test_selected_partitions_are_sorted_and_named_once() -> None:
    topics = {"orders": topic("orders", 3), "payments": topic("payments", 1)}
    selections = [parse_selection(text) for text in ("payments", "orders:2,0", "orders:0")]
    assert selected_partitions(selections, topics) == [
        TopicPartition("orders", 0),
        TopicPartition("orders", 2),
        TopicPartition("payments", 0),
    ]


def test_a_partition_that_does_not_exist_is_refused() -> None:
    with pytest.raises(OperationError, match='topic "orders" has no partition 3: it has 3'):
        selected_partitions([ResetSelection("orders", (3,))], {"orders": topic("orders", 3)})
