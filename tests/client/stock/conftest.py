"""Per module: one broker process for all clients, one more that creates missing topics, and each client once."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from compat.adapters import connect, kcat
from compat.client import Client
from headrace.testing import EmbeddedBroker

STRICT = {"auto.create.topics.enable": "false"}
ClientOf = Callable[[str, EmbeddedBroker], Client]


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(process=True, config=STRICT) as broker:
        yield broker


@pytest.fixture(scope="module")
def auto_creating_broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(process=True) as broker:
        yield broker


@pytest.fixture(scope="module")
def client_of() -> Iterator[ClientOf]:
    """A client by name, connected to a broker; each pair is made once."""
    clients: dict[tuple[str, str], Client] = {}
    with ExitStack() as stack:

        def get(name: str, broker: EmbeddedBroker) -> Client:
            if name == "kcat" and not kcat.installed():
                pytest.skip(kcat.INSTALL)
            key = (name, broker.bootstrap_servers)
            if key not in clients:
                clients[key] = connect(name, broker.bootstrap_servers)
                stack.callback(clients[key].close)
            return clients[key]

        yield get
