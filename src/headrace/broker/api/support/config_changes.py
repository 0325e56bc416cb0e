"""Changes of configs: the resources that a client may alter, and the result of each."""

from collections.abc import Iterable, Sequence
from typing import Protocol, TypeVar

from headrace.broker.api.context import RequestContext
from headrace.broker.api.support.authorization import config_access_error, stranger_refusal
from headrace.broker.cluster.proposal import ProposalFailed
from headrace.core.controller.commands import ConfigAlteration, ConfigReplacement, ConfigResult
from headrace.core.controller.records import ResourceKind
from headrace.model.access import Operation
from headrace.model.errors import ErrorCode


class Resource(Protocol):
    """A config resource as a request names it."""

    @property
    def resource_type(self) -> int: ...

    @property
    def resource_name(self) -> str: ...


ResourceT = TypeVar("ResourceT", bound=Resource)


def by_access(ctx: RequestContext, resources: Iterable[ResourceT]) -> tuple[list[ResourceT], list[ConfigResult]]:
    """Return the resources that the client may alter, and the results of the others."""
    allowed: list[ResourceT] = []
    refused: list[ConfigResult] = []
    asked = list(resources)
    of_brokers = any(resource.resource_type == ResourceKind.BROKER for resource in asked)
    refusal = stranger_refusal(ctx, "configs of brokers are changed") if of_brokers else None
    for resource in asked:
        key = (resource.resource_type, resource.resource_name)
        error = config_access_error(ctx, Operation.ALTER_CONFIGS, key)
        if error is not ErrorCode.NONE:
            refused.append(ConfigResult(*key, error))
        elif refusal is not None and resource.resource_type == ResourceKind.BROKER:
            refused.append(ConfigResult(*key, ErrorCode.CLUSTER_AUTHORIZATION_FAILED, refusal))
        else:
            allowed.append(resource)
    return allowed, refused


def results(
    outcome: tuple[ConfigResult, ...] | ProposalFailed, asked: Sequence[ConfigAlteration | ConfigReplacement]
) -> tuple[ConfigResult, ...]:
    """Return one result for each resource, also when the controller rejected the whole request."""
    if isinstance(outcome, ProposalFailed):
        return tuple(
            ConfigResult(each.resource_kind, each.resource_name, outcome.code, outcome.message) for each in asked
        )
    return outcome
