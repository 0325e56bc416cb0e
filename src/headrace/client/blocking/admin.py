"""Administration by blocking calls."""

from collections.abc import Iterable, Mapping, Sequence

from headrace.client.blocking.blocking_client import BlockingClient
from headrace.client.core.admin import (
    access,
    brokers,
    changes,
    client_quotas,
    configs,
    connections,
    groups,
    partitions,
    replicas,
    tokens,
    topics,
    transactions,
    users,
)
from headrace.client.core.calls import ANY_BROKER
from headrace.client.core.cluster import fetch_metadata
from headrace.client.errors import InvalidArgument
from headrace.client.types import (
    ApiRange,
    ClientConnection,
    ClusterDescription,
    ClusterInvitation,
    ConfigChange,
    ConfigEntry,
    ConfigResource,
    DelegationToken,
    DeletedRecords,
    EntityQuotas,
    FeatureDescription,
    GroupDescription,
    GroupOffset,
    HangingTransaction,
    IsolationLevel,
    ListedGroup,
    ListedTransaction,
    LogDirDescription,
    MetadataChanges,
    NewScramUser,
    NewTopic,
    OffsetAt,
    Outcome,
    PartitionProducers,
    PartitionReassignment,
    PreparedTransaction,
    QuorumDescription,
    ResourceType,
    ScramCredential,
    ScramMechanism,
    TopicDescription,
    TransactionDescription,
)
from headrace.core.access.acls import AccessRule, RuleFilter
from headrace.model.ids import TopicPartition


class Admin(BlockingClient):
    """Describes and changes a cluster. It sends nothing before the first call; every call ends by `timeout_ms`."""

    def cluster(self, *, include_fenced: bool = False) -> ClusterDescription:
        """Describe the brokers that serve clients; with `include_fenced`, all that are registered."""
        operation = brokers.describe_cluster(self._session.cluster, include_fenced=include_fenced)
        return self._session.run(operation, self._timeout_ms)

    def quorum(self) -> QuorumDescription:
        """Describe the metadata quorum: its leader, which is the active controller, its voters and observers."""
        return self._session.run(brokers.describe_quorum(), self._timeout_ms)

    def add_voter(self, node_id: int, directory_id: bytes) -> None:
        """Make an observer of the metadata quorum a voter; it must have caught up."""
        self._session.run(brokers.add_voter(node_id, directory_id), self._timeout_ms)

    def remove_voter(self, node_id: int, directory_id: bytes) -> None:
        """Remove a voter of the metadata quorum; a controller that runs may be promoted again."""
        self._session.run(brokers.remove_voter(node_id, directory_id), self._timeout_ms)

    def unregister_broker(self, node_id: int) -> None:
        """Remove a broker that is gone for good; one that runs would register again and is refused."""
        self._session.run(brokers.unregister_broker(node_id), self._timeout_ms)

    def features(self) -> tuple[FeatureDescription, ...]:
        """Describe the finalized levels of all features, and the levels that one of the brokers supports."""
        return self._session.run(brokers.features(), self._timeout_ms)

    def update_features(
        self, levels: Mapping[str, int], *, allow_downgrade: bool = False, validate_only: bool = False
    ) -> None:
        """Set the finalized levels of features, all of them or none; 0 turns a feature off.

        A level is raised, or with `allow_downgrade` lowered; every broker must support it.
        """
        operation = brokers.update_features(
            levels, allow_downgrade=allow_downgrade, validate_only=validate_only, timeout_ms=self._timeout_ms
        )
        self._session.run(operation, self._timeout_ms)

    def invite(self, *, lifetime_ms: int) -> ClusterInvitation:
        """Create a token with which one other node may join the cluster, by `headrace broker --join`."""
        return self._session.run(brokers.create_invitation(lifetime_ms), self._timeout_ms)

    def topics(self, names: Sequence[str] | None = None) -> tuple[TopicDescription, ...]:
        """Describe all topics, or these; a topic that does not exist is returned with its error."""
        return self._session.run(topics.topics(self._session.cluster, _names(names)), self._timeout_ms)

    def topic_partitions(self, names: Sequence[str]) -> tuple[TopicDescription, ...]:
        """Describe these topics page by page, including the eligible leader replicas outside the ISR."""
        return self._session.run(topics.topic_partitions(_names(names) or ()), self._timeout_ms)

    def create_topics(self, new: Sequence[NewTopic], *, validate_only: bool = False) -> dict[str, Outcome]:
        operation = topics.create_topics(
            self._session.cluster, new, validate_only=validate_only, timeout_ms=self._timeout_ms
        )
        return self._session.run(operation, self._timeout_ms)

    def delete_topics(self, names: Sequence[str]) -> dict[str, Outcome]:
        operation = topics.delete_topics(self._session.cluster, _names(names) or (), timeout_ms=self._timeout_ms)
        return self._session.run(operation, self._timeout_ms)

    def create_partitions(self, totals: Mapping[str, int], *, validate_only: bool = False) -> dict[str, Outcome]:
        """Increase the number of partitions of topics to these totals."""
        operation = topics.create_partitions(
            self._session.cluster, totals, validate_only=validate_only, timeout_ms=self._timeout_ms
        )
        return self._session.run(operation, self._timeout_ms)

    def elect_leaders(
        self, which: Sequence[TopicPartition] | None = None, *, unclean: bool = False
    ) -> dict[TopicPartition, Outcome]:
        """Elect the preferred leaders of partitions, of all partitions by default.

        With `unclean`, elect any live replica of partitions that have no leader: it may lack acknowledged records.
        """
        operation = replicas.elect_leaders(self._session.cluster, which, unclean=unclean, timeout_ms=self._timeout_ms)
        return self._session.run(operation, self._timeout_ms)

    def reassign_partitions(
        self, targets: Mapping[TopicPartition, Sequence[int] | None]
    ) -> dict[TopicPartition, Outcome]:
        """Move partitions to these brokers, the preferred leader first; None stops a move that is under way."""
        operation = replicas.reassign_partitions(self._session.cluster, targets, timeout_ms=self._timeout_ms)
        return self._session.run(operation, self._timeout_ms)

    def reassignments(self) -> dict[TopicPartition, PartitionReassignment]:
        """List the partitions that are being moved."""
        operation = replicas.list_reassignments(self._session.cluster, timeout_ms=self._timeout_ms)
        return self._session.run(operation, self._timeout_ms)

    def delete_records(self, before: Mapping[TopicPartition, int]) -> dict[TopicPartition, DeletedRecords]:
        """Delete the records below the offset; -1 stands for the high watermark."""
        operation = partitions.delete_records(self._session.cluster, before, timeout_ms=self._timeout_ms)
        return self._session.run(operation, self._timeout_ms)

    def describe_configs(
        self, resources: Iterable[tuple[int, str]], *, with_documentation: bool = False
    ) -> dict[ConfigResource, tuple[ConfigEntry, ...]]:
        operation = configs.describe_configs(self._session.cluster, resources, with_documentation=with_documentation)
        return self._session.run(operation, self._timeout_ms)

    def config_resources(self, types: Iterable[ResourceType] = ()) -> tuple[ConfigResource, ...]:
        """List the resources that have configs: topics, brokers, groups; only of these types if any are given."""
        return self._session.run(configs.config_resources(types), self._timeout_ms)

    def alter_configs(
        self, changes: Mapping[tuple[int, str], Sequence[ConfigChange]], *, validate_only: bool = False
    ) -> dict[ConfigResource, Outcome]:
        """Set, delete, append to or subtract from single configs."""
        operation = configs.alter_configs(self._session.cluster, changes, validate_only=validate_only)
        return self._session.run(operation, self._timeout_ms)

    def offsets(
        self, times: Mapping[TopicPartition, int], *, isolation: IsolationLevel = IsolationLevel.READ_UNCOMMITTED
    ) -> dict[TopicPartition, OffsetAt]:
        """Look up the offset at EARLIEST, LATEST or MAX_TIMESTAMP, or at or after a time in milliseconds.

        With READ_COMMITTED, LATEST is the last stable offset, where readers of committed records stop.
        """
        operation = partitions.offsets(self._session.cluster, times, timeout_ms=self._timeout_ms, isolation=isolation)
        return self._session.run(operation, self._timeout_ms)

    def metadata_changes(self, after_version: int = -1, *, wait_ms: int = 0) -> MetadataChanges:
        """Return what changed after a version of the metadata, as soon as something does; without one, the version.

        A broker remembers the latest changes only, and only while clients ask. Brokers of Headrace only.
        """
        operation = changes.metadata_changes(after_version, wait_ms)
        return self._session.run(operation, self._timeout_ms + wait_ms)

    def connections(self) -> tuple[ClientConnection, ...]:
        """Describe the clients that are connected to the brokers, this one too. Brokers of Headrace only."""
        return self._session.run(connections.connections(self._session.cluster), self._timeout_ms)

    def log_dirs(self, nodes: Iterable[int] | None = None) -> tuple[LogDirDescription, ...]:
        return self._session.run(brokers.log_dirs(self._session.cluster, nodes), self._timeout_ms)

    def producers(self, wanted: Iterable[TopicPartition]) -> dict[TopicPartition, PartitionProducers]:
        return self._session.run(partitions.producers(self._session.cluster, wanted), self._timeout_ms)

    def groups(self, *, states: Sequence[str] = (), types: Sequence[str] = ()) -> tuple[ListedGroup, ...]:
        """List all groups, or those in these states and of these types."""
        operation = groups.list_groups(self._session.cluster, states=states, types=types)
        return self._session.run(operation, self._timeout_ms)

    def describe_groups(self, names: Sequence[str]) -> dict[str, GroupDescription]:
        """Describe groups; a group that does not exist has the state Dead."""
        return self._session.run(groups.describe_groups(self._session.cluster, names), self._timeout_ms)

    def group_offsets(self, group: str) -> dict[TopicPartition, GroupOffset]:
        return self._session.run(groups.offsets(self._session.cluster, group), self._timeout_ms)

    def commit_group_offsets(self, group: str, wanted: Mapping[TopicPartition, int]) -> dict[TopicPartition, Outcome]:
        """Set the committed offsets of a group without members."""
        return self._session.run(groups.commit_offsets(self._session.cluster, group, wanted), self._timeout_ms)

    def delete_group_offsets(self, group: str, doomed: Iterable[TopicPartition]) -> dict[TopicPartition, Outcome]:
        return self._session.run(groups.delete_offsets(self._session.cluster, group, doomed), self._timeout_ms)

    def delete_groups(self, names: Sequence[str]) -> dict[str, Outcome]:
        return self._session.run(groups.delete_groups(self._session.cluster, names), self._timeout_ms)

    def remove_group_members(
        self, group: str, *, member_ids: Sequence[str] = (), instance_ids: Sequence[str] = ()
    ) -> dict[str, Outcome]:
        """Remove these members from a classic group; static members by their instance ids."""
        operation = groups.remove_members(
            self._session.cluster, group, member_ids=member_ids, instance_ids=instance_ids
        )
        return self._session.run(operation, self._timeout_ms)

    def transactions(
        self,
        *,
        states: Sequence[str] = (),
        producer_ids: Sequence[int] = (),
        duration_ms: int | None = None,
        pattern: str | None = None,
    ) -> tuple[ListedTransaction, ...]:
        """List all transactional ids, or those that match; `duration_ms` selects transactions open for longer."""
        operation = transactions.list_transactions(
            self._session.cluster, states=states, producer_ids=producer_ids, duration_ms=duration_ms, pattern=pattern
        )
        return self._session.run(operation, self._timeout_ms)

    def describe_transactions(self, transactional_ids: Sequence[str]) -> dict[str, TransactionDescription]:
        """Describe transactions; an unknown id is returned with its error."""
        operation = transactions.describe_transactions(self._session.cluster, transactional_ids)
        return self._session.run(operation, self._timeout_ms)

    def fence_producers(self, transactional_ids: Sequence[str]) -> dict[str, Outcome]:
        """Abort the open transactions of these ids; their previous producers are fenced and can write no more."""
        operation = transactions.fence_producers(self._session.cluster, transactional_ids)
        return self._session.run(operation, self._timeout_ms)

    def end_transaction(self, prepared: PreparedTransaction, *, commit: bool) -> None:
        """Commit or abort a transaction that a producer handed over; safe to repeat if the response was lost."""
        operation = transactions.end_transaction(self._session.cluster, prepared, commit=commit)
        self._session.run(operation, self._timeout_ms)

    def hanging_transactions(self, wanted: Iterable[TopicPartition]) -> tuple[HangingTransaction, ...]:
        """List the transactions open in these partitions that no coordinator will end."""
        operation = transactions.hanging_transactions(self._session.cluster, wanted)
        return self._session.run(operation, self._timeout_ms)

    def abort_hanging(self, hanging: Iterable[HangingTransaction]) -> dict[HangingTransaction, Outcome]:
        return self._session.run(transactions.abort_hanging(self._session.cluster, hanging), self._timeout_ms)

    def access_rules(self, wanted: RuleFilter) -> tuple[AccessRule, ...]:
        """List the access rules that a filter matches."""
        return self._session.run(access.access_rules(wanted), self._timeout_ms)

    def create_access_rules(self, rules: Sequence[AccessRule]) -> dict[AccessRule, Outcome]:
        """Create access rules; one that exists already counts as created."""
        return self._session.run(access.create_access_rules(self._session.cluster, rules), self._timeout_ms)

    def delete_access_rules(self, wanted: RuleFilter) -> tuple[AccessRule, ...]:
        """Delete the access rules that a filter matches, and return them."""
        return self._session.run(access.delete_access_rules(self._session.cluster, wanted), self._timeout_ms)

    def client_quotas(
        self, entity: Mapping[str, str | None] | None = None, *, any_name: Sequence[str] = (), strict: bool = False
    ) -> tuple[EntityQuotas, ...]:
        """List quotas; by default all.

        `entity` has names by type, None being the default; entities must have these names. `any_name` are types that
        entities must have with whatever name. With `strict`, entities have no other type.
        """
        operation = client_quotas.client_quotas(entity or {}, any_name=any_name, strict=strict)
        return self._session.run(operation, self._timeout_ms)

    def alter_client_quotas(
        self, changes: Sequence[EntityQuotas], *, validate_only: bool = False
    ) -> tuple[Outcome, ...]:
        """Set and remove quotas; return an outcome for each entity, in order."""
        operation = client_quotas.alter_client_quotas(self._session.cluster, changes, validate_only=validate_only)
        return self._session.run(operation, self._timeout_ms)

    def scram_users(self, names: Sequence[str] | None = None) -> dict[str, tuple[ScramCredential, ...]]:
        """List the users that authenticate by SCRAM, or these; needs a broker that stores users."""
        return self._session.run(users.scram_users(_names(names)), self._timeout_ms)

    def alter_scram_users(
        self, added: Sequence[NewScramUser] = (), *, deleted: Sequence[tuple[str, ScramMechanism]] = ()
    ) -> dict[str, Outcome]:
        """Add users, change their passwords, or remove mechanisms from users."""
        operation = users.alter_scram_users(
            self._session.cluster, added=added, deleted=deleted, random_bytes=self._session.entropy.random_bytes
        )
        return self._session.run(operation, self._timeout_ms)

    def create_delegation_token(
        self, owner: str | None = None, *, renewers: Sequence[str] = (), lifetime_ms: int | None = None
    ) -> DelegationToken:
        """Create a token with which clients log in as the caller, or as another owner such as User:alice."""
        operation = tokens.create_token(self._session.cluster, owner=owner, renewers=renewers, lifetime_ms=lifetime_ms)
        return self._session.run(operation, self._timeout_ms)

    def renew_delegation_token(self, proof: bytes, *, period_ms: int | None = None) -> int:
        """Let a token expire later, after the longest period by default; return the time in milliseconds."""
        operation = tokens.renew_token(self._session.cluster, proof, period_ms=period_ms)
        return self._session.run(operation, self._timeout_ms)

    def expire_delegation_token(self, proof: bytes, *, period_ms: int | None = None) -> int:
        """Let a token expire after a period, by default at once; return the time in milliseconds."""
        operation = tokens.expire_token(self._session.cluster, proof, period_ms=period_ms)
        return self._session.run(operation, self._timeout_ms)

    def delegation_tokens(self, owners: Sequence[str] | None = None) -> tuple[DelegationToken, ...]:
        """List the tokens that the caller may see, of all owners or of these."""
        return self._session.run(tokens.tokens(owners), self._timeout_ms)

    def api_versions(self, node: int | None = None) -> tuple[ApiRange, ...]:
        """Return the API versions that a broker serves, by API key; of any broker unless a node is given."""
        target = ANY_BROKER if node is None else node
        if target != ANY_BROKER and target not in self._session.cluster.brokers:
            self.cluster()
        self._session.run(fetch_metadata((), target=target), self._timeout_ms)
        return tuple(sorted(ApiRange(*entry) for entry in self._session.links.versions_of(target).values()))


def _names(names: Sequence[str] | None) -> Sequence[str] | None:
    if isinstance(names, str):
        raise InvalidArgument(f"topic names are given as a list, as in [{names!r}]")
    return names
