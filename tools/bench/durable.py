"""Durable load: a sync before every acknowledgement, shared by all waiting requests, against one sync per request."""

from pathlib import Path

from headrace.bench.brokers import MeasuredBroker
from headrace.bench.figures import Round
from headrace.bench.loads import ProduceLoad
from headrace.bench.produce import check_arrival, prepare_topic, produce_round, send
from headrace.bench.replay import ReplayClient
from tools.bench import targets
from tools.bench.floor import SyncRounds

SYNC_BEFORE_EVERY_ACK = {"flush.messages": "1"}
BARE_SECONDS = 0.5

DURABLE_LOADS = {
    targets.DURABLE_SINGLE: ProduceLoad(connections=64, depth=1, records=1, record_bytes=100, acks=-1, seconds=2.0),
    targets.DURABLE_PIPELINED: ProduceLoad(connections=64, depth=8, records=1, record_bytes=100, acks=-1, seconds=2.0),
}
"""Loads with acks=all, which waits for the sync."""


class DurableRounds:
    """Rounds that measure bare syncs of the disk before and after the load, because they vary over minutes."""

    def __init__(
        self, broker: MeasuredBroker, client: ReplayClient, load: ProduceLoad, *, folder: Path, topic: str
    ) -> None:
        self._broker = broker
        self._client = client
        self._load = load
        self._topic = topic
        self._round = 0
        self._folder = folder

    def __call__(self) -> Round:
        self._round += 1
        topic, address = f"{self._topic}-{self._round}", self._broker.address
        frames = prepare_topic(address, topic, self._load, configs=SYNC_BEFORE_EVERY_ACK)
        syncs = SyncRounds(self._folder, size=frames.batch_bytes, seconds=BARE_SECONDS)
        bare_before = syncs()["per_second"]
        before = self._broker.cpu_seconds()
        report = send(self._client, address, frames, self._load)
        after = self._broker.cpu_seconds()
        bare = (bare_before + syncs()["per_second"]) / 2
        check_arrival(self._client, address, topic, self._load, report)
        cpu = None if before is None or after is None else after - before
        figures = dict(produce_round(report, report.requests * frames.batch_bytes, cpu))
        return {**figures, "per_second": bare, "requests_per_sync": figures["requests_per_second"] / bare}
