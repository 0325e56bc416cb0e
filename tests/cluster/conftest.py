"""A whole node on virtual ports, and a client of it."""

import pytest

from headrace.sim.node import VirtualNode
from headrace.sim.world import World
from tests.sim.kafka_client import KafkaClient


@pytest.fixture
def node():
    virtual = VirtualNode(World(7))
    virtual.boot()
    return virtual


@pytest.fixture
def client(node):
    return KafkaClient(node.world)
