"""Delegation tokens on this node: found by their proofs, used for logins, and removed when they have expired."""

from collections.abc import Callable, Mapping

from headrace.broker.timers import Timers
from headrace.core.access.delegation_tokens import TokenIndex
from headrace.core.access.scram import StoredCredential, TokenLogin
from headrace.core.controller.delegation_tokens import TokenLimits, has_expired
from headrace.core.controller.records import DelegationTokenRecord
from headrace.model.access import USER, ScramMechanism
from headrace.model.configs.delegation_tokens import TokenConfig
from headrace.ports.clock import Clock


class DelegationTokens:
    def __init__(
        self,
        config: TokenConfig,
        *,
        tokens: Callable[[], Mapping[str, DelegationTokenRecord]],
        remove_expired: Callable[[int], object],
        clock: Clock,
        timers: Timers,
    ) -> None:
        """`tokens` returns the committed ones; `remove_expired` gets the time when some have expired."""
        self._config = config
        self._tokens = tokens
        self._clock = clock
        self._timers = timers
        self._index = TokenIndex(config.secret or "")
        self._is_stale = True
        self._remove_expired = remove_expired

    @property
    def are_served(self) -> bool:
        return self._config.secret is not None

    @property
    def limits(self) -> TokenLimits:
        return TokenLimits(self._config.lifetime_ms_max, self._config.renewal_ms_max)

    def start(self) -> None:
        """Begin to look for expired tokens."""
        if self.are_served:
            self._timers.after(self._config.check_interval_ms, self._check)

    def _check(self) -> None:
        self.start()
        now_ms = self._clock.wall_ms()
        if any(has_expired(token, now_ms) for token in self._tokens().values()):
            self._remove_expired(now_ms)

    def changed(self) -> None:
        self._is_stale = True

    def _current(self) -> TokenIndex:
        if self._is_stale:
            self._index.follow(self._tokens())
            self._is_stale = False
        return self._index

    # Proofs

    def find(self, proof: bytes) -> str:
        """Return the id of a token; empty if there is none with this proof."""
        return self._current().find(proof) or ""

    def proof(self, token_id: str) -> bytes:
        return self._index.proof(token_id)

    # Logins

    def login(self, mechanism: ScramMechanism, token_id: str) -> TokenLogin | None:
        """Return how a client logs in with a token; None if there is no such token any more."""
        token, credential = self._tokens().get(token_id), self._current().credential(mechanism, token_id)
        if token is None or credential is None:
            return None
        remaining_ms = min(token.expires_ms, token.max_ms) - self._clock.wall_ms()
        return TokenLogin(credential, token.owner.removeprefix(f"{USER}:"), remaining_ms) if remaining_ms > 0 else None

    def mock(self, mechanism: ScramMechanism, token_id: str) -> StoredCredential:
        return self._index.mock(mechanism, token_id)
