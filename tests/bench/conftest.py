"""A broker to load, a folder, and the replay clients that this machine can have."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from headrace.bench.brokers import MeasuredBroker
from headrace.bench.replay import COMPILERS, ReplayClient
from headrace.testing import EmbeddedBroker
from headrace.testing.private_folders import make_private_folder, remove_private_folder

HAS_COMPILER = any(shutil.which(name) for name in COMPILERS)


@pytest.fixture(scope="session")
def cache_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build what these tests need once, and remove it afterwards."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(autouse=True)
def cache(cache_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache_folder))


@pytest.fixture(autouse=True)
def nothing_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Figures do not matter here, so the disk and the memory of brokers are not waited for."""
    monkeypatch.setattr("headrace.bench.rounds.settle_disk", lambda: None)
    monkeypatch.setattr("tools.bench.warm_up.WARM_SECONDS_MAX", 0.01)
    monkeypatch.setattr("headrace.cli.bench.options.REACHED_MS_MAX", 60_000)  # a busy machine may take long
    monkeypatch.setattr("tools.bench.idle.SETTLE_SECONDS", 0.0)
    monkeypatch.setattr("tools.bench.startup.SETTLE_SECONDS", 0.0)
    monkeypatch.setattr("tools.bench.durable.BARE_SECONDS", 0.02)


@pytest.fixture(scope="module")
def embedded() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(config={"auto.create.topics.enable": "false"}) as running:
        yield running


@pytest.fixture
def broker(embedded: EmbeddedBroker) -> MeasuredBroker:
    return MeasuredBroker("headrace", embedded.bootstrap_servers, embedded.process_id)


@pytest.fixture
def topic(embedded: EmbeddedBroker, request: pytest.FixtureRequest) -> str:
    """A name of this test alone; the load makes the topic."""
    return embedded.unused_topic_name(request.node.name)[-60:].strip("-")


@pytest.fixture(params=["python", *(["c"] if HAS_COMPILER else [])])
def client(request: pytest.FixtureRequest, tmp_path: Path) -> ReplayClient:
    """Each client there is."""
    return ReplayClient(tmp_path, compiled=request.param == "c")


@pytest.fixture
def quick_folder() -> Iterator[Path]:
    """In memory where that can be, since brokers sync a lot while they start and stop."""
    folder = make_private_folder()
    yield Path(folder)
    remove_private_folder(folder)


@pytest.fixture
def any_client(tmp_path: Path) -> ReplayClient:
    """The cheaper one."""
    return ReplayClient(tmp_path)
