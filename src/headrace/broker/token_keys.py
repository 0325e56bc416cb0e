"""The public keys by which tokens of OAUTHBEARER are checked, fetched by a helper at intervals and when needed."""

from collections.abc import Callable

from headrace.broker.logs import NodeLogger
from headrace.broker.timers import Timer, Timers
from headrace.core.access.key_refresh import KeyRefresh, RefreshTimes
from headrace.core.access.oauth_bearer import TokenNames, TokenUser, token_user
from headrace.core.access.signed_tokens import (
    SigningKeys,
    TokenRules,
    checked_claims,
    is_installed,
    parse_keys,
)
from headrace.model.configs.definition import ConfigError
from headrace.model.configs.oauth import OAuthConfig
from headrace.model.limits import (
    TOKEN_KEYS_BYTES_MAX,
    TOKEN_KEYS_FILE_INTERVAL_MS,
    TOKEN_KEYS_MS_MAX,
    TOKEN_LOGINS_WAITING_MAX,
)
from headrace.ports.bundle import Ports
from headrace.ports.network import DocumentSource, Network
from headrace.ports.spawner import Lane


class TokenKeys:
    def __init__(self, *, config: Callable[[], OAuthConfig], ports: Ports, timers: Timers, logger: NodeLogger) -> None:
        self._config = config
        self._clock = ports.clock
        self._network = ports.network
        self._spawner = ports.spawner
        self._timers = timers
        self._logger = logger
        self._refresh: KeyRefresh | None = None
        """None while no client needs keys."""
        self._document = b""
        self._keys = SigningKeys(())
        self._next: Timer | None = None
        self._waiting: list[Callable[[], None]] = []
        self._failure = ""
        """Why the last fetch failed, which is logged once."""

    def start(self) -> None:
        """Begin to fetch keys. Raises ConfigError if they could not be used."""
        if self._refresh is not None:
            return
        if not is_installed():
            raise ConfigError('OAUTHBEARER needs a package: pip install "headrace[auth]"')
        config = self._config()
        assert config.keys_url is not None
        if not config.audiences:
            self._logger.warning(
                "OAUTHBEARER accepts tokens that the identity provider has issued for other services: set "
                "sasl.oauthbearer.expected.audience"
            )
        is_file = config.keys_url.startswith("file:")
        self._refresh = KeyRefresh(
            RefreshTimes(
                interval_ms=TOKEN_KEYS_FILE_INTERVAL_MS if is_file else config.refresh_ms,
                retry_ms=config.retry_ms,
                retry_ms_max=config.retry_ms_max,
            )
        )
        self._fetch(self._refresh)

    # Tokens

    def verify(self, token: str) -> TokenUser:
        """Return the user that a token names; raise TokenRefused, or KeyUnknown if `wait` may change that."""
        config = self._config()
        rules = TokenRules(config.issuer, config.audiences, config.clock_skew_s)
        names = TokenNames(config.user_claim, config.scope_claim, config.scopes)
        return token_user(checked_claims(token, self._keys, rules, self._clock.wall_ms() / 1_000), names)

    def remaining_ms(self, user: TokenUser) -> float:
        """Return the time for which a client may keep its connection without another token."""
        return (user.expires_s + self._config().clock_skew_s) * 1_000 - self._clock.wall_ms()

    def wait(self, then: Callable[[], None]) -> bool:
        """Call back after a fetch that may bring an unknown key; return False if none is due, or too many wait."""
        refresh = self._refresh
        if refresh is None or not refresh.may_bring_unknown(self._clock.monotonic_ms()):
            return False
        if len(self._waiting) >= TOKEN_LOGINS_WAITING_MAX:
            return False
        self._waiting.append(then)
        if not refresh.fetching:
            if self._next is not None:
                self._timers.cancel(self._next)
            self._fetch(refresh)
        return True

    # Fetches

    def _fetch(self, refresh: KeyRefresh) -> None:
        config = self._config()
        assert config.keys_url is not None
        refresh.began(self._clock.monotonic_ms())
        source = DocumentSource(config.keys_url, config.authorities, TOKEN_KEYS_BYTES_MAX, TOKEN_KEYS_MS_MAX)
        network, former = self._network, (self._document, self._keys)

        def fetched(result: tuple[bytes, SigningKeys] | None, error: BaseException | None) -> None:
            self._have_fetched(refresh, result, error)

        self._spawner.submit(lambda: _read(network, source, *former), fetched, Lane.KEYS)

    def _have_fetched(
        self, refresh: KeyRefresh, result: tuple[bytes, SigningKeys] | None, error: BaseException | None
    ) -> None:
        if result is None:
            wait_ms = refresh.failed()
            self._report(str(error))
        else:
            wait_ms = refresh.succeeded()
            if self._failure or result[0] != self._document:
                self._logger.info("the keys of the identity provider were read", keys=len(result[1]))
            self._document, self._keys = result
            self._failure = ""
        self._next = self._timers.after(wait_ms, lambda: self._fetch(refresh))
        waiting, self._waiting = self._waiting, []
        for call in waiting:
            call()

    def _report(self, failure: str) -> None:
        if failure != self._failure:
            self._logger.error(
                f"the keys of the identity provider cannot be read: {failure}; "
                f"{len(self._keys) or 'no'} keys are known from before; check sasl.oauthbearer.jwks.endpoint.url"
            )
        self._failure = failure


def _read(network: Network, source: DocumentSource, former: bytes, keys: SigningKeys) -> tuple[bytes, SigningKeys]:
    document = network.fetch(source)
    return document, (keys if document == former else parse_keys(document))
