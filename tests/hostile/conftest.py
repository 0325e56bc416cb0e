"""One broker and one healthy client for all hostile clients of a test process."""

from collections.abc import Iterator

import pytest

from tests.hostile.ground import Ground


@pytest.fixture(scope="session")
def ground(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ground]:
    with Ground(tmp_path_factory.mktemp("hostile")) as ground:
        yield ground
