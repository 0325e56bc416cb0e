"""Access control. Every request asks here; without an authorizer, everything is allowed."""

from collections.abc import Callable, Iterable, Mapping

from headrace.core.access.acls import AccessRule, RuleIndex
from headrace.model.access import NODE, AclResourceType, Operation, Principal
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
        self._decisions: dict[tuple[Principal, str, int, int, str], bool] = {}
        self._is_stale = True

    def rules_changed(self) -> None:
        self._is_stale = True

    def authorize(
        self, principal: Principal, host: str, operation: Operation, resource_type: AclResourceType, name: str
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
            text = str(principal)
            allowed = self._decisions[key] = (
                text in self._super_users or self._index.decide(text, host, operation, resource_type, name).allowed
            )
        return allowed

    def permits_some(
        self, principal: Principal, host: str, operation: Operation, resource_type: AclResourceType
    ) -> bool:
        """Return whether a rule permits the operation on some resource."""
        if self._is_stale:
            self._follow_rules()
        return self._index.permits_some(str(principal), host, operation, resource_type)

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
