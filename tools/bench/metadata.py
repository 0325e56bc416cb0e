"""Metadata load: the cost of a request for all topics of a broker with many topics."""

from headrace.bench.brokers import MeasuredBroker
from headrace.bench.errors import RunRejected
from headrace.bench.figures import Round
from headrace.bench.links import BenchConnection
from headrace.bench.replay import ReplayClient
from headrace.bench.requests import METADATA_VERSION, metadata_frames
from headrace.bench.topics import create_topics
from headrace.wire.frames import SIZE_BYTES, read_response_header
from headrace.wire.messages import metadata

CONNECTIONS = 4


class MetadataRounds:
    """Prepare the rounds; the first round creates the topics."""

    def __init__(
        self, broker: MeasuredBroker, client: ReplayClient, *, topic: str, topics: int, partitions: int, seconds: float
    ) -> None:
        self._broker = broker
        self._client = client
        self._topic = topic
        self._topics = topics
        self._partitions = partitions
        self._seconds = seconds
        self._are_made = False

    def __call__(self) -> Round:
        address = self._broker.address
        if not self._are_made:
            names = [f"{self._topic}-{number}" for number in range(self._topics)]
            create_topics(address, names, partitions=self._partitions)
            self._are_made = True
        answer_bytes = self._check(address)
        before = self._broker.cpu_seconds()
        report = self._client.exchange(address, metadata_frames(CONNECTIONS), depth=1, seconds=self._seconds)
        after = self._broker.cpu_seconds()
        if report.bytes != report.requests * answer_bytes:
            raise RunRejected("responses differ in length from the checked one; were topics created in between?")
        figures = {
            "requests_per_second": report.requests / report.seconds,
            "p50_us": report.p50_us(),
            "p99_us": report.p99_us(),
            "response_kilobytes": answer_bytes / 1000,
        }
        if before is not None and after is not None:
            figures["cpu_us_per_request"] = (after - before) / report.requests * 1e6
        return figures

    def _check(self, address: str) -> int:
        """Check that the response has all partitions, each with a leader; return its length with the size field."""
        with BenchConnection(address) as link:
            body = link.exchange(metadata_frames(1).content)
        _, position = read_response_header(body, 0, len(body), api_key=metadata.API_KEY, api_version=METADATA_VERSION)
        answer = metadata.decode_response(body, position, len(body), METADATA_VERSION)
        ours = [topic for topic in answer.topics if (topic.name or "").startswith(f"{self._topic}-")]
        led = sum(1 for topic in ours for partition in topic.partitions if partition.leader_id >= 0)
        if led != self._topics * self._partitions:
            raise RunRejected(f"{led} of {self._topics * self._partitions} partitions have a leader in Metadata")
        return SIZE_BYTES + len(body)
