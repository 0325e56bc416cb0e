"""`headrace bench produce|consume|latency`: loads on a broker."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from headrace.cli.bench.options import (
    Run,
    measure,
    refuse,
    run_options,
    setup,
    show,
    skipped_if_unmeasurable,
)

if TYPE_CHECKING:
    from headrace.bench.figures import Measurement
    from headrace.bench.loads import ProduceLoad

RECORD_BYTES_OF_LARGE_BATCHES = 1_000
REPLAY, PYTHON, LIBRDKAFKA = "replay", "python", "librdkafka"
_NOT_FOR_PRODUCERS = (
    "connections",
    "depth",
    "size",
    "acks",
    "client",
    "pure_python",
    "rounds",
    "beside",
    "broker_pid",
)
_NOT_FOR_CONSUMERS = ("client", "megabytes", "partitions", "rounds", "beside", "broker_pid", "touch")

seconds_option = click.option(
    "--seconds", type=click.FloatRange(0, min_open=True), default=3.0, show_default=True, help="Duration of a round."
)


@click.command()
@click.option(
    "--connections",
    type=click.IntRange(1),
    help="Connections of a custom load; may be combined with --in-flight and --size.",
)
@click.option("--in-flight", "depth", type=click.IntRange(1), help="Requests in flight per connection.")
@click.option("--size", type=click.IntRange(1), help="Bytes per batch; from 1,000 bytes on, in records of 1,000 bytes.")
@click.option("--partitions", type=click.IntRange(1), default=4, show_default=True, help="Partitions of the topic.")
@click.option(
    "--acks", type=click.Choice(["all", "1", "0"]), default="1", show_default=True, help="Required acknowledgements."
)
@seconds_option
@click.option(
    "--client",
    type=click.Choice([REPLAY, PYTHON, LIBRDKAFKA]),
    default=REPLAY,
    show_default=True,
    help="Client: pre-encoded requests from a C program or Python processes, or librdkafka.",
)
@click.option(
    "--pure-python", is_flag=True, help="Also measure a broker without compiled helpers, in alternating rounds."
)
@click.option("--producers", type=click.IntRange(1), metavar="N", help="Run N producers at a steady rate instead.")
@click.option(
    "--interval-ms",
    type=click.FloatRange(1),
    default=100.0,
    show_default=True,
    help="Interval between messages, with --producers.",
)
@click.option(
    "--topic", default="bench", show_default=True, help="Topic for --producers; created if it does not exist."
)
@run_options(rounds=3)
def produce(
    run: Run,
    connections: int | None,
    depth: int | None,
    size: int | None,
    partitions: int,
    acks: str,
    seconds: float,
    client: str,
    pure_python: bool,
    producers: int | None,
    interval_ms: float,
    topic: str,
) -> None:
    """Measure producing: small requests, 16 KB and 1 MB batches, all with idempotence.

    With --producers N, each of N producers sends a numbered message every --interval-ms and waits for its
    acknowledgement; `bench consume --to-dir` writes the received messages to files.
    """
    from headrace.bench.produce import LibrdkafkaProduceRounds, ProduceRounds

    if producers is not None:
        from headrace.cli.bench.evaluation import evaluate_producers

        refuse("producers at a steady rate send short messages to one broker", *_NOT_FOR_PRODUCERS)
        evaluate_producers(
            run, topic, partitions=partitions, producers=producers, interval_ms=interval_ms, seconds=seconds
        )
        return
    refuse("this option requires --producers", "interval_ms", "topic")
    loads = _produce_loads(connections, depth, size, partitions=partitions, acks=acks, seconds=seconds)
    if client == LIBRDKAFKA:  # it has one connection and builds its own batches: only the message size differs
        loads = list({load.message_name: load for load in loads}.values())
    found: list[Measurement] = []
    with setup(run, compiled=client != PYTHON, with_pure_python=pure_python) as made:
        for number, load in enumerate(loads):
            topic = f"{made.topic_prefix}-{number}"
            if client == LIBRDKAFKA:
                make = partial(LibrdkafkaProduceRounds, load=load, topic=topic)
                found += measure(made, run, load.message_name, make, client=LIBRDKAFKA)
            else:
                replayed = partial(ProduceRounds, client=made.client, load=load, topic=topic)
                found += measure(made, run, load.name, replayed)
    show(found, run)


def _produce_loads(
    connections: int | None, depth: int | None, size: int | None, *, partitions: int, acks: str, seconds: float
) -> "list[ProduceLoad]":
    """Return the four standard loads, or the one that the options describe."""
    from dataclasses import replace

    from headrace.bench.loads import ACKS, PRODUCE_LOADS, ProduceLoad

    loads: tuple[ProduceLoad, ...] = PRODUCE_LOADS
    if connections or depth or size:
        size = size or PRODUCE_LOADS[0].record_bytes
        records = max(1, size // RECORD_BYTES_OF_LARGE_BATCHES)
        own = ProduceLoad(connections=connections or 1, depth=depth or 1, records=records, record_bytes=size // records)
        loads = (own,)
    return [replace(load, partitions=partitions, acks=ACKS[acks], seconds=seconds) for load in loads]


@click.command()
@click.option(
    "--client",
    type=click.Choice([LIBRDKAFKA, REPLAY, PYTHON]),
    default=LIBRDKAFKA,
    show_default=True,
    help="Client: librdkafka, or raw fetch requests from a C program or Python processes.",
)
@click.option("--megabytes", type=click.IntRange(8), default=1_000, show_default=True, help="Megabytes to read.")
@click.option("--partitions", type=click.IntRange(1), default=4, show_default=True, help="Partitions of the topic.")
@click.option("--consumers", type=click.IntRange(1), metavar="N", help="Run N consumers that write files instead.")
@click.option("--to-dir", type=click.Path(file_okay=False, path_type=Path), help="Output directory of --consumers.")
@click.option("--topic", default="bench", show_default=True, help="Topic that --consumers read.")
@click.option(
    "--seconds", type=click.FloatRange(0), default=0.0, help="Duration of --consumers; 0 reads up to the current end."
)
@run_options(rounds=3)
def consume(
    run: Run,
    client: str,
    megabytes: int,
    partitions: int,
    consumers: int | None,
    to_dir: Path | None,
    topic: str,
    seconds: float,
) -> None:
    """Measure consuming: 1 KB records from the page cache, checked for gaps and corruption.

    With --consumers N --to-dir DIR, N consumers share the partitions of --topic and write the records to
    DIR/consumer-0.txt and so on: one line with partition, offset, timestamp, key and value per record.
    """
    from headrace.bench.consume import ConsumeRounds

    if consumers is not None or to_dir is not None:
        from headrace.cli.bench.evaluation import evaluate_consumers

        refuse("consumers that write files read from one broker", *_NOT_FOR_CONSUMERS)
        evaluate_consumers(run, topic, consumers=consumers or 1, folder=to_dir, seconds=seconds)
        return
    refuse("this option requires --consumers", "seconds", "topic")
    with setup(run, compiled=client != PYTHON) as made:
        by = LIBRDKAFKA if client == LIBRDKAFKA else REPLAY
        make = partial(ConsumeRounds, client=made.client, topic=made.topic_prefix, partitions=partitions, by=by)
        load = partial(make, total_bytes=megabytes * 1_000_000)
        found = measure(made, run, f"{megabytes} MB of 1 KB records", load, client="" if by == REPLAY else LIBRDKAFKA)
    show(found, run)


@click.command()
@click.option("--count", type=click.IntRange(10), default=2_000, show_default=True, help="Messages per round.")
@click.option(
    "--cold-megabytes", type=click.IntRange(8), default=1_000, show_default=True, help="Megabytes for the cold reader."
)
@seconds_option
@run_options(rounds=3)
def latency(run: Run, count: int, cold_megabytes: int, seconds: float) -> None:
    """Measure latency: produce to fetch, single messages, and a producer beside a reader of cold data."""
    from headrace.bench import latency as loads
    from headrace.bench.librdkafka import client_library
    from headrace.bench.machine import require_disk

    found: list[Measurement] = []
    with setup(run) as made:
        trips = partial(loads.RoundTripRounds, client=made.client, count=count)
        found += measure(made, run, loads.ROUND_TRIP, partial(trips, topic=f"{made.topic_prefix}-raw", by=REPLAY))
        with skipped_if_unmeasurable("loads by librdkafka"):
            client_library()
            by = partial(trips, topic=f"{made.topic_prefix}-librdkafka", by=LIBRDKAFKA)
            found += measure(made, run, loads.ROUND_TRIP_LIBRDKAFKA, by, client=LIBRDKAFKA)
            one = partial(loads.OneAtATimeRounds, topic=f"{made.topic_prefix}-one", count=count)
            found += measure(made, run, loads.ONE_AT_A_TIME, one, client=LIBRDKAFKA)
        with skipped_if_unmeasurable(loads.COLD):
            require_disk(made.folder, "cold data")
            cold = partial(loads.ColdReaderRounds, client=made.client, topic=f"{made.topic_prefix}-paced")
            cold = partial(cold, cold_bytes=cold_megabytes * 1_000_000, seconds=seconds)
            found += measure(made, run, loads.COLD, cold)
    show(found, run)
