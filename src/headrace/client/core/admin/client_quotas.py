"""List, set and remove quotas of users, client ids and addresses (KIP-546)."""

from collections.abc import Mapping, Sequence

from headrace.client.core.admin.routing import ask_controller
from headrace.client.core.calls import Operation, ask
from headrace.client.core.cluster import Cluster
from headrace.client.errors import BadResponse, BrokerError, InvalidArgument
from headrace.client.types import EntityQuotas, Outcome
from headrace.core.quotas.entities import ENTITY_TYPES
from headrace.core.quotas.filters import DEFAULT, EXACT, SPECIFIED
from headrace.model.errors import error_code
from headrace.wire.messages import alter_client_quotas as alter_api
from headrace.wire.messages import describe_client_quotas as describe_api


def client_quotas(
    entity: Mapping[str, str | None], *, any_name: Sequence[str], strict: bool
) -> Operation[tuple[EntityQuotas, ...]]:
    for kind in (*entity, *any_name):
        _check_type(kind)
    component = describe_api.DescribeClientQuotasRequestComponent
    request = describe_api.DescribeClientQuotasRequest(
        components=(
            *(
                component(entity_type=kind, match_type=DEFAULT if name is None else EXACT, match=name)
                for kind, name in entity.items()
            ),
            *(component(entity_type=kind, match_type=SPECIFIED, match=None) for kind in any_name),
        ),
        strict=strict,
    )
    reply = yield from ask(describe_api, request)
    if reply.error_code:
        raise BrokerError(reply.error_code, "the quotas could not be listed", reply.error_message)
    return tuple(
        EntityQuotas(
            entity={each.entity_type: each.entity_name for each in entry.entity},
            limits={each.key: each.value for each in entry.values},
        )
        for entry in reply.entries or ()
    )


def alter_client_quotas(
    cluster: Cluster, changes: Sequence[EntityQuotas], *, validate_only: bool
) -> Operation[tuple[Outcome, ...]]:
    request = alter_api.AlterClientQuotasRequest(
        entries=tuple(_entry(change) for change in changes), validate_only=validate_only
    )
    reply = yield from ask_controller(
        cluster, alter_api, request, codes=lambda result: (each.error_code for each in result.entries)
    )
    if len(reply.entries) != len(changes):
        raise BadResponse("the broker did not answer for every entity")
    return tuple(Outcome(error_code(each.error_code), each.error_message or None) for each in reply.entries)


def _entry(change: EntityQuotas) -> alter_api.AlterClientQuotasRequestEntry:
    for kind in change.entity:
        _check_type(kind)
    return alter_api.AlterClientQuotasRequestEntry(
        entity=tuple(
            alter_api.AlterClientQuotasRequestEntity(entity_type=kind, entity_name=name)
            for kind, name in change.entity.items()
        ),
        ops=tuple(
            alter_api.AlterClientQuotasRequestOp(
                key=key, value=0.0 if limit is None else float(limit), remove=limit is None
            )
            for key, limit in change.limits.items()
        ),
    )


def _check_type(kind: str) -> None:
    if kind not in ENTITY_TYPES:
        raise InvalidArgument(f'"{kind}" is no type of entity with quotas: use {", ".join(ENTITY_TYPES)}')
