"""Requests that alter configs: whose resources they may alter, and what became of each."""

from collections.abc import Iterable, Sequence
from typing import Protocol, TypeVar

from headrace.broker.api.authorizing import config_access_error
from headrace.broker.api.context import RequestContext
from headrace.broker.cluster.proposal import ProposalFailed
from headrace.core.controller.commands import ConfigAlteration, ConfigReplacement, ConfigResult
from headrace.model.access import Operation
from headrace.model.errors import ErrorCode


class Resource(Protocol):
    """As a request names it."""

    @property
    def resource_type(self) -> int: ...

    @property
    def resource_name(self) -> str: ...


ResourceT = TypeVar("ResourceT", bound=Resource)


def by_access(ctx: RequestContext, resources: Iterable[ResourceT]) -> tuple[list[ResourceT], list[ConfigResult]]:
    """Those that the client may alter, and the answers for the others."""
    allowed: list[ResourceT] = []
    refused: list[ConfigResult] = []
    for resource in resources:
        key = (resource.resource_type, resource.resource_name)
        error = config_access_error(ctx, Operation.ALTER_CONFIGS, key)
        if error is ErrorCode.NONE:
            allowed.append(resource)
        else:
            refused.append(ConfigResult(*key, error))
    return allowed, refused


def results(
    outcome: tuple[ConfigResult, ...] | ProposalFailed, asked: Sequence[ConfigAlteration | ConfigReplacement]
) -> tuple[ConfigResult, ...]:
    """One for each resource, also when the controller answered none of them."""
    if isinstance(outcome, ProposalFailed):
        return tuple(
            ConfigResult(each.resource_kind, each.resource_name, outcome.code, outcome.message) for each in asked
        )
    return outcome
