"""The controller: one method per command, each returning records and a response without changing state.

State changes only by `apply`. The host appends a decision's records, applies them at once, so that the next command
decides on current state, and holds the response until they are committed; when an append fails, it discards this object
and builds another one from the committed records.
"""

from collections.abc import Callable, Sequence

from headrace.core.access.acls import AccessRule, RuleFilter
from headrace.core.controller import (
    access_rules,
    brokers,
    client_quotas,
    configs,
    credentials,
    delegation_tokens,
    elections,
    features,
    isr_changes,
    promotion,
    reassignments,
    replica_faults,
    topics,
)
from headrace.core.controller.commands import (
    PRODUCER_IDS_PER_BLOCK,
    BrokerHeartbeat,
    BrokerRegistration,
    BrokerResult,
    BrokerState,
    ConfigAlteration,
    ConfigReplacement,
    ControllerDecision,
    CreatableTopic,
    IsrAlteration,
    IsrResults,
    NewBroker,
    PartitionGrowth,
    ProducerIdBlock,
    TopicToDelete,
)
from headrace.core.controller.image import MetadataImage
from headrace.core.controller.partition_changes import Election
from headrace.core.controller.records import ProducerIdsRecord, Record
from headrace.core.controller.recoveries import LogEndReports
from headrace.core.controller.settings import ControllerSettings
from headrace.model.ids import NodeId, ProducerId, TopicId

PRODUCER_ID_MAX = 2**63 - 1


class Controller:
    __slots__ = ("image", "settings")

    def __init__(self, image: MetadataImage, settings: ControllerSettings) -> None:
        self.image = image
        self.settings = settings

    def apply(self, record: Record) -> None:
        self.image.apply(record)

    # Topics

    def create_topics(
        self, new_topics: Sequence[CreatableTopic], *, topic_ids: Sequence[TopicId], validate_only: bool = False
    ) -> topics.TopicDecision:
        return topics.create_topics(
            self.image, self.settings, new_topics, topic_ids=topic_ids, validate_only=validate_only
        )

    def delete_topics(self, doomed: Sequence[TopicToDelete]) -> topics.TopicDecision:
        return topics.delete_topics(self.image, self.settings, doomed)

    def create_partitions(
        self, growths: Sequence[PartitionGrowth], *, validate_only: bool = False
    ) -> topics.TopicDecision:
        return topics.create_partitions(self.image, self.settings, growths, validate_only=validate_only)

    # Replicas

    def alter_isrs(self, alteration: IsrAlteration) -> ControllerDecision[IsrResults]:
        return isr_changes.alter_isrs(self.image, self.settings, alteration)

    def elect_leaders(
        self, election: Election, wanted: Sequence[tuple[str, Sequence[int]]] | None
    ) -> elections.ElectionDecision:
        return elections.elect_leaders(self.image, self.settings, election, wanted)

    def reassign(
        self, wanted: Sequence[reassignments.WantedReplicas], *, allow_factor_change: bool = True
    ) -> reassignments.ReassignmentDecision:
        return reassignments.reassign(self.image, self.settings, wanted, allow_factor_change=allow_factor_change)

    def raise_internal_topics(self) -> ControllerDecision[int]:
        return reassignments.raise_internal_topics(self.image, self.settings)

    def recover(self, reports: LogEndReports) -> ControllerDecision[tuple[str, ...]]:
        return reports.recover(self.image, self.settings)

    def exclude_faulty(
        self, node_id: NodeId, broker_epoch: int, faulty: Sequence[replica_faults.FaultyReplica]
    ) -> ControllerDecision[BrokerResult]:
        return replica_faults.exclude_faulty(self.image, self.settings, node_id, broker_epoch, faulty)

    def balance_leaders(self, topic_names: Sequence[str]) -> ControllerDecision[int]:
        return elections.balance_leaders(self.image, self.settings, topic_names)

    # Configs

    def alter_configs(
        self, alterations: Sequence[ConfigAlteration], *, validate_only: bool = False
    ) -> configs.ConfigDecision:
        return configs.alter_configs(self.image, self.settings, alterations, validate_only=validate_only)

    def replace_configs(
        self, replacements: Sequence[ConfigReplacement], *, validate_only: bool = False
    ) -> configs.ConfigDecision:
        return configs.replace_configs(self.image, self.settings, replacements, validate_only=validate_only)

    # Brokers

    def allocate_producer_ids(self, node_id: NodeId) -> ControllerDecision[ProducerIdBlock]:
        """Allocate a block of unused producer ids."""
        block = ProducerIdBlock(
            ProducerId(self.image.next_producer_id), ProducerId(self.image.next_producer_id + PRODUCER_IDS_PER_BLOCK)
        )
        assert block.end <= PRODUCER_ID_MAX, "all producer ids are used up"
        return ControllerDecision((ProducerIdsRecord(node_id, block.end),), block)

    def register_broker(
        self, new: NewBroker, *, cluster_id: str, session_is_live: bool = False
    ) -> ControllerDecision[BrokerRegistration]:
        return brokers.register_broker(
            self.image, self.settings, new, cluster_id=cluster_id, session_is_live=session_is_live
        )

    def heartbeat(
        self, beat: BrokerHeartbeat, *, moves_are_seen: Callable[[], bool] = lambda: True
    ) -> ControllerDecision[BrokerState]:
        return brokers.heartbeat(self.image, self.settings, beat, moves_are_seen=moves_are_seen)

    def fence_broker(self, node_id: NodeId, broker_epoch: int) -> ControllerDecision[BrokerResult]:
        return brokers.fence_broker(self.image, self.settings, node_id, broker_epoch)

    def set_impaired(self, node_id: NodeId, broker_epoch: int, *, impaired: bool) -> ControllerDecision[bool]:
        return brokers.set_impaired(self.image, self.settings, node_id, broker_epoch, impaired=impaired)

    def unregister_broker(self, node_id: NodeId) -> ControllerDecision[BrokerResult]:
        return brokers.unregister_broker(self.image, node_id)

    def set_promotion(self, node_id: NodeId, *, allowed: bool) -> ControllerDecision[None]:
        return promotion.set_promotion(self.image, node_id, allowed=allowed)

    # Users

    def alter_credentials(
        self,
        added: Sequence[credentials.NewCredential],
        removed: Sequence[credentials.CredentialToRemove],
        *,
        new_secret: bytes,
    ) -> ControllerDecision[tuple[credentials.CredentialResult, ...]]:
        return credentials.alter_credentials(self.image, added, removed, new_secret=new_secret)

    # Access rules

    def create_rules(
        self, rules: Sequence[AccessRule], rule_ids: Sequence[bytes]
    ) -> ControllerDecision[tuple[access_rules.RuleResult, ...]]:
        return access_rules.create_rules(self.image, rules, rule_ids)

    def delete_rules(self, filters: Sequence[RuleFilter]) -> ControllerDecision[tuple[access_rules.DeletedRules, ...]]:
        return access_rules.delete_rules(self.image, filters)

    # Quotas

    def alter_quotas(
        self, alterations: Sequence[client_quotas.QuotaAlteration], *, validate_only: bool = False
    ) -> ControllerDecision[tuple[client_quotas.QuotaResult, ...]]:
        return client_quotas.alter_quotas(self.image, alterations, validate_only=validate_only)

    # Delegation tokens

    def create_token(
        self, wanted: delegation_tokens.NewToken, *, token_id: str, limits: delegation_tokens.TokenLimits, now_ms: int
    ) -> ControllerDecision[delegation_tokens.TokenResult]:
        return delegation_tokens.create_token(self.image, wanted, token_id=token_id, limits=limits, now_ms=now_ms)

    def renew_token(
        self, token_id: str, principal: str, period_ms: int, *, limits: delegation_tokens.TokenLimits, now_ms: int
    ) -> ControllerDecision[delegation_tokens.TokenResult]:
        return delegation_tokens.renew_token(self.image, token_id, principal, period_ms, limits=limits, now_ms=now_ms)

    def expire_token(
        self, token_id: str, principal: str, period_ms: int, *, now_ms: int
    ) -> ControllerDecision[delegation_tokens.TokenResult]:
        return delegation_tokens.expire_token(self.image, token_id, principal, period_ms, now_ms=now_ms)

    def remove_expired_tokens(self, *, now_ms: int) -> ControllerDecision[int]:
        return delegation_tokens.remove_expired_tokens(self.image, now_ms=now_ms)

    # Features

    def found_cluster(self) -> ControllerDecision[None]:
        return features.found_cluster(self.image)

    def update_features(
        self, updates: Sequence[features.FeatureUpdate], *, validate_only: bool = False
    ) -> ControllerDecision[tuple[features.FeatureResult, ...]]:
        return features.update_features(self.image, updates, validate_only=validate_only)
