"""The file with the cluster key: the secret by which the nodes of a cluster recognise each other.

It is created when a cluster is founded, in the directory that holds the metadata, readable by its owner alone. It also
names the cluster, so that a new node with a copy of it knows which cluster it joins.
"""

import base64
import binascii

from headrace.log.checkpoints import PROPERTIES_BYTES_MAX, decode_properties, encode_properties
from headrace.log.errors import CorruptFile, WrongDirectory
from headrace.log.files import make_directory_durably, read_whole, write_atomically
from headrace.log.names import CLUSTER_KEY
from headrace.ports.disk import Disk
from headrace.ports.entropy import Entropy

CLUSTER_ID_BYTES = 16
SECRET_BYTES = 32


class NoClusterKey(WrongDirectory):
    """A node that is to join a cluster has no key for it."""

    def __init__(self, home: str) -> None:
        super().__init__(
            f"this node has peers but no key of their cluster: start it with --join TOKEN (headrace cluster invite on "
            f"a node of the cluster prints one), or copy {CLUSTER_KEY} from a node of the cluster to {home}"
        )


class ClusterKey:
    """The id of a cluster and its secret, which is never printed."""

    __slots__ = ("cluster_id", "secret")

    def __init__(self, cluster_id: str, secret: bytes) -> None:
        assert len(secret) == SECRET_BYTES
        self.cluster_id = cluster_id
        self.secret = secret

    def __repr__(self) -> str:
        return f"ClusterKey({self.cluster_id!r}, ***)"


def new_cluster_id(entropy: Entropy) -> str:
    return base64.urlsafe_b64encode(entropy.random_bytes(CLUSTER_ID_BYTES)).decode().rstrip("=")


def new_cluster_key(entropy: Entropy, cluster_id: str) -> ClusterKey:
    return ClusterKey(cluster_id, entropy.random_bytes(SECRET_BYTES))


def read_cluster_key(disk: Disk, home: str) -> ClusterKey | None:
    """Read the key of the home directory; None if it has none. Raises WrongDirectory if the file is damaged."""
    path = f"{home}/{CLUSTER_KEY}"
    try:
        properties = decode_properties(read_whole(disk, path, PROPERTIES_BYTES_MAX))
        secret = base64.b64decode(properties["cluster.key"], validate=True)
        if len(secret) != SECRET_BYTES or not properties["cluster.id"]:
            raise ValueError(f"the key has {len(secret)} bytes, {SECRET_BYTES} are needed")
        return ClusterKey(properties["cluster.id"], secret)
    except FileNotFoundError:
        return None
    except (CorruptFile, KeyError, ValueError, binascii.Error) as error:
        raise WrongDirectory(
            f"{path} is damaged ({type(error).__name__}); copy it from another node of the cluster"
        ) from error


def write_cluster_key(disk: Disk, home: str, key: ClusterKey) -> None:
    """Write the key durably, and create the home directory if it is missing."""
    make_directory_durably(disk, home)
    properties = {"cluster.id": key.cluster_id, "cluster.key": base64.b64encode(key.secret).decode()}
    write_atomically(disk, f"{home}/{CLUSTER_KEY}", encode_properties(properties), private=True)
