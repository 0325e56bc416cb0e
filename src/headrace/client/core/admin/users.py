"""List, add, change and delete the users that authenticate by SCRAM (KIP-554)."""

from collections.abc import Callable, Sequence
from hashlib import pbkdf2_hmac

from headrace.client.core.admin.routing import ask_controller
from headrace.client.core.calls import Operation, ask
from headrace.client.core.cluster import Cluster
from headrace.client.errors import BrokerError, InvalidArgument
from headrace.client.types import NewScramUser, Outcome, ScramCredential, ScramMechanism
from headrace.model.errors import ErrorCode, error_code
from headrace.wire.messages import alter_user_scram_credentials as alter_api
from headrace.wire.messages import describe_user_scram_credentials as describe_api

SALT_BYTES = 16
ITERATIONS_MIN, ITERATIONS_MAX = 4_096, 16_384
"""The limits of Kafka."""

_ALGORITHMS = {ScramMechanism.SCRAM_SHA_256: "sha256", ScramMechanism.SCRAM_SHA_512: "sha512"}


def scram_users(names: Sequence[str] | None) -> Operation[dict[str, tuple[ScramCredential, ...]]]:
    """Return the mechanisms of these users, or of all; a user that does not exist has none."""
    users = (
        None if names is None else tuple(describe_api.DescribeUserScramCredentialsRequestUser(name=n) for n in names)
    )
    reply = yield from ask(describe_api, describe_api.DescribeUserScramCredentialsRequest(users=users))
    if reply.error_code:
        raise BrokerError(reply.error_code, "the users could not be described", reply.error_message)
    found: dict[str, tuple[ScramCredential, ...]] = {}
    for result in reply.results:
        if result.error_code not in (ErrorCode.NONE, ErrorCode.RESOURCE_NOT_FOUND):
            raise BrokerError(result.error_code, f"user {result.user!r} could not be described", result.error_message)
        found[result.user] = tuple(
            ScramCredential(ScramMechanism(each.mechanism), each.iterations) for each in result.credential_infos
        )
    return found


def alter_scram_users(
    cluster: Cluster,
    *,
    added: Sequence[NewScramUser],
    deleted: Sequence[tuple[str, ScramMechanism]],
    random_bytes: Callable[[int], bytes],
) -> Operation[dict[str, Outcome]]:
    """Alter users. The password itself is not sent, only data that verifies it."""
    request = alter_api.AlterUserScramCredentialsRequest(
        deletions=tuple(
            alter_api.AlterUserScramCredentialsRequestDeletion(name=name, mechanism=mechanism)
            for name, mechanism in deleted
        ),
        upsertions=tuple(_upsertion(user, random_bytes(SALT_BYTES)) for user in added),
    )
    reply = yield from ask_controller(
        cluster, alter_api, request, codes=lambda result: (result.error_code for result in result.results)
    )
    return {
        result.user: Outcome(error_code(result.error_code), result.error_message or None) for result in reply.results
    }


def _upsertion(user: NewScramUser, salt: bytes) -> alter_api.AlterUserScramCredentialsRequestUpsertion:
    if not user.name or not user.password:
        raise InvalidArgument("a user needs a name and a password")
    if not ITERATIONS_MIN <= user.iterations <= ITERATIONS_MAX:
        raise InvalidArgument(f"iterations must be {ITERATIONS_MIN} to {ITERATIONS_MAX}, not {user.iterations}")
    algorithm = _ALGORITHMS[ScramMechanism(user.mechanism)]
    return alter_api.AlterUserScramCredentialsRequestUpsertion(
        name=user.name,
        mechanism=user.mechanism,
        iterations=user.iterations,
        salt=salt,
        salted_password=pbkdf2_hmac(algorithm, user.password.encode(), salt, user.iterations),
    )
