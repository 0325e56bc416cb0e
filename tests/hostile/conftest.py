"""One broker and one healthy client for the hostile clients of a module; both end with it, as they keep a core busy."""

from collections.abc import Iterator

import pytest

from tests.hostile.ground import Ground


@pytest.fixture(scope="module")
def ground(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ground]:
    with Ground(tmp_path_factory.mktemp("hostile")) as ground:
        yield ground
