"""Send requests about groups and transactional ids to their coordinators."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from headrace.client.core.admin.routing import ATTEMPT_PAUSE_MS
from headrace.client.core.calls import ApiCodec, Call, Operation, Pause
from headrace.client.core.cluster import Cluster, fetch_metadata
from headrace.client.core.groups.coordinator import CoordinatorKind
from headrace.client.errors import BrokerError, ClientError
from headrace.model.errors import ErrorCode
from headrace.wire.messages import find_coordinator as find_coordinator_api

COORDINATOR_ATTEMPTS_MAX = 20
"""Attempts; a coordinator that is being loaded or created is available after a while."""

KEYS_AT_ONCE_MAX = 500
"""Each key is a separate request, and a connection has a limited number in flight."""

COORDINATOR_ERRORS = frozenset(
    {ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR}
)
_KINDS_FROM = 1

_NOUNS = {CoordinatorKind.GROUP: "group", CoordinatorKind.TRANSACTION: "transactional id"}


def ask_all_coordinators(
    cluster: Cluster, api: ApiCodec[Any, Any], request: Any, *, min_version: int, what: str
) -> Operation[Any]:
    """Ask every broker about everything it coordinates; retries while one of them is loading."""
    for attempt in range(COORDINATOR_ATTEMPTS_MAX):
        if attempt:
            yield Pause(ATTEMPT_PAUSE_MS)
        cluster.learn((yield from fetch_metadata(())))
        replies = yield tuple(Call(api, request, node, min_version=min_version) for node in cluster.brokers)
        failed = next((reply for reply in replies if isinstance(reply, ClientError)), None)
        if failed is not None:
            raise failed
        error = next((reply.error_code for reply in replies if reply.error_code), ErrorCode.NONE)
        if error not in COORDINATOR_ERRORS:
            break
    if error:
        raise BrokerError(error, f"{what} could not be listed")
    return replies


def ask_coordinators(
    cluster: Cluster,
    keys: Iterable[str],
    *,
    call: Callable[[str, int], Call],
    codes: Callable[[Any], Iterable[int]],
    kind: CoordinatorKind = CoordinatorKind.GROUP,
) -> Operation[dict[str, tuple[int, Any]]]:
    """Return the coordinator of each key and its response; retries while a coordinator is not ready."""
    done: dict[str, tuple[int, Any]] = {}
    wanted = list(dict.fromkeys(keys))
    for first in range(0, len(wanted), KEYS_AT_ONCE_MAX):
        done |= yield from _ask_some(
            cluster, wanted[first : first + KEYS_AT_ONCE_MAX], call=call, codes=codes, kind=kind
        )
    return done


def _ask_some(
    cluster: Cluster,
    keys: Sequence[str],
    *,
    call: Callable[[str, int], Call],
    codes: Callable[[Any], Iterable[int]],
    kind: CoordinatorKind,
) -> Operation[dict[str, tuple[int, Any]]]:
    done: dict[str, tuple[int, Any]] = {}
    left = list(keys)
    for attempt in range(COORDINATOR_ATTEMPTS_MAX):
        if attempt:
            yield Pause(ATTEMPT_PAUSE_MS)
        found = yield from _coordinators(cluster, left, kind, last=attempt == COORDINATOR_ATTEMPTS_MAX - 1)
        if found:
            replies = yield tuple(call(key, node) for key, node in found.items())
            for (key, node), reply in zip(found.items(), replies, strict=True):
                if isinstance(reply, ClientError):
                    raise reply
                done[key] = (node, reply)
        left = [key for key in left if key not in done or COORDINATOR_ERRORS.intersection(codes(done[key][1]))]
        if not left:
            break
    return done


def _coordinators(
    cluster: Cluster, keys: Sequence[str], kind: CoordinatorKind, *, last: bool
) -> Operation[dict[str, int]]:
    """Look up the nodes that coordinate these keys, for those that have one now."""
    if not cluster.brokers:
        cluster.learn((yield from fetch_metadata(())))
    replies = yield tuple(
        Call(
            find_coordinator_api,
            find_coordinator_api.FindCoordinatorRequest(key=key, key_type=kind, coordinator_keys=(key,)),
            min_version=_KINDS_FROM if kind else 0,
        )
        for key in keys
    )
    results = {}
    for key, reply in zip(keys, replies, strict=True):
        if isinstance(reply, ClientError):
            raise reply
        results[key] = reply.coordinators[0] if reply.coordinators else reply
    if any(not result.error_code and result.node_id not in cluster.brokers for result in results.values()):
        cluster.learn((yield from fetch_metadata(())))  # a broker has joined the cluster since
    found = {}
    for key, result in results.items():
        if not result.error_code and result.node_id in cluster.brokers:
            found[key] = result.node_id
            continue
        code = result.error_code or ErrorCode.COORDINATOR_NOT_AVAILABLE
        if code not in COORDINATOR_ERRORS or last:
            raise BrokerError(code, f'{_NOUNS[kind]} "{key}" has no coordinator', result.error_message)
    return found
