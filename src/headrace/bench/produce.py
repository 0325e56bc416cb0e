"""Produce loads on one broker: the load, its costs, and a check that every record arrived intact."""

from headrace.bench import librdkafka
from headrace.bench.brokers import MeasuredBroker
from headrace.bench.errors import RunRejected
from headrace.bench.figures import Round
from headrace.bench.loads import ProduceLoad
from headrace.bench.replay import ReplayClient, ReplayReport
from headrace.bench.requests import ReplayFrames, fetch_frames, produce_frames
from headrace.bench.topics import create_topics, end_offsets, producer_identities

CHECKED_BYTES_MAX = 64 << 20
"""Batches of each partition that are read back after a round; end offsets are checked for all records."""

CHECK_SECONDS_MAX = 60
CHECK_FETCH_BYTES = 4 << 20


class ProduceRounds:
    """Rounds of a load on a broker, each on a new topic with new producers."""

    def __init__(self, broker: MeasuredBroker, client: ReplayClient, load: ProduceLoad, *, topic: str) -> None:
        self._broker = broker
        self._client = client
        self._load = load
        self._topic = topic
        self._round = 0

    def __call__(self) -> Round:
        self._round += 1
        topic = f"{self._topic}-{self._round}"
        frames = prepare_topic(self._broker.address, topic, self._load)
        before = self._broker.cpu_seconds()
        report = send(self._client, self._broker.address, frames, self._load)
        after = self._broker.cpu_seconds()
        check_arrival(self._client, self._broker.address, topic, self._load, report)
        cpu = None if before is None or after is None else after - before
        return produce_round(report, report.requests * frames.batch_bytes, cpu)


class LibrdkafkaProduceRounds:
    """Messages of the load's record size, in batches that librdkafka builds."""

    def __init__(self, broker: MeasuredBroker, load: ProduceLoad, *, topic: str) -> None:
        self._broker = broker
        self._load = load
        self._topic = topic
        self._round = 0

    def __call__(self) -> Round:
        self._round += 1
        topic, load, address = f"{self._topic}-{self._round}", self._load, self._broker.address
        create_topics(address, [topic], partitions=load.partitions)
        before = self._broker.cpu_seconds()
        sent = librdkafka.produce(
            address,
            topic,
            partitions=load.partitions,
            message_bytes=load.record_bytes,
            acks=str(load.acks),
            seconds=load.seconds,
            bytes_max=load.bytes_max,
        )
        after = self._broker.cpu_seconds()
        arrived = sum(end_offsets(address, topic, partitions=load.partitions))
        if arrived != sent.messages:
            raise RunRejected(f"{sent.messages} messages were sent, but the partitions hold {arrived}")
        sent_bytes = sent.messages * load.record_bytes
        figures = {"megabytes_per_second": sent_bytes / 1e6 / sent.seconds}
        if before is not None and after is not None:
            figures["cpu_seconds_per_gigabyte"] = (after - before) / (sent_bytes / 1e9)
        return figures


def prepare_topic(
    address: str, topic: str, load: ProduceLoad, *, configs: dict[str, str] | None = None
) -> ReplayFrames:
    create_topics(address, [topic], partitions=load.partitions, configs=configs)
    return produce_frames(
        topic,
        producer_identities(address, load.connections),
        partitions=load.partitions,
        records=load.records,
        record_bytes=load.record_bytes,
        acks=load.acks,
    )


def send(client: ReplayClient, address: str, frames: ReplayFrames, load: ProduceLoad) -> ReplayReport:
    requests_max = load.bytes_max // frames.batch_bytes
    return client.exchange(
        address,
        frames,
        depth=load.depth,
        seconds=load.seconds,
        requests_max=requests_max,
        answers=load.acks != 0,
    )


def produce_round(report: ReplayReport, payload_bytes: int, cpu_seconds: float | None) -> Round:
    figures = {
        "requests_per_second": report.requests / report.seconds,
        "megabytes_per_second": payload_bytes / 1e6 / report.seconds,
        "client_cpu_us_per_request": report.client_cpu_seconds / report.requests * 1e6,
    }
    if cpu_seconds is not None:
        figures["cpu_us_per_request"] = cpu_seconds / report.requests * 1e6
        figures["cpu_seconds_per_gigabyte"] = cpu_seconds / (payload_bytes / 1e9)
    if report.histogram:
        figures |= {"p50_us": report.p50_us(), "p99_us": report.p99_us()}
    return figures


def check_arrival(client: ReplayClient, address: str, topic: str, load: ProduceLoad, report: ReplayReport) -> None:
    """Check by end offsets that each record arrived once, and verify the checksums of the newest batches."""
    if not report.requests:
        raise RunRejected("no request was answered")
    ends = end_offsets(address, topic, partitions=load.partitions)
    if sum(ends) != report.requests * load.records:
        raise RunRejected(
            f"{report.requests * load.records} records were acknowledged, but the partitions hold {sum(ends)}"
        )
    batches = max(1, CHECKED_BYTES_MAX // (load.records * load.record_bytes))
    ranges = [(max(0, end - batches * load.records), end) for end in ends]
    frames = fetch_frames(topic, range(load.partitions), bytes_max=CHECK_FETCH_BYTES, wait_ms_max=500)
    read = client.fetch(address, frames, ranges, seconds=CHECK_SECONDS_MAX)
    wanted = sum(end - start for start, end in ranges)
    if read.records != wanted:
        raise RunRejected(f"{wanted} records were expected, {read.records} were read back")
