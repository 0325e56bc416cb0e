"""Identities of replicas and log positions of the metadata quorum."""

from typing import NamedTuple, NewType

from headrace.model.ids import NodeId

Term = NewType("Term", int)
Index = NewType("Index", int)
DirectoryId = NewType("DirectoryId", str)

NO_TERM = Term(0)
NO_INDEX = Index(0)
"""The position before the first entry of a log, whose index is 1."""
ANY_DIRECTORY = DirectoryId("")
"""The directory id in the address of a node whose directory is not known; only a join request may carry it."""


class ReplicaKey(NamedTuple):
    """The identity of a replica (KIP-853): a node that lost its data folder returns as another replica."""

    node_id: NodeId
    directory_id: DirectoryId

    def __str__(self) -> str:
        return f"{self.node_id}/{self.directory_id}"


Voters = tuple[ReplicaKey, ...]
"""A voter set, sorted."""


def voter_set(*voters: ReplicaKey) -> Voters:
    return tuple(sorted(voters))
