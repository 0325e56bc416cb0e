"""The rules of elections per topic, from the configs of topics and of the cluster."""

from collections.abc import Mapping, Set

from headrace.core.controller.image import MetadataImage
from headrace.core.controller.partition_changes import ElectionRules
from headrace.core.controller.settings import ControllerSettings
from headrace.core.controller.topic_image import TopicImage
from headrace.model.configs import TOPIC_CONFIGS
from headrace.model.configs.layers import BrokerLayers
from headrace.model.ids import NO_NODE, NodeId

_MIN_INSYNC_REPLICAS = TOPIC_CONFIGS.lookup("min.insync.replicas")
_UNCLEAN_ELECTION = TOPIC_CONFIGS.lookup("unclean.leader.election.enable")


class TopicRules:
    """Gives the rules of one decision; topics without configs of their own share them."""

    def __init__(
        self,
        image: MetadataImage,
        settings: ControllerSettings,
        *,
        without: NodeId = NO_NODE,
        including: NodeId = NO_NODE,
        impaired: Set[NodeId] | None = None,
        cluster_configs: Mapping[str, str] | None = None,
    ) -> None:
        """`without` is a broker that the decision takes out of service, `including` one that it puts into service.

        `impaired` and `cluster_configs` are those that the decision sets, for all brokers.
        """
        self._image = image
        self._layers = BrokerLayers(
            static=settings.static_configs,
            dynamic_default=image.cluster_configs() if cluster_configs is None else cluster_configs,
        )
        self._available = frozenset(
            broker.node_id
            for broker in image.brokers.values()
            if (broker.takes_partitions or broker.node_id == including) and broker.node_id != without
        )
        known = (broker.node_id for broker in image.brokers.values() if broker.impaired)
        self._impaired = frozenset(known if impaired is None else impaired)
        self._shared: dict[int, ElectionRules] = {}
        """The rules of topics without configs, by the number of replicas."""

    def of(
        self, topic: TopicImage, configs: Mapping[str, str] | None = None, *, replicas: int | None = None
    ) -> ElectionRules:
        """Return the rules of a topic; `configs` and `replicas` are those that the decision sets."""
        if configs is None:
            configs = self._image.topic_configs(topic.name)
        if replicas is None:
            replicas = topic.replication_factor
        if configs:
            return self._rules(configs, replicas)
        rules = self._shared.get(replicas)
        if rules is None:
            rules = self._shared[replicas] = self._rules(configs, replicas)
        return rules

    def _rules(self, configs: Mapping[str, str], replicas: int) -> ElectionRules:
        minimum = self._layers.topic_value(_MIN_INSYNC_REPLICAS, configs, replicas=replicas)
        assert isinstance(minimum, int)
        return ElectionRules(
            available=self._available,
            impaired=self._impaired,
            min_insync_replicas=minimum,
            unclean=bool(self._layers.topic_value(_UNCLEAN_ELECTION, configs)),
            replicates=self._image.replicates,
        )
