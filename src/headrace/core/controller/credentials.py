"""Decide on SCRAM credentials of users: add, change and remove them (AlterUserScramCredentials)."""

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from headrace.core.access.scram import (
    ITERATIONS_MAX,
    ITERATIONS_MIN,
    USER_LENGTH_MAX,
    credential_of,
)
from headrace.core.controller.commands import ControllerDecision, Refused
from headrace.core.controller.image import MetadataImage
from headrace.core.controller.records import (
    ACCESS_LEVEL,
    METADATA_VERSION,
    LoginSecretRecord,
    Record,
    RemoveScramCredentialRecord,
    ScramCredentialRecord,
)
from headrace.model.access import ScramMechanism
from headrace.model.errors import ErrorCode

CREDENTIALS_PER_REQUEST_MAX = 1_000
CREDENTIALS_MAX = 100_000
"""Credentials of the cluster."""
SALT_BYTES_MAX = 1_024
SALT_BYTES_MIN = 8


class NewCredential(NamedTuple):
    name: str
    mechanism: int
    iterations: int
    salt: bytes
    salted_password: bytes

    def __repr__(self) -> str:
        return f"NewCredential(name={self.name!r}, mechanism={self.mechanism})"


class CredentialToRemove(NamedTuple):
    name: str
    mechanism: int


class CredentialResult(NamedTuple):
    name: str
    error: ErrorCode = ErrorCode.NONE
    message: str | None = None


def alter_credentials(
    image: MetadataImage,
    added: Sequence[NewCredential],
    removed: Sequence[CredentialToRemove],
    *,
    new_secret: bytes,
) -> ControllerDecision[tuple[CredentialResult, ...]]:
    """Give each user one result; a user with an error keeps all credentials. `new_secret` becomes the cluster's login
    secret if it has none.
    """
    changes: list[NewCredential | CredentialToRemove] = [*removed, *added]
    repeated = Counter((change.name, change.mechanism) for change in changes)
    errors: dict[str, Refused] = {}
    records: dict[str, list[Record]] = {}
    for change in changes:
        records.setdefault(change.name, [])
        try:
            _check_request(image, len(changes), len(added))
            if repeated[change.name, change.mechanism] > 1:
                raise Refused(ErrorCode.DUPLICATE_RESOURCE, "the user and mechanism are listed more than once")
            records[change.name].append(_record(image, change))
        except Refused as refusal:
            errors.setdefault(change.name, refusal)
    accepted = [record for name, of_user in records.items() if name not in errors for record in of_user]
    if not image.login_secret and accepted:
        accepted.insert(0, LoginSecretRecord(new_secret))
    return ControllerDecision(
        tuple(accepted),
        tuple(
            CredentialResult(name, errors[name].code, errors[name].message)
            if name in errors
            else CredentialResult(name)
            for name in records
        ),
    )


def _check_request(image: MetadataImage, count: int, added: int) -> None:
    if count > CREDENTIALS_PER_REQUEST_MAX:
        raise Refused(
            ErrorCode.POLICY_VIOLATION,
            f"one request may change at most {CREDENTIALS_PER_REQUEST_MAX} credentials: send several requests",
        )
    if added and len(image.scram) + added > CREDENTIALS_MAX:
        raise Refused(ErrorCode.POLICY_VIOLATION, f"the cluster may have at most {CREDENTIALS_MAX} credentials")
    if image.metadata_version < ACCESS_LEVEL:
        raise Refused(
            ErrorCode.UNSUPPORTED_VERSION,
            f"users need {METADATA_VERSION} {ACCESS_LEVEL}, the cluster is at {image.metadata_version}: raise it by "
            "headrace cluster features",
        )


def _record(image: MetadataImage, change: NewCredential | CredentialToRemove) -> Record:
    if not change.name:
        raise Refused(ErrorCode.UNACCEPTABLE_CREDENTIAL, "a user needs a name")
    if change.mechanism not in list(ScramMechanism):
        raise Refused(
            ErrorCode.UNSUPPORTED_SASL_MECHANISM, "the mechanism is unknown: use SCRAM-SHA-256 (1) or SCRAM-SHA-512 (2)"
        )
    if isinstance(change, CredentialToRemove):
        if (change.name, change.mechanism) not in image.scram:
            raise Refused(ErrorCode.RESOURCE_NOT_FOUND, "the user has no credential of this mechanism")
        return RemoveScramCredentialRecord(change.name, change.mechanism)
    return _new_record(change, ScramMechanism(change.mechanism))


def _new_record(change: NewCredential, mechanism: ScramMechanism) -> ScramCredentialRecord:
    if len(change.name) > USER_LENGTH_MAX or not change.name.isprintable():
        raise Refused(
            ErrorCode.UNACCEPTABLE_CREDENTIAL, f"a name has at most {USER_LENGTH_MAX} characters, all of them printable"
        )
    if not ITERATIONS_MIN <= change.iterations <= ITERATIONS_MAX:
        raise Refused(
            ErrorCode.UNACCEPTABLE_CREDENTIAL,
            f"{change.iterations} iterations are outside the limits of {ITERATIONS_MIN} to {ITERATIONS_MAX}",
        )
    if not SALT_BYTES_MIN <= len(change.salt) <= SALT_BYTES_MAX:
        raise Refused(ErrorCode.UNACCEPTABLE_CREDENTIAL, f"a salt has {SALT_BYTES_MIN} to {SALT_BYTES_MAX} bytes")
    if len(change.salted_password) != mechanism.hash_bytes:
        raise Refused(
            ErrorCode.UNACCEPTABLE_CREDENTIAL,
            f"a salted password of {mechanism.label} has {mechanism.hash_bytes} bytes",
        )
    made = credential_of(mechanism, change.salt, change.salted_password, change.iterations)
    return ScramCredentialRecord(change.name, mechanism, made.salt, made.stored_key, made.server_key, made.iterations)
