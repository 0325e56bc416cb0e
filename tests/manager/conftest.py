"""One broker and one manager for the tests of a module, and a topic for each test."""

from collections.abc import Iterator

import pytest

from headrace.testing import EmbeddedBroker
from tests.manager.manager_process import ManagerProcess
from tests.manager.people import TeamOfUsers


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(config={"auto.create.topics.enable": "false"}) as running:
        yield running


@pytest.fixture(scope="module")
def manager(broker: EmbeddedBroker) -> Iterator[ManagerProcess]:
    with ManagerProcess(broker.bootstrap_servers) as running:
        yield running


@pytest.fixture(scope="module")
def team_broker() -> Iterator[EmbeddedBroker]:
    """The broker of the team: a manager without users serves no cluster that has had users."""
    with EmbeddedBroker(config={"auto.create.topics.enable": "false"}) as running:
        yield running


@pytest.fixture(scope="module")
def team(team_broker: EmbeddedBroker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TeamOfUsers]:
    """A manager with one user of each role."""
    people = TeamOfUsers(f"sqlite:///{tmp_path_factory.mktemp('catalog')}/catalog.db")
    with ManagerProcess(team_broker.bootstrap_servers, "--catalog", people.catalog) as manager:
        people.manager = manager
        yield people


@pytest.fixture
def topic(request: pytest.FixtureRequest) -> str:
    """A topic of this test alone, with three partitions, at the broker of its manager."""
    broker: EmbeddedBroker = request.getfixturevalue("team_broker" if "team" in request.fixturenames else "broker")
    return broker.create_topic(broker.unused_topic_name(request.node.name), partitions=3)
