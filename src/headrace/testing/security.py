"""Security of an embedded broker: certificates, users with passwords and access rules, for tests of client settings."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from headrace.client import Admin, NewScramUser, ScramMechanism
from headrace.model.configs.access import STANDARD_AUTHORIZER

LISTENER = "CLIENT"
LOCAL = "LOCAL"
"""The listener without security by which the embedded broker itself creates users and topics."""
CERTIFICATE_DAYS = 1
USERS: Mapping[str, str] = {"alice": "alice-secret"}

_MECHANISMS = {"SCRAM-SHA-256": ScramMechanism.SCRAM_SHA_256, "SCRAM-SHA-512": ScramMechanism.SCRAM_SHA_512}


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerSecurity:
    """TLS and SCRAM by default: `EmbeddedBroker(security=BrokerSecurity())`."""

    users: Mapping[str, str] = field(default_factory=lambda: USERS, repr=False)
    """Passwords by the name of the user."""
    mechanism: Literal["SCRAM-SHA-256", "SCRAM-SHA-512"] = "SCRAM-SHA-512"
    tls: bool = True
    """False for SASL_PLAINTEXT, which needs no certificate."""
    access_rules: bool = False
    """True for an authorizer: users may do only what rules allow, except for `super_users`."""
    super_users: tuple[str, ...] = ()
    """Names of users that may do everything."""

    def __post_init__(self) -> None:
        if not self.users:
            raise ValueError('security without users lets no client in: give users={"alice": "alice-secret"}')
        if self.mechanism not in _MECHANISMS:
            raise ValueError(f'unknown mechanism "{self.mechanism}": use {" or ".join(_MECHANISMS)}')
        strangers = sorted(set(self.super_users) - set(self.users))
        if strangers:
            raise ValueError(f'super user "{strangers[0]}" is not one of the users')

    @property
    def protocol(self) -> str:
        return "SASL_SSL" if self.tls else "SASL_PLAINTEXT"


def prepare(security: BrokerSecurity, folder: Path) -> dict[str, str]:
    """Make the certificates in the folder, and return the configs of the broker."""
    configs = {
        "listeners": f"{LISTENER}://127.0.0.1:0,{LOCAL}://127.0.0.1:0",
        "listener.security.protocol.map": f"{LISTENER}:{security.protocol},{LOCAL}:PLAINTEXT",
        "sasl.enabled.mechanisms": security.mechanism,
        "connection.failed.authentication.delay.ms": "0",
    }
    if security.tls:
        try:
            from headrace.operations.development_ca import init_authority
        except ImportError:
            raise RuntimeError('certificates need a package: pip install "headrace[auth]"') from None
        init_authority(folder, hosts=(), clients=(), days=CERTIFICATE_DAYS)
        configs["ssl.keystore.location"] = str(folder / "broker.pem")
    if security.access_rules:
        # Clients of the listener with SASL have names, so that only the embedded broker itself is ANONYMOUS.
        super_users = ("ANONYMOUS", *security.super_users)
        configs["authorizer.class.name"] = STANDARD_AUTHORIZER
        configs["super.users"] = ";".join(f"User:{name}" for name in super_users)
    return configs


def add_users(security: BrokerSecurity, address: str) -> None:
    """Create the users, at the listener without security."""
    mechanism = _MECHANISMS[security.mechanism]
    users = [NewScramUser(name=name, password=text, mechanism=mechanism) for name, text in security.users.items()]
    with Admin(address) as admin:
        outcomes = admin.alter_scram_users(users)
    for name, outcome in outcomes.items():
        if outcome.error:
            raise ValueError(f'user "{name}" cannot be created: {outcome.message or outcome.error.name}')


def client_settings(
    security: BrokerSecurity | None, folder: Path | None, bootstrap: str, user: str | None
) -> dict[str, str]:
    """Return the settings of a client of one user, by librdkafka's names, which Headrace's own client has too."""
    if security is None:
        if user is not None:
            raise ValueError(f'there is no user "{user}": start the broker with security=BrokerSecurity()')
        return {"bootstrap.servers": bootstrap}
    name = next(iter(security.users)) if user is None else user
    if name not in security.users:
        raise ValueError(f'there is no user "{name}": there are {", ".join(sorted(security.users))}')
    settings = {
        "bootstrap.servers": bootstrap,
        "security.protocol": security.protocol,
        "sasl.mechanism": security.mechanism,
        "sasl.username": name,
        "sasl.password": security.users[name],
    }
    if security.tls:
        assert folder is not None
        settings["ssl.ca.location"] = str(folder / "ca.pem")
    return settings
