"""One adapter per client. A module is imported only where its client is installed."""

from importlib import import_module
from typing import Any

from compat.client import Client, Feature

MODULES = {
    "confluent-kafka": "compat.adapters.librdkafka",
    "kafka-python": "compat.adapters.kafka_python",
    "aiokafka": "compat.adapters.aiokafka_client",
    "kcat": "compat.adapters.kcat",
    "java": "compat.adapters.java",
}


def _module(name: str) -> Any:
    return import_module(MODULES[name])


def features(name: str) -> frozenset[Feature]:
    """Return the features of the installed release of a client; known without a broker."""
    found: frozenset[Feature] = _module(name).features()
    return found


def connect(name: str, bootstrap_servers: str) -> Client:
    client: Client = _module(name).connect(bootstrap_servers)
    return client
