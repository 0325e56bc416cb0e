"""Authentication by SASL: the users of the cluster, the exchanges of each mechanism, and delays after failed logins."""

from collections.abc import Callable
from functools import partial
from math import inf

from headrace.broker.delegation_tokens import DelegationTokens
from headrace.broker.logs import NodeLogger
from headrace.broker.metrics import Metrics
from headrace.broker.token_keys import TokenKeys
from headrace.core.access.login_throttle import LoginThrottle
from headrace.core.access.oauth_bearer import OAuthBearerLogin
from headrace.core.access.plain import PlainLogin
from headrace.core.access.sasl import Login, Proved, Rejection, SaslSession
from headrace.core.access.scram import (
    MECHANISMS,
    NONCE_BYTES,
    ScramLogin,
    StoredCredential,
    mock_credential,
)
from headrace.core.controller.image import MetadataImage
from headrace.model.access import ScramMechanism
from headrace.model.configs.oauth import OAUTHBEARER
from headrace.model.configs.sasl import PLAIN, SaslConfig
from headrace.ports.clock import Clock
from headrace.ports.entropy import Entropy


class Authentication:
    def __init__(
        self,
        *,
        image: Callable[[], MetadataImage],
        config: Callable[[], SaslConfig],
        token_keys: "partial[TokenKeys]",
        delegation_tokens: DelegationTokens,
        clock: Clock,
        entropy: Entropy,
        metrics: Metrics,
        logger: NodeLogger,
    ) -> None:
        """`token_keys` makes the keys of one identity provider, of its configs."""
        self._image = image
        self._config = config
        self._make_token_keys = token_keys
        self._token_keys: dict[str, TokenKeys] = {}
        """Keys by listener; those that have no configs of their own share the ones of the empty name."""
        self._delegation_tokens = delegation_tokens
        self._clock = clock
        self._entropy = entropy
        self._metrics = metrics
        self._logger = logger
        self._throttle = LoginThrottle()

    @property
    def mechanisms(self) -> tuple[str, ...]:
        return self._config().mechanisms

    def session(self) -> SaslSession:
        """Return the state of a new connection."""
        return SaslSession(self._clock.monotonic_ms())

    def exchange(self, mechanism: str, listener: str) -> Login:
        """Begin the exchange of a mechanism that is served."""
        config = self._config()
        if mechanism == PLAIN:
            return PlainLogin(config.users_of_plain(listener))
        if mechanism == OAUTHBEARER:
            return OAuthBearerLogin(self.token_keys(listener))
        nonce = self._entropy.random_bytes(NONCE_BYTES).hex()
        return ScramLogin(MECHANISMS[mechanism], self, nonce=nonce, tokens=self._delegation_tokens)

    def credential(self, mechanism: ScramMechanism, user: str) -> StoredCredential | None:
        found = self._image().scram.get((user, mechanism))
        if found is None:
            return None
        return StoredCredential(found.salt, found.stored_key, found.server_key, found.iterations)

    def mock(self, mechanism: ScramMechanism, user: str) -> StoredCredential:
        image = self._image()
        users = (name for name, of_mechanism in image.scram if of_mechanism == mechanism)
        first = next(users, None)
        like = None if first is None else self.credential(mechanism, first)
        return mock_credential(mechanism, user, image.login_secret, like)

    def wait_ms(self, user: str, address: str) -> float | None:
        """Return how long the answer to this login waits; None if the login is refused because too many wait."""
        return self._throttle.wait_ms(user, address, self._clock.monotonic_ms())

    def start(self) -> None:
        """Fetch what logins need. Raises ConfigError if they cannot work."""
        config = self._config()
        if OAUTHBEARER in config.mechanisms:
            for listener in ("", *config.listener_oauth):
                if config.oauth_of(listener).keys_url is not None:
                    self.token_keys(listener)

    def token_keys(self, listener: str) -> TokenKeys:
        """Return the keys by which the tokens of clients at a listener are checked."""
        name = listener if listener in self._config().listener_oauth else ""
        found = self._token_keys.get(name)
        if found is None:
            found = self._make_token_keys(config=lambda: self._config().oauth_of(name))
            found.start()
            self._token_keys[name] = found
        return found

    def rejected(self, session: SaslSession, rejection: Rejection, *, address: str) -> None:
        """Note and log a refused token; the client has one more message to send."""
        session.reject(rejection)
        self._note_failure(session, "", address, rejection.reason)

    def failed(self, session: SaslSession, *, user: str, address: str, reason: str) -> None:
        """Note and log a failed login, unless its token was refused before."""
        if session.rejection is None:
            self._note_failure(session, user, address, reason)
        session.refuse()

    def _note_failure(self, session: SaslSession, user: str, address: str, reason: str) -> None:
        self._throttle.failed(user, address, self._clock.monotonic_ms())
        self._metrics.logins_failed += 1
        self._logger.info("authentication failed", user=user, peer=address, mechanism=session.mechanism, reason=reason)

    def succeeded(self, session: SaslSession, proved: Proved, *, address: str) -> float:
        """Admit the client; return the lifetime of its session, infinite if it has no end."""
        self._throttle.succeeded(proved.user, address)
        lifetime_ms = min(self._config().session_ms_max or inf, proved.lifetime_ms)
        session.admit(proved, self._clock.monotonic_ms(), lifetime_ms)
        self._metrics.logins += 1
        return lifetime_ms

    @property
    def failure_delay_ms(self) -> int:
        """Time by which the response to a failed login is delayed."""
        return self._config().failure_delay_ms
