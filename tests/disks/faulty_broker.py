"""A broker process on a faulty disk: `python -m tests.disks.faulty_broker PLAN KEY=VALUE...`.

The plan is JSON: where the process ends (see `FaultyDisk`), whether calls are counted from the `start` of the process
or only once it is `ready`, and where to write the counts. On SIGUSR1 it writes them down.
"""

import json
import signal
import sys

from headrace.broker import process
from headrace.model.configs.values import BrokerConfig
from headrace.ports.bundle import Ports
from headrace.ports.real.clock import RealClock
from headrace.ports.real.entropy import RealEntropy
from headrace.ports.real.network import RealNetwork
from headrace.ports.real.spawner import ThreadSpawner
from tests.disks.faulty_disk import FaultyDisk


def main(plan, settings):
    disk = FaultyDisk(
        point=plan.get("point"), number=plan.get("number", 0), when=plan.get("when", "before"), error=plan.get("error")
    )
    if plan.get("phase") == "start":
        disk.arm()

    def ports():
        network = RealNetwork()
        return Ports(RealClock(), disk, network, RealEntropy(), ThreadSpawner(network.wake))

    def ready(booted):
        if plan.get("phase") != "start":
            disk.arm()
        print(f"headrace listening on {booted.addresses[0]}", flush=True)

    def write_counts(_signal, _frame):
        with open(plan["counts"], "w") as file:
            json.dump(disk.counts, file)

    if "counts" in plan:
        signal.signal(signal.SIGUSR1, write_counts)
    process.real_ports = ports
    return process.run(BrokerConfig.from_texts(settings), on_ready=ready)


if __name__ == "__main__":
    sys.exit(main(json.loads(sys.argv[1]), dict(word.split("=", 1) for word in sys.argv[2:])))
