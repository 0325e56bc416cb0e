"""One broker for the commands that need one, and a way to call them."""

from collections.abc import Callable, Iterator

import pytest
from click.testing import CliRunner, Result

from headrace.cli.main import cli
from headrace.testing import EmbeddedBroker, EmbeddedCluster

Headrace = Callable[..., Result]


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker() as running:
        yield running


@pytest.fixture
def headrace(broker: EmbeddedBroker) -> Headrace:
    return caller(broker)


def caller(broker: EmbeddedBroker | EmbeddedCluster) -> Headrace:
    """Calls a command against the broker: `headrace("topics", "list")`."""

    def call(*arguments: str, input: str | bytes | None = None, exit_code: int = 0) -> Result:
        environment = {"HEADRACE_BOOTSTRAP": broker.bootstrap_servers}
        result = CliRunner().invoke(cli, arguments, input=input, env=environment)
        assert result.exit_code == exit_code, (arguments, result.output, result.exception)
        return result

    return call


def wait_for_completions(patch: pytest.MonkeyPatch) -> None:
    """As long as a busy machine may take; a shell gives up sooner and shows nothing."""
    patch.setattr("headrace.cli.options.COMPLETION_TIMEOUT_MS", 60_000)


@pytest.fixture
def topic(broker: EmbeddedBroker, request: pytest.FixtureRequest) -> Iterator[str]:
    """A topic of this test alone, with three partitions."""
    name = broker.create_topic(broker.unused_topic_name(request.node.name), partitions=3)
    yield name
    broker.delete_topic(name)
