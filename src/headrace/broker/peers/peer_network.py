"""The connections of a node with the other nodes of its cluster: its listener for them, and its links to them."""

from collections.abc import Callable

from headrace.broker.logs import NodeLogger
from headrace.broker.net.loop import Loop
from headrace.broker.peers.accepted import AcceptedPeers
from headrace.broker.peers.invitations import Invitations
from headrace.broker.peers.links import PeerLinks
from headrace.broker.peers.routes import PeerAddress
from headrace.broker.timers import Timers
from headrace.core.controller.image import MetadataImage
from headrace.core.controller.records import Endpoint
from headrace.core.peers.handshake import PeerIdentity
from headrace.core.raft.message_codec import decode_message, encode_message
from headrace.core.raft.messages import Message
from headrace.log.cluster_key import ClusterKey
from headrace.model.configs.cluster import ClusterConfig
from headrace.model.ids import NodeId
from headrace.ports.bundle import Ports
from headrace.ports.network import ListeningSocket
from headrace.wire.apis import ApiKey, codec
from headrace.wire.codec import PeerCodec
from headrace.wire.errors import ProtocolError
from headrace.wire.replica_fetch import ReplicaFetchCodec

SECURITY_PROTOCOL = "PLAINTEXT"


_REPLICA_FETCH = ReplicaFetchCodec()


def _fetch_codecs(api_key: int) -> PeerCodec:
    return _REPLICA_FETCH if api_key == ApiKey.FETCH else codec(api_key)


class PeerNetwork:
    def __init__(
        self,
        cluster: ClusterConfig,
        *,
        ports: Ports,
        timers: Timers,
        logger: NodeLogger,
        image: Callable[[], MetadataImage],
    ) -> None:
        """`image` returns the committed metadata, which has the addresses of registered nodes."""
        assert cluster.listener is not None
        self._config = cluster.listener
        self._advertised = cluster.advertised_listener or cluster.listener
        self._ports = ports
        self._timers = timers
        self._image = image
        self._logger = logger
        self._bound: list[ListeningSocket] = []
        self.links = PeerLinks(
            bootstrap=[PeerAddress(*peer) for peer in cluster.peers],
            locate=self._registered,
            ports=ports,
            timers=timers,
            logger=logger,
        )
        self.fetch_links = PeerLinks(
            bootstrap=(),
            locate=self._registered,
            ports=ports,
            timers=timers,
            logger=logger,
            codecs=_fetch_codecs,
        )
        """Connections for fetches of followers, which wait at the leader and carry many bytes."""

    def bind(self) -> None:
        """Bind the listener; connections wait in its backlog until `start`."""
        self._bound = self._ports.network.listen(self._config.host, self._config.port)

    def endpoint(self, host_name: str) -> Endpoint:
        """Return the endpoint that other nodes connect to; `host_name` replaces an address that stands for all."""
        host = host_name if self._advertised.any_host else self._advertised.host
        return Endpoint(self._config.name, host, self._advertised.port or self._bound[0].port, SECURITY_PROTOCOL)

    def _registered(self, node_id: NodeId) -> PeerAddress | None:
        broker = self._image().brokers.get(node_id)
        endpoint = broker.endpoints.get(self._config.name) if broker is not None else None
        return None if endpoint is None else PeerAddress(endpoint.host, endpoint.port)

    def invitations(self, key: ClusterKey, host_name: str) -> Invitations:
        """Return the invitations to join, which the listener accepts."""
        return Invitations(
            key,
            endpoint=self.endpoint(host_name),
            clock=self._ports.clock,
            entropy=self._ports.entropy,
            log=self._logger.info,
        )

    def start(self, loop: Loop, *, node_id: NodeId, directory_id: bytes, key: ClusterKey, host_name: str) -> None:
        """Admit other nodes, and find those at the bootstrap addresses."""
        endpoint = self.endpoint(host_name)
        identity = PeerIdentity(
            node_id=node_id,
            directory_id=directory_id,
            cluster_id=key.cluster_id,
            host=endpoint.host,
            port=endpoint.port,
        )
        admission = AcceptedPeers(
            identity=identity,
            key=key.secret,
            loop=loop,
            timers=self._timers,
            entropy=self._ports.entropy,
            refusals=self.links.refusals,
            introduced=self.links.introduced,
        )
        for listener in self._bound:
            loop.add_peer_listener(listener, self._config.name, admission)
        self.links.start(loop, identity=identity, key=key.secret)
        self.fetch_links.start(loop, identity=identity, key=key.secret)

    def send_raft(self, message: Message) -> None:
        """Send a message of the metadata quorum to the node that it names; it may be dropped."""
        self.links.post(message.to.node_id, encode_message(message))

    def raft_receiver(self, deliver: Callable[[Message], None]) -> Callable[[NodeId, bytes], None]:
        """Return a function that decodes the messages of other nodes and delivers them."""

        def receive(source: NodeId, content: bytes) -> None:
            message = decode_message(content)
            if message.source.node_id != source:
                raise ProtocolError(f"node {source} sent a Raft message in the name of {message.source.node_id}")
            deliver(message)

        return receive

    def close(self) -> None:
        self.links.close()
        self.fetch_links.close()
        for listener in self._bound:
            listener.close()
