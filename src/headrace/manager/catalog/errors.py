"""Errors of changes of the catalog."""

from headrace.operations.errors import OperationError


class NotInCatalog(OperationError):
    """The user, token or rule of the change does not exist."""
