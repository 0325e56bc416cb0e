"""Three brokers in network namespaces of their own, so that the network between any two can be cut, also one way.

This process routes between the namespaces, so it must have a network namespace of its own too: start it with `PREFIX`.
Packets are dropped by routing rules, which needs iproute2 and root, and no firewall.
"""

import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import TracebackType

from headrace.operations.local_nodes import LocalNode
from headrace.testing import EmbeddedCluster

PREFIX = ("unshare", "--net")
NETWORK = "198.18"
"""Reserved for tests of network devices (RFC 2544)."""
PORT, CLUSTER_PORT = 9092, 9093


def what_lacks() -> str:
    """Return why namespaces cannot be made here; empty if they can."""
    if os.geteuid() != 0:
        return "network namespaces can be made by root only"
    if shutil.which("ip") is None:
        return "there is no ip command: apt-get install iproute2"
    rule = ("ip", "rule", "add", "from", _address(1), "to", _address(2), "blackhole")
    tried = subprocess.run([*PREFIX, *rule], capture_output=True, text=True, timeout=10, check=False)
    return f"this kernel has no network namespaces with routing rules: {tried.stderr}" if tried.returncode else ""


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True, timeout=10)


def _address(node_id: int) -> str:
    return f"{NETWORK}.{node_id}.2"


class IsolatedCluster(EmbeddedCluster):
    def __init__(self, *, data_dir: str, config: Mapping[str, str] | None = None) -> None:
        super().__init__(brokers=3, data_dir=data_dir, config=config)
        self._namespaces = ExitStack()

    def __enter__(self) -> "IsolatedCluster":
        _ip("link", "set", "lo", "up")
        Path("/proc/sys/net/ipv4/ip_forward").write_text("1")
        # A rule that drops packets must not make the kernel suspect those of the other direction.
        Path("/proc/sys/net/ipv4/conf/all/rp_filter").write_text("0")
        Path("/proc/sys/net/ipv4/conf/default/rp_filter").write_text("0")
        try:
            for node_id in (1, 2, 3):
                self._namespaces.enter_context(_namespace(self._name(node_id), node_id))
            super().__enter__()
        except BaseException:
            self._namespaces.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        with self._namespaces:
            super().__exit__(kind, error, traceback)

    def _name(self, node_id: int) -> str:
        return f"headrace-{os.getpid()}-{node_id}"

    def _node(self, node_id: int, folder: str) -> LocalNode:
        return LocalNode(node_id, PORT, CLUSTER_PORT, folder, host=_address(node_id))

    def _command(self, node: LocalNode) -> list[str]:
        return ["ip", "netns", "exec", self._name(node.node_id), *super()._command(node)]

    @contextmanager
    def cut(self, *directions: tuple[int, int]) -> Iterator[None]:
        """Drop all packets from the first broker to the second of each pair while the block runs."""
        with ExitStack() as stack:
            for source, target in directions:
                rule = ("from", _address(source), "to", _address(target), "blackhole")
                _ip("rule", "add", *rule)
                stack.callback(_ip, "rule", "del", *rule)
            yield


@contextmanager
def _namespace(name: str, node_id: int) -> Iterator[None]:
    _ip("netns", "add", name)
    try:
        link = f"broker{node_id}"
        _ip("link", "add", link, "type", "veth", "peer", "name", "eth0", "netns", name)
        _ip("address", "add", f"{NETWORK}.{node_id}.1/24", "dev", link)
        _ip("link", "set", link, "up")
        inside = ("netns", "exec", name, "ip")
        _ip(*inside, "link", "set", "lo", "up")
        _ip(*inside, "address", "add", f"{_address(node_id)}/24", "dev", "eth0")
        _ip(*inside, "link", "set", "eth0", "up")
        _ip(*inside, "route", "add", "default", "via", f"{NETWORK}.{node_id}.1")
        yield
    finally:
        _ip("netns", "delete", name)
