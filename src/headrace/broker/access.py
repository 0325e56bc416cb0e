"""Who may do what. Until access lists exist everybody may, and every request already asks here."""

from headrace.model.access import Operation, Principal, ResourceType


class OpenAccess:
    """Allows everything; `open_to_all` lets the produce and fetch paths skip the question."""

    open_to_all = True

    def authorize(self, principal: Principal, operation: Operation, resource_type: ResourceType, name: str) -> bool:
        return True
