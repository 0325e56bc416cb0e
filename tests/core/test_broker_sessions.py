"""Sessions of brokers: heartbeats, timeouts, pauses of the controller, and evidence that a process is gone."""

from hypothesis import given
from hypothesis import strategies as st

from headrace.core.controller.sessions import BrokerSession, BrokerSessions
from headrace.model.ids import NodeId

TIMEOUT_MS = 6_000.0
ONE = BrokerSession(NodeId(1), 10)
TWO = BrokerSession(NodeId(2), 20)


def sessions(*opened: BrokerSession, now_ms: float = 0.0) -> BrokerSessions:
    found = BrokerSessions(TIMEOUT_MS)
    found.expired(now_ms)
    for session in opened:
        found.open(session, now_ms)
    return found


def run(sessions: BrokerSessions, start_ms: float, end_ms: float) -> list[BrokerSession]:
    """Check at every interval, as the host does, and return the sessions that ended."""
    over: list[BrokerSession] = []
    now_ms = start_ms
    while now_ms < end_ms:
        now_ms = min(end_ms, now_ms + sessions.check_interval_ms)
        over += sessions.expired(now_ms)
    return over


def test_a_session_ends_without_heartbeats() -> None:
    found = sessions(ONE)
    assert run(found, 0, TIMEOUT_MS - 1) == []
    assert run(found, TIMEOUT_MS - 1, TIMEOUT_MS) == [ONE]
    assert not found.is_live(ONE.node_id)
    assert run(found, TIMEOUT_MS, 9 * TIMEOUT_MS) == []


def test_heartbeats_keep_a_session() -> None:
    found = sessions(ONE, TWO)
    for now_ms in range(0, 30_000, 1_000):
        found.open(TWO, now_ms)
        over = found.expired(now_ms)
        assert over == ([ONE] if now_ms == TIMEOUT_MS else [])
    assert found.has(TWO)


def test_a_new_epoch_replaces_the_old_session() -> None:
    found = sessions(ONE)
    again = BrokerSession(ONE.node_id, 11)
    run(found, 0, 5_000)
    found.open(again, 5_000)
    assert not found.has(ONE)
    found.close(ONE)
    assert found.has(again)
    assert run(found, 5_000, 10_999) == []
    assert run(found, 10_999, 11_000) == [again]


def test_time_in_which_the_controller_was_paused_does_not_count() -> None:
    found = sessions(ONE)
    run(found, 0, 4_000)
    assert found.expired(64_000) == []  # stopped for a minute: the heartbeats of that time wait to be read
    found.open(ONE, 64_000)
    assert run(found, 64_000, 69_999) == []
    assert run(found, 69_999, 70_000) == [ONE]


def test_a_broker_that_died_before_the_pause_is_still_found() -> None:
    found = sessions(ONE)
    run(found, 0, 4_000)
    found.expired(64_000)
    assert run(found, 64_000, 64_000 + TIMEOUT_MS) == [ONE]


class TestEvidence:
    def test_a_refused_connection_ends_the_session_of_that_epoch(self) -> None:
        found = sessions(ONE, TWO)
        assert found.gone(ONE, refused=True)
        assert not found.is_live(ONE.node_id)
        assert found.has(TWO)
        assert not found.gone(ONE, refused=True)  # it has ended already

    def test_a_reset_alone_ends_nothing(self) -> None:
        found = sessions(ONE)
        assert not found.gone(ONE, refused=False)
        assert found.has(ONE)

    def test_evidence_about_an_earlier_epoch_is_ignored(self) -> None:
        found = sessions(BrokerSession(ONE.node_id, 11))
        assert not found.gone(ONE, refused=True)
        assert found.is_live(ONE.node_id)


@given(
    st.lists(
        st.tuples(st.sampled_from([ONE, TWO]), st.integers(0, 3_000), st.booleans()),
        max_size=40,
    )
)
def test_no_session_ends_before_its_timeout_whatever_happens(steps: list[tuple[BrokerSession, int, bool]]) -> None:
    found = sessions(ONE, TWO)
    heard = {ONE: 0.0, TWO: 0.0}
    now_ms = 0.0
    for session, wait_ms, beats in steps:
        now_ms += wait_ms
        if beats:
            found.open(session, now_ms)
            heard[session] = now_ms
        for over in found.expired(now_ms):
            assert now_ms - heard[over] >= TIMEOUT_MS
