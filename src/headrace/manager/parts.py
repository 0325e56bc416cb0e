"""The parts of a running manager that its routes share."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, cast

from fastapi import Depends, Request

from headrace.manager.cluster_calls import ClusterCalls
from headrace.manager.metrics import ManagerMetrics
from headrace.manager.settings import ManagerSettings

if TYPE_CHECKING:
    from headrace.manager.access.callers import Callers
    from headrace.manager.access.identity_provider import IdentityProvider
    from headrace.manager.access.logins import Logins
    from headrace.manager.access.mask_rules import Masks
    from headrace.manager.catalog.database import Catalog
    from headrace.manager.change_events import ChangeEvents
    from headrace.manager.connection_rates import ClientSamples
    from headrace.manager.feeds import Feeds
    from headrace.manager.keyed_writes import KeyedWrites
    from headrace.manager.overview import Overview
    from headrace.manager.readers import Readers
    from headrace.manager.registrations import Registrations
    from headrace.manager.writers import Writers


@dataclass(frozen=True, slots=True, kw_only=True)
class ManagerParts:
    settings: ManagerSettings
    metrics: ManagerMetrics
    cluster: ClusterCalls
    catalog: "Catalog"
    callers: "Callers"
    logins: "Logins"
    masks: "Masks"
    identity_provider: "IdentityProvider | None"
    writers: "Writers"
    readers: "Readers"
    keyed: "KeyedWrites"
    feeds: "Feeds"
    overview: "Overview"
    clients: "ClientSamples"
    changes: "ChangeEvents"
    registrations: "Registrations"

    def end_streams(self) -> None:
        """End all streams, because the manager stops."""
        self.feeds.end_streams()
        self.changes.end_streams()


def parts_of(request: Request) -> ManagerParts:
    return cast(ManagerParts, request.app.state.parts)


Parts = Annotated[ManagerParts, Depends(parts_of)]
