"""Dead letters that are sent again, where there are none."""

import pytest

from headrace.client.errors import ClientError
from headrace.spark.pipelines.letters import replay
from headrace.testing import EmbeddedBroker


def test_before_the_first_run_there_are_no_letters() -> None:
    with EmbeddedBroker() as broker:
        settings = {"bootstrap.servers": broker.bootstrap_servers}
        with pytest.raises(ClientError, match='no dead letters yet: topic "orders-dead"'):
            replay(settings, pipeline="shop", topic="orders-dead", chosen=lambda _letter: True)
