"""The table of docs/reliability.md, from the lines that HOSTILE_RECORD names: `python -m tests.hostile.table FILE`."""

import json
import sys
from collections.abc import Iterable, Iterator
from typing import NamedTuple

ATTACKS = {
    "a_lying_batch_is_refused_and_counted": "lying batches",
    "a_bomb_is_not_opened_on_a_topic_that_stores_batches_as_they_are": "bombs that stay closed",
    "a_bomb_is_refused_where_records_are_opened[gzip]": "a bomb in a compacted topic, gzip",
    "a_bomb_is_refused_where_records_are_opened[snappy]": "a bomb in a compacted topic, snappy",
    "a_bomb_is_refused_where_records_are_opened[lz4]": "a bomb in a compacted topic, lz4",
    "a_bomb_is_refused_where_records_are_opened[zstd]": "a bomb in a compacted topic, zstd",
    "one_byte_a_second": "one byte a second",
    "half_closed_sockets": "half-closed sockets",
    "readers_that_never_read": "readers that never read",
    "thousands_of_connections": "thousands of connections",
    "a_storm_of_connections": "a storm of connections",
    "a_pipeline_of_ten_thousand_requests": "a pipeline of 10,000 requests",
    "requests_that_park_for_ever": "1,000 parked fetches",
    "acks_nobody_waits_for": "acks=0 with bad batches",
    "sizes_that_no_frame_has": "sizes that no frame has",
    "garbage_before_a_frame": "garbage before a frame",
    "garbage_between_frames": "garbage between frames",
    "frames_cut_off_by_a_close_or_a_reset": "frames cut off",
    "memory_follows_the_bytes_received_not_the_length_declared": "frames that declare 100 MB",
    "tagged_fields_without_end": "tagged fields without end",
    "apis_and_versions_that_are_not_served": "APIs and versions not served",
    "fetches_of_ten_thousand_partitions": "fetches of 10,000 partitions",
    "thousands_of_topic_names": "30,000 topic names",
    "a_hundred_thousand_topic_names": "100,000 topic names (refused)",
    "millions_of_elements_of_two_bytes": "4 million empty names (refused)",
    "millions_of_empty_topics_in_a_produce_request": "2.7 million empty topics (refused)",
    "forty_connections_that_keep_asking": "40 connections that ask for offsets by time",
    "a_legal_request_as_a_weapon": "legal requests, pipelined on 8 connections",
    "scrapes_of_thousands_of_partitions": "scrapes of thousands of partitions",
}
"""By the name of the test, or of one of its cases."""

SLOWER_TIMES_MAX = 3.0


class Row(NamedTuple):
    attack: str
    p50_ms: float
    p99_ms: float
    p99_alone_ms: float
    longest_turn_ms: float
    turn_p99_ms: float
    """No longer than this were 99 of 100 turns."""
    broker_waited: float
    client_waited: float
    """Of the time in which it was ready to run, the share for which it had no core."""


def rows(lines: Iterable[str]) -> Iterator[Row]:
    for line in lines:
        found = json.loads(line)
        case = found["attack"].removeprefix("test_")
        attack = ATTACKS.get(case) or ATTACKS.get(case.partition("[")[0], case)
        yield Row(attack, *(found[name] for name in Row._fields[1:]))


def table(measured: list[Row]) -> Iterator[str]:
    """A row per attack, the worst of its cases."""
    yield "| attack | p50 | p99 | longest turn | 99 % of turns within | no core: broker | no core: client |"
    yield "|---|---|---|---|---|---|---|"
    for attack in dict.fromkeys(row.attack for row in measured):
        cases = [row for row in measured if row.attack == attack]
        name = f"{attack} (worst of {len(cases)})" if len(cases) > 1 else attack
        worst = Row(attack, *(max(values) for values in list(zip(*cases, strict=True))[1:]))
        yield (
            f"| {name} | {worst.p50_ms:.1f} | {worst.p99_ms:.1f} | {worst.longest_turn_ms:.1f} | "
            f"{worst.turn_p99_ms:g} | {worst.broker_waited:.0%} | {worst.client_waited:.0%} |"
        )
    within = sum(row.p99_ms <= SLOWER_TIMES_MAX * row.p99_alone_ms for row in measured)
    quick = sum(row.longest_turn_ms < 1.0 for row in measured)
    alone_ms = max((row.p99_alone_ms for row in measured), default=0.0)
    yield ""
    yield (
        f"Alone, its p99 was {alone_ms:.2f} ms; {within} of {len(measured)} attacks left it within "
        f"{SLOWER_TIMES_MAX:g} times, and in {quick} no turn of the loop took 1 ms."
    )


if __name__ == "__main__":
    with open(sys.argv[1]) as recorded:
        print("\n".join(table(list(rows(recorded)))))
