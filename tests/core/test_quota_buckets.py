"""Buckets of quotas: whatever the size of the requests, the long-run rate is the limit."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.core.quotas import accept_rates
from headrace.core.quotas.bucket import Bucket
from headrace.core.quotas.entities import CONNECTION_RATE
from headrace.model.limits import QUOTA_DEBT_MS_MAX

SECOND_MS = 1_000


def test_a_debt_is_paid_at_the_rate_of_the_quota():
    bucket = Bucket(1_000.0, window_s=1, now_ms=0)
    assert bucket.charge(1_000, 0) == 0.0
    assert bucket.charge(500, 0) == 500.0
    assert bucket.debt_ms(200) == pytest.approx(300)
    assert bucket.charge(100, 300) == pytest.approx(300)
    assert bucket.debt_ms(600) == 0.0
    assert not bucket.is_full(1_500)
    assert bucket.is_full(1_600)


def test_a_quiet_client_saves_up_one_window():
    bucket = Bucket(1_000.0, window_s=2, now_ms=0)
    assert bucket.charge(2_000, 0) == 0.0
    assert bucket.charge(2_000, 100 * SECOND_MS) == 0.0
    assert bucket.charge(1, 100 * SECOND_MS) == pytest.approx(1.0)


def test_another_rate_holds_at_once_for_an_old_debt():
    bucket = Bucket(1_000.0, window_s=1, now_ms=0)
    assert bucket.charge(11_000, 0) == 10_000
    bucket.set_rate(10_000, window_s=1, now_ms=0)
    assert bucket.debt_ms(0) == 1_000
    bucket.set_rate(100, window_s=1, now_ms=20_000)
    assert bucket.capacity == 100
    assert bucket.charge(100, 20_000) == 0.0
    assert bucket.charge(1, 20_000) == pytest.approx(10)


def test_a_debt_has_an_end():
    bucket = Bucket(1.0, window_s=1, now_ms=0)
    assert bucket.charge(1e12, 0) == QUOTA_DEBT_MS_MAX
    assert bucket.debt_ms(QUOTA_DEBT_MS_MAX) == 0.0


def test_a_charge_can_be_given_back():
    bucket = Bucket(10.0, window_s=1, now_ms=0)
    bucket.charge(15, 0)
    bucket.give_back(15)
    assert bucket.is_full(0)
    bucket.give_back(100)
    assert bucket.charge(10, 0) == 0.0


def test_a_clock_that_stands_still_or_goes_back_fills_nothing():
    bucket = Bucket(1_000.0, window_s=1, now_ms=1_000)
    assert bucket.charge(1_500, 1_000) == 500
    assert bucket.debt_ms(0) == 500
    assert bucket.debt_ms(1_000) == 500


@settings(max_examples=60, deadline=None)
@given(
    rate=st.floats(10, 1e9),
    sizes=st.lists(st.floats(0.001, 3.0), min_size=1, max_size=20),
    clients=st.integers(1, 5),
    pause_ms=st.floats(0, 50),
)
def test_the_mean_of_eager_clients_is_the_limit(rate, sizes, clients, pause_ms):
    """Clients that send again as soon as they may; sizes in seconds of the quota, and a pause for the network."""
    bucket = Bucket(rate, window_s=1, now_ms=0)
    free_at = [0.0] * clients
    charged: list[tuple[float, float]] = []
    count = 0
    while min(free_at) < 60 * SECOND_MS:
        client = free_at.index(min(free_at))
        now_ms, amount = free_at[client], sizes[count % len(sizes)] * rate
        count += 1
        charged.append((now_ms, amount))
        free_at[client] = now_ms + bucket.charge(amount, now_ms) + max(pause_ms, 0.1)
        if len(charged) > 50_000:
            break
    until_ms = charged[-1][0]
    if until_ms < 55 * SECOND_MS:
        return  # tiny requests with long pauses never reach the limit
    largest = max(sizes) * clients * rate
    for begin_ms, end_ms in ((0, until_ms), (20 * SECOND_MS, 50 * SECOND_MS)):
        total = sum(amount for at, amount in charged if begin_ms <= at < end_ms)
        assert total <= rate * (end_ms - begin_ms) / SECOND_MS + rate + largest
    if all(size * SECOND_MS > pause_ms + 1 for size in sizes):
        total = sum(amount for at, amount in charged if 20 * SECOND_MS <= at < 50 * SECOND_MS)
        assert total >= rate * 30 - rate - largest


# Connections


def test_addresses_that_are_remembered_are_limited(monkeypatch):
    monkeypatch.setattr(accept_rates, "QUOTA_ADDRESSES_MAX", 3)
    rates = accept_rates.AcceptRates()
    rates.follow({(("ip", None),): {CONNECTION_RATE: 1.0}})
    for address in range(10):
        assert rates.admit(f"10.0.0.{address}", 0) == 0.0
        assert rates.admit(f"10.0.0.{address}", 0) == 0.0
        assert rates.admit(f"10.0.0.{address}", 0) == SECOND_MS
        assert rates.admit(f"10.0.0.{address}", 0) == SECOND_MS, "a refused one does not count"
    assert len(rates._addresses) == 3
    rates.follow({})
    assert rates.admit("10.0.0.9", 0) == 0.0
    assert not rates._addresses


def test_the_lower_rate_of_broker_and_listener_decides():
    rates = accept_rates.AcceptRates()
    rates.configure(10, {"A": 1, "B": None}, window_s=1, now_ms=0)
    assert rates.wait_ms("A", 0) == 0.0
    for _ in range(2):
        rates.accepted("A", 0)
    assert rates.wait_ms("A", 0) == SECOND_MS
    assert rates.wait_ms("B", 0) == 0.0
    for _ in range(9):
        rates.accepted("B", 0)
    assert rates.wait_ms("B", 0) == pytest.approx(100)
    rates.configure(None, {"A": 0, "B": None}, window_s=1, now_ms=0)
    assert rates.wait_ms("A", 0) > 0
    assert rates.wait_ms("B", 0) == 0.0
