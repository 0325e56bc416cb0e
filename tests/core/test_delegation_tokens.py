"""Delegation tokens: their lives as decisions of the controller, their proofs, and logins by SCRAM."""

from base64 import b64encode

import pytest
import scramp
from hypothesis import given
from hypothesis import strategies as st

from headrace.client.core.authentication import ScramExchange
from headrace.core.access.delegation_tokens import TokenIndex
from headrace.core.access.sasl import LoginFailed
from headrace.core.access.scram import ScramLogin, TokenLogin
from headrace.core.controller import delegation_tokens
from headrace.core.controller.delegation_tokens import NewToken, TokenLimits, belongs_to, has_expired
from headrace.core.controller.delta import apply_with_delta, delta_between
from headrace.core.controller.image import MetadataImage
from headrace.core.controller.records import FeatureLevelRecord, decode_record, encode_record
from headrace.model.access import ScramMechanism
from headrace.model.errors import ErrorCode

from .controllers import one_broker

DAY_MS = 86_400_000
LIMITS = TokenLimits(7 * DAY_MS, DAY_MS)
NOW_MS = 1_800_000_000_000
ALICE, BOB, CAROL = "User:alice", "User:bob", "User:carol"
SHA_256, SHA_512 = ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512


def create(controller, owner=ALICE, requester=None, renewers=(), lifetime_ms=-1, token_id="one", now_ms=NOW_MS):
    wanted = NewToken(owner, requester or owner, tuple(renewers), lifetime_ms)
    return controller.carry_out(controller.create_token(wanted, token_id=token_id, limits=LIMITS, now_ms=now_ms))


def renew(controller, principal=ALICE, period_ms=-1, token_id="one", now_ms=NOW_MS):
    return controller.carry_out(controller.renew_token(token_id, principal, period_ms, limits=LIMITS, now_ms=now_ms))


def expire(controller, principal=ALICE, period_ms=-1, token_id="one", now_ms=NOW_MS):
    return controller.carry_out(controller.expire_token(token_id, principal, period_ms, now_ms=now_ms))


# Lives


def test_a_token_expires_after_a_day_and_ends_after_a_week():
    controller = one_broker()
    token = create(controller, requester=BOB, renewers=[CAROL, CAROL]).token
    assert (token.owner, token.requester, token.renewers) == (ALICE, BOB, (CAROL,))
    assert (token.issued_ms, token.expires_ms, token.max_ms) == (NOW_MS, NOW_MS + DAY_MS, NOW_MS + 7 * DAY_MS)
    assert controller.image.tokens == {"one": token}
    assert not has_expired(token, token.expires_ms)
    assert has_expired(token, token.expires_ms + 1)


@pytest.mark.parametrize(
    ("lifetime_ms", "max_ms", "expires_ms"),
    [
        (-1, 7 * DAY_MS, DAY_MS),
        (0, 7 * DAY_MS, DAY_MS),
        (5, 5, 5),
        (2 * DAY_MS, 2 * DAY_MS, DAY_MS),
        (2**63 - 1, 7 * DAY_MS, DAY_MS),
    ],
)
def test_a_shorter_life_may_be_wanted(lifetime_ms, max_ms, expires_ms):
    token = create(one_broker(), lifetime_ms=lifetime_ms).token
    assert (token.max_ms - NOW_MS, token.expires_ms - NOW_MS) == (max_ms, expires_ms)


def test_a_renewal_moves_the_expiry_but_never_beyond_the_end():
    controller = one_broker()
    create(controller, renewers=[CAROL])
    for hours in (12, 35, 58, 81, 104, 127, 150, 167):
        now_ms = NOW_MS + hours * DAY_MS // 24
        expires_ms = renew(controller, CAROL, now_ms=now_ms).token.expires_ms
        assert expires_ms == min(now_ms + DAY_MS, NOW_MS + 7 * DAY_MS)
    assert renew(controller, now_ms=NOW_MS + 7 * DAY_MS + 1).error == ErrorCode.DELEGATION_TOKEN_EXPIRED
    assert renew(controller, period_ms=5).token.expires_ms == NOW_MS + 5


def test_a_token_can_expire_sooner_or_at_once():
    controller = one_broker()
    create(controller)
    assert expire(controller, period_ms=1_000).token.expires_ms == NOW_MS + 1_000
    assert expire(controller, period_ms=2**63 - 1).token.expires_ms == NOW_MS + 7 * DAY_MS
    assert expire(controller, period_ms=0).token.expires_ms == NOW_MS
    late = {"now_ms": NOW_MS + 1}
    assert expire(controller, period_ms=5, **late).error == ErrorCode.DELEGATION_TOKEN_EXPIRED
    assert not expire(controller, period_ms=-1, **late).error
    assert controller.image.tokens == {}
    assert expire(controller).error == ErrorCode.DELEGATION_TOKEN_NOT_FOUND
    assert renew(controller).error == ErrorCode.DELEGATION_TOKEN_NOT_FOUND


def test_only_owner_requester_and_renewers_change_a_token():
    controller = one_broker()
    create(controller, requester=BOB, renewers=[CAROL])
    for principal in (ALICE, BOB, CAROL):
        assert not renew(controller, principal).error
        assert belongs_to(controller.image.tokens["one"], principal)
    for change in (renew, expire):
        assert change(controller, "User:mallory").error == ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH
    assert "one" in controller.image.tokens


@pytest.mark.parametrize(
    ("wanted", "error"),
    [
        ({"renewers": ["Group:x"]}, ErrorCode.INVALID_PRINCIPAL_TYPE),
        ({"owner": "Node:1"}, ErrorCode.INVALID_PRINCIPAL_TYPE),
        ({"owner": "User:"}, ErrorCode.INVALID_REQUEST),
        ({"renewers": ["User:a\nb"]}, ErrorCode.INVALID_REQUEST),
        ({"renewers": ["User:" + "x" * 300]}, ErrorCode.INVALID_REQUEST),
        ({"renewers": [f"User:{number}" for number in range(101)]}, ErrorCode.POLICY_VIOLATION),
    ],
)
def test_wrong_tokens_are_refused(wanted, error):
    controller = one_broker()
    assert create(controller, **wanted).error == error
    assert controller.image.tokens == {}


def test_the_number_of_tokens_is_limited(monkeypatch):
    monkeypatch.setattr(delegation_tokens, "TOKENS_PER_OWNER_MAX", 2)
    monkeypatch.setattr(delegation_tokens, "TOKENS_MAX", 3)
    controller = one_broker()
    results = [create(controller, token_id=str(number)).error for number in range(3)]
    assert results == [ErrorCode.NONE, ErrorCode.NONE, ErrorCode.POLICY_VIOLATION]
    results = [create(controller, owner=f"User:{number}", token_id=f"of {number}").error for number in range(2)]
    assert results == [ErrorCode.NONE, ErrorCode.POLICY_VIOLATION]


def test_an_older_cluster_has_no_tokens():
    controller = one_broker()
    controller.apply(FeatureLevelRecord("metadata.version", 26))
    assert create(controller).error == ErrorCode.UNSUPPORTED_VERSION


def test_expired_tokens_are_removed():
    controller = one_broker()
    for number in range(3):
        create(controller, token_id=str(number), now_ms=NOW_MS + number * 1_000)
    assert controller.carry_out(controller.remove_expired_tokens(now_ms=NOW_MS + DAY_MS + 1_500)) == 2
    assert list(controller.image.tokens) == ["2"]
    assert controller.carry_out(controller.remove_expired_tokens(now_ms=NOW_MS)) == 0


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["create", "renew", "expire", "remove"]), st.integers(-5, 10 * DAY_MS), st.integers(0, 3)
        ),
        max_size=30,
    )
)
def test_a_token_never_outlives_its_end_and_snapshots_keep_all(steps):
    controller, now_ms = one_broker(), NOW_MS
    for number, (verb, amount_ms, token) in enumerate(steps):
        now_ms += max(amount_ms, 0) // 7
        if verb == "create":
            create(controller, lifetime_ms=amount_ms, token_id=f"{token}-{number}", now_ms=now_ms)
        elif verb == "remove":
            controller.carry_out(controller.remove_expired_tokens(now_ms=now_ms))
            assert not any(has_expired(each, now_ms) for each in controller.image.tokens.values())
        elif controller.image.tokens:
            token_id = list(controller.image.tokens)[token % len(controller.image.tokens)]
            {"renew": renew, "expire": expire}[verb](controller, period_ms=amount_ms, token_id=token_id, now_ms=now_ms)
        for each in controller.image.tokens.values():
            assert each.issued_ms <= each.expires_ms <= each.max_ms <= each.issued_ms + 7 * DAY_MS
    copied = MetadataImage()
    for record in controller.image.snapshot_records():
        copied.apply(decode_record(encode_record(record)))
    assert copied == controller.image


def test_changes_of_tokens_are_noticed():
    controller = one_broker()
    before = controller.image.copy()
    create(controller)
    after = controller.image
    assert delta_between(before, after).tokens_changed
    assert not delta_between(after, after.copy()).tokens_changed
    assert apply_with_delta(before, [after.tokens["one"]]).tokens_changed


# Proofs and logins


class Tokens:
    """The tokens of one owner, behind a TokenIndex."""

    are_served = True

    def __init__(self, *token_ids):
        self.index = TokenIndex("the secret of the cluster")
        self.index.follow(token_ids)

    def login(self, mechanism, token_id):
        credential = self.index.credential(mechanism, token_id)
        return None if credential is None else TokenLogin(credential, "alice", 5_000.0)

    def mock(self, mechanism, token_id):
        return self.index.mock(mechanism, token_id)


class NoUsers:
    def credential(self, mechanism, user):
        return None

    def mock(self, mechanism, user):
        raise AssertionError("a login by token does not look for users")


def log_in(mechanism, tokens, token_id, password):
    server = ScramLogin(mechanism, NoUsers(), nonce="server", tokens=tokens)
    client = ScramExchange(mechanism.label, token_id, password, bytes, by_token=True)
    final = client.respond(server.receive(client.first()).message)
    proved = server.receive(final)
    assert client.respond(proved.message) is None
    return proved


@pytest.mark.parametrize("mechanism", list(ScramMechanism))
def test_a_token_logs_in_as_its_owner_until_it_expires(mechanism):
    tokens = Tokens("one", "two")
    proved = log_in(mechanism, tokens, "two", b64encode(tokens.index.proof("two")).decode())
    assert (proved.user, proved.lifetime_ms, proved.by_token) == ("alice", 5_000.0, True)


@pytest.mark.parametrize("token_id", ["one", "three"])
def test_a_wrong_proof_and_an_unknown_token_fail_alike_at_the_end(token_id):
    tokens = Tokens("one", "two")
    with pytest.raises(LoginFailed, match="wrong user or password"):
        log_in(SHA_256, tokens, token_id, b64encode(tokens.index.proof("two")).decode())


def test_a_token_is_no_user_and_its_extension_is_signed():
    tokens = Tokens("one")
    password = b64encode(tokens.index.proof("one")).decode()
    server = ScramLogin(SHA_256, NoUsers(), nonce="server", tokens=tokens)
    client = scramp.ScramClient(["SCRAM-SHA-256"], "one", password)
    first = server.receive(f"{client.get_client_first()},tokenauth=true".encode()).message
    client.set_server_first(first.decode())
    with pytest.raises(LoginFailed, match="wrong user or password"):
        server.receive(client.get_client_final().encode())  # signs a first message without the extension
    for tokens_served in (None, type("Off", (), {"are_served": False})()):
        server = ScramLogin(SHA_256, NoUsers(), nonce="server", tokens=tokens_served)
        with pytest.raises(LoginFailed, match="not served"):
            server.receive(b"n,,n=one,r=x,tokenauth=true")


def test_proofs_depend_on_the_secret_and_follow_the_tokens():
    index = TokenIndex("secret")
    index.follow(["one", "two"])
    assert index.find(index.proof("one")) == "one"
    assert index.find(index.proof("three")) is None
    assert index.find(TokenIndex("another").proof("one")) is None
    assert index.credential(SHA_512, "one") is index.credential(SHA_512, "one")
    index.follow(["two"])
    assert index.find(index.proof("one")) is None
    assert index.credential(SHA_512, "one") is None
    mocked, real = index.mock(SHA_256, "one"), index.credential(SHA_256, "two")
    assert (len(mocked.salt), mocked.iterations) == (len(real.salt), real.iterations)
