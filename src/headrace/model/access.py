"""The vocabulary of authorisation: operations and resource types, with Kafka's numbers."""

from enum import IntEnum
from typing import NamedTuple


class Operation(IntEnum):
    ANY = 1
    ALL = 2
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14
    TWO_PHASE_COMMIT = 15


class AclResourceType(IntEnum):
    ANY = 1
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


CLUSTER_NAME = "kafka-cluster"


class Principal(NamedTuple):
    type: str
    name: str

    def __str__(self) -> str:
        return f"{self.type}:{self.name}"


class Requester(NamedTuple):
    """A principal and the address from which it has connected, by which access is decided."""

    principal: Principal
    host: str


USER = "User"
"""The type of the principals of clients."""

ANONYMOUS = Principal(USER, "ANONYMOUS")
LOCAL_REQUESTER = Requester(ANONYMOUS, "")
"""The requester of a command that no client has sent."""


NODE = "Node"
"""The type of the principals of nodes, which no client gets."""


def node_principal(node_id: int) -> Principal:
    """Return the principal of a node of the cluster."""
    return Principal(NODE, str(node_id))


class ScramMechanism(IntEnum):
    """The mechanisms, with the numbers of AlterUserScramCredentials."""

    SCRAM_SHA_256 = 1
    SCRAM_SHA_512 = 2

    @property
    def label(self) -> str:
        return self.name.replace("_", "-")

    @property
    def hash_name(self) -> str:
        return "sha256" if self is ScramMechanism.SCRAM_SHA_256 else "sha512"

    @property
    def hash_bytes(self) -> int:
        return 32 if self is ScramMechanism.SCRAM_SHA_256 else 64
