"""Plans from vectors of offsets: nothing is left out or read twice, and the same question has the same answer."""

import json

from hypothesis import given
from hypothesis import strategies as st

from headrace.model.ids import TopicPartition
from headrace.spark.offset_vectors import StreamOffset, from_json, initial_offset, is_initial, to_json
from headrace.spark.range_planner import count_between, limited, offsets_within, ranges_between, split_ranges

partitions = st.builds(TopicPartition, st.sampled_from(["a", "b.c", "d-e_f"]), st.integers(0, 5))
vectors = st.dictionaries(partitions, st.tuples(st.integers(0, 10**6), st.integers(0, 10**6)), min_size=1)


def starts_and_ends(vector: dict) -> tuple[dict, dict]:
    return {each: pair[0] for each, pair in vector.items()}, {each: sum(pair) for each, pair in vector.items()}


@given(
    vector=vectors, partitions_min=st.none() | st.integers(1, 50), records_max=st.none() | st.integers(20_000, 10**6)
)
def test_pieces_cover_the_ranges_exactly(vector: dict, partitions_min: int | None, records_max: int | None) -> None:
    starts, ends = starts_and_ends(vector)
    whole = ranges_between(starts, ends)
    pieces = split_ranges(whole, partitions_min=partitions_min, records_max=records_max)
    assert pieces == split_ranges(whole, partitions_min=partitions_min, records_max=records_max)
    assert all(piece.begin < piece.end for piece in pieces)
    joined: list = []
    for piece in pieces:
        if joined and joined[-1].partition == piece.partition:
            assert joined[-1].end == piece.begin
            joined[-1] = joined[-1]._replace(end=piece.end)
        else:
            joined.append(piece)
    assert joined == whole
    if records_max is not None:
        assert all(piece.end - piece.begin <= records_max for piece in pieces)
    total = count_between(starts, ends)
    if partitions_min is not None and total:
        assert len(pieces) >= min(partitions_min, total)


@given(vector=vectors, offsets_max=st.integers(1, 10**6))
def test_limits_hold_and_progress_is_made(vector: dict, offsets_max: int) -> None:
    starts, ends = starts_and_ends(vector)
    reduced = limited(starts, ends, offsets_max=offsets_max)
    taken = count_between(starts, reduced)
    assert taken <= offsets_max + len(vector)
    assert all(starts[each] <= reduced[each] <= ends[each] for each in ends)
    assert (taken > 0) == (count_between(starts, ends) > 0)
    waiting = [each for each in ends if starts[each] < ends[each]]
    assert all(reduced[each] > starts[each] for each in waiting)


@given(vector=vectors, bytes_max=st.integers(1, 10**7))
def test_bytes_limit_offsets(vector: dict, bytes_max: int) -> None:
    starts, ends = starts_and_ends(vector)
    reduced = offsets_within(starts, ends, dict.fromkeys(ends, 10.0), bytes_max=bytes_max)
    assert count_between(starts, reduced) * 10 <= bytes_max + 10 * len(vector)
    assert (count_between(starts, reduced) > 0) == (count_between(starts, ends) > 0)


@given(
    vector=vectors,
    others=vectors,
    source=st.none() | st.text(min_size=1),
    cluster=st.none() | st.text(min_size=1),
)
def test_offsets_survive_the_checkpoint_and_look_like_kafkas(
    vector: dict, others: dict, source: str | None, cluster: str | None
) -> None:
    offset = StreamOffset(
        ends=starts_and_ends(vector)[1],
        topic_ids={each.topic: "1-2-3" for each in vector},
        starts=starts_and_ends(others)[0],
        source=source,
        cluster=cluster,
    )
    tree = to_json(offset)
    assert from_json(json.loads(json.dumps(tree))) == offset
    assert not is_initial(tree)
    read = {
        TopicPartition(topic, int(number)): end for topic, numbers in tree.items() for number, end in numbers.items()
    }
    assert read == dict(offset.ends)


def test_the_initial_offset_is_always_the_same() -> None:
    assert initial_offset() == initial_offset()
    assert is_initial(initial_offset())


def test_an_offset_of_an_older_checkpoint_is_read() -> None:
    tree = {"t": {"0": 7}, "hr:ids": {"t": "1-2"}, "hr:start": {"t": {"0": 5}}, "hr:source": "a"}
    place = TopicPartition("t", 0)
    assert from_json(tree) == StreamOffset(ends={place: 7}, topic_ids={"t": "1-2"}, starts={place: 5}, source="a")


def test_an_offset_of_the_kafka_connector_is_read() -> None:
    assert from_json({"t": {"1": 5, "0": 7}}).ends == {TopicPartition("t", 0): 7, TopicPartition("t", 1): 5}
