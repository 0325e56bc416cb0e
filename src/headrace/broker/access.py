"""Access control. Every request asks here; without an authorizer, everything is allowed."""

from collections.abc import Callable, Iterable, Mapping

from headrace.core.access.acls import AccessRule, RuleIndex
from headrace.core.access.rule_text import label
from headrace.model.access import CLUSTER_NAME, NODE, AclResourceType, Operation, Principal, Requester
from headrace.model.addresses import is_loopback
from headrace.model.configs.access import AccessConfig
from headrace.model.configs.listeners import address_text
from headrace.model.limits import ACCESS_DECISIONS_MAX

OPEN_LISTENER = "reachable from other machines without authentication"
OPEN_LISTENER_ADVICE = (
    "everyone who reaches it may read, write and delete every topic: bind it to 127.0.0.1, or let a firewall admit "
    "trusted hosts only"
)
UNENCRYPTED_LOGINS = (
    "is reachable from other machines with SASL_PLAINTEXT: logins and data cross the network unencrypted; use SASL_SSL"
)


class Access:
    """Decides about the requests of clients, by the access rules of the cluster if the broker has an authorizer.

    Decisions are kept until a rule is created or deleted. Nodes of the cluster may do everything.
    """

    def __init__(self, config: AccessConfig, rules: Callable[[], Mapping[bytes, AccessRule]]) -> None:
        """`rules` returns the committed rules."""
        self.open_to_all = not config.has_authorizer
        self._super_users = config.super_users
        self._rules = rules
        self._index = RuleIndex(allows_unruled=config.allows_unruled)
        self._indexed: dict[bytes, AccessRule] = {}
        self._decisions: dict[tuple[Principal, str, int, int, str | None], bool] = {}
        """By principal, host, operation, resource type and name; None for some resource of the type."""
        self._is_stale = True
        self.on_refused: Callable[[Principal, str, str, str], None] = lambda principal, host, action, resource: None
        """Called for `note_refusal`, with an API and a resource such as: topic orders."""

    def rules_changed(self) -> None:
        self._is_stale = True

    def authorize(
        self, principal: Principal, host: str, operation: Operation, resource_type: AclResourceType, name: str
    ) -> bool:
        return self._decide(principal, host, operation, resource_type, name)

    def permits_some(
        self, principal: Principal, host: str, operation: Operation, resource_type: AclResourceType
    ) -> bool:
        """Return whether the operation is permitted on some resource."""
        return self._decide(principal, host, operation, resource_type, None)

    def may_scan(self, client: Requester, topic: str) -> bool:
        """Return whether the client may read the files of the topic itself, without the broker seeing it."""
        return self.authorize(*client, Operation.READ, AclResourceType.TOPIC, topic) and self.authorize(
            *client, Operation.CLUSTER_ACTION, AclResourceType.CLUSTER, CLUSTER_NAME
        )

    def _decide(
        self, principal: Principal, host: str, operation: Operation, resource_type: AclResourceType, name: str | None
    ) -> bool:
        if self.open_to_all or principal.type == NODE:
            return True
        if self._is_stale:
            self._follow_rules()
        key = (principal, host, int(operation), int(resource_type), name)
        allowed = self._decisions.get(key)
        if allowed is None:
            if len(self._decisions) >= ACCESS_DECISIONS_MAX:
                self._decisions.clear()
            text, index = str(principal), self._index
            allowed = self._decisions[key] = text in self._super_users or (
                index.permits_some(text, host, operation, resource_type)
                if name is None
                else index.decide(text, host, operation, resource_type, name).allowed
            )
        return allowed

    def note_refusal(
        self, principal: Principal, host: str, operation: Operation, resource_type: AclResourceType, name: str
    ) -> None:
        action = "produce" if operation is Operation.WRITE else "fetch"
        self.on_refused(principal, host, action, f"{label(AclResourceType, resource_type)} {name}")

    def _follow_rules(self) -> None:
        rules, indexed = self._rules(), self._indexed
        for rule_id in indexed.keys() - rules.keys():
            self._index.remove(indexed[rule_id])
        for rule_id in rules.keys() - indexed.keys():
            self._index.add(rules[rule_id])
        self._indexed = dict(rules)
        self._decisions.clear()
        self._is_stale = False


def open_listeners(bound: Iterable[tuple[str, int]]) -> list[str]:
    """Return HOST:PORT of the listeners that other machines can reach."""
    return [address_text(host, port) for host, port in bound if not is_loopback(host)]
