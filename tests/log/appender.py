"""A process to be killed: appends to a log on the real disk with all helpers at work, and says what it has written."""

import sys

from headrace.log.config import LogConfig
from headrace.log.directory import LogDirectory
from headrace.ports.real.disk import RealDisk
from headrace.ports.real.entropy import RealEntropy
from headrace.ports.real.spawner import ThreadSpawner

from .world import NOW_MS, PARTITION, TOPIC_ID, append, batch_of

CONFIG = LogConfig(
    segment_bytes=300_000,
    preallocation_bytes_min=20_000,
    preallocation_bytes_max=100_000,
    unclean_tail_bytes_max=100_000,
    snapshot_interval_bytes=60_000,
    retention_bytes=1_500_000,
    file_delete_delay_ms=0,
)


def main(path: str) -> None:
    directory = LogDirectory.open(RealDisk(), path, cluster_id="c", node_id=1, entropy=RealEntropy())
    log = directory.open_log(PARTITION, TOPIC_ID, CONFIG, wall_ms=NOW_MS)
    spawner = ThreadSpawner(lambda: None)
    turn = 0
    while True:
        turn += 1
        wall_ms = NOW_MS + turn
        base = log.end_offset
        values = [b"%d:" % (base + number) + bytes(37 * (number % 9)) for number in range(8)]
        batches = [
            batch_of(value, producer_id=1, producer_epoch=0, base_sequence=base + number)
            for number, value in enumerate(values)
        ]
        append(log, *batches, wall_ms=wall_ms)
        print(log.end_offset, flush=True)
        wanted = [log.preallocation.work(), log.flush_work() if log.flush_due(wall_ms) else None]
        if turn % 50 == 0:
            wanted += [
                log.retirement.work(wall_ms, log.end_offset),
                directory.checkpoint_work([log], {PARTITION: log.end_offset}),
            ]
        for work in wanted:
            if work is not None:
                spawner.submit(*work)
        spawner.run_completions()
        log.files.close_idle()


if __name__ == "__main__":
    main(sys.argv[1])
