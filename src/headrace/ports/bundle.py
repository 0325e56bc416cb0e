"""The five ports together, as a node takes them."""

from typing import NamedTuple

from headrace.ports.clock import Clock
from headrace.ports.disk import Disk
from headrace.ports.entropy import Entropy
from headrace.ports.network import Network
from headrace.ports.spawner import Spawner


class Ports(NamedTuple):
    clock: Clock
    disk: Disk
    network: Network
    entropy: Entropy
    spawner: Spawner
