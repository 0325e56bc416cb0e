"""Log of refused peers: each reason once per peer, because a node that is refused comes back every second."""

from headrace.broker.logs import NodeLogger

REFUSALS_REMEMBERED_MAX = 256


class RefusalLog:
    def __init__(self, logger: NodeLogger) -> None:
        self._logger = logger
        self._logged: dict[tuple[str, str], None] = {}

    def refused(self, peer: str, reason: str) -> None:
        """Log the reason, unless it was logged for this peer since `accepted`."""
        if (peer, reason) in self._logged:
            return
        if len(self._logged) >= REFUSALS_REMEMBERED_MAX:
            del self._logged[next(iter(self._logged))]
        self._logged[peer, reason] = None
        self._logger.warning(f"no link to another node of the cluster: {reason}", peer=peer)

    def accepted(self, peer: str) -> None:
        """Forget the reasons of a peer that has authenticated."""
        for key in [key for key in self._logged if key[0] == peer]:
            del self._logged[key]
