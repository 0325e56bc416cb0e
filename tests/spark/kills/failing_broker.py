"""A broker process that ends itself at a commit marker if that is planned.

python -m tests.spark.kills.failing_broker FOLDER KEY=VALUE...
"""

import os
import sys
from typing import Any

from headrace.broker import process
from headrace.broker.coordinators.markers import MarkerSender, TransactionMarker
from headrace.broker.node import Node
from headrace.model.configs.values import BrokerConfig
from tests.spark.kills.points import Points


def main(folder: str, settings: dict[str, str]) -> int:
    points = Points(folder)
    send = MarkerSender.send

    def send_or_end(sender: MarkerSender, marker: TransactionMarker, done: Any, is_void: Any) -> None:
        if marker.fields.commit:
            points.reach_markers()
        send(sender, marker, done, is_void)

    MarkerSender.send = send_or_end  # type: ignore[assignment,method-assign]

    def ready(booted: Node) -> None:
        points.process("broker", os.getpid())
        print(f"headrace listening on {booted.addresses[0]}", flush=True)

    return process.run(BrokerConfig.from_texts(settings), on_ready=ready)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], dict(word.split("=", 1) for word in sys.argv[2:])))
