import os
import pathlib
import socket
import threading
import time

import pytest

from headrace.ports.real.disk import RealDisk
from headrace.ports.real.network import RealNetwork
from headrace.ports.real.spawner import ThreadSpawner
from tests.sim.conftest import RealWorldTouched


@pytest.mark.usefixtures("virtual_world_only")
@pytest.mark.parametrize(
    "touch",
    [
        lambda: RealDisk().open("anything", create=True),
        lambda: pathlib.Path("anything").read_text(),
        RealNetwork,
        lambda: socket.create_connection(("127.0.0.1", 1)),
        lambda: ThreadSpawner(lambda: None).submit(lambda: None, lambda result, error: None),
        lambda: threading.Thread(target=lambda: None).start(),
        lambda: time.monotonic(),
        lambda: os.urandom(1),
    ],
)
def test_the_real_world_is_out_of_reach(touch):
    with pytest.raises(RealWorldTouched):
        touch()


def test_the_guard_is_lifted_after_the_test(tmp_path):
    (tmp_path / "file").write_text("x")
    assert time.monotonic() > 0
