"""The client of the manager's HTTP API, for programs that work with several managers and need no Kafka client."""

from headrace.http.aio import AsyncManagerClient
from headrace.http.blocking import ManagerClient
from headrace.http.errors import ManagerError, ManagersUnreachable

__all__ = ["AsyncManagerClient", "ManagerClient", "ManagerError", "ManagersUnreachable"]
