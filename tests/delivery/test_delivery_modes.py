"""The promise of each mode, held by the runnable examples through kills of the copy and of the broker."""

import pytest

from tests.delivery.copy_campaign import campaign

pytestmark = [pytest.mark.process, pytest.mark.record_integrity, pytest.mark.timeout(400)]

MESSAGES = 6_000
KILLS = 3


def counts(rows):
    return {key: len(values) for key, values in rows.items()}


def test_at_most_once_writes_nothing_twice(tmp_path):
    copied, sent, kills = campaign(tmp_path, "at_most_once", messages=MESSAGES, kills=KILLS, seed=1)
    assert sum(kills.values()) == 2 * KILLS
    for key, values in copied.items():
        assert len(set(values)) == len(values)
        assert set(values) <= set(sent[key])
    assert sum(counts(copied).values()) < sum(counts(sent).values()), "no kill lost anything: this run shows nothing"


def test_at_least_once_loses_nothing(tmp_path):
    copied, sent, kills = campaign(tmp_path, "at_least_once", messages=MESSAGES, kills=KILLS, seed=2)
    assert sum(kills.values()) == 2 * KILLS
    assert {key: set(values) for key, values in copied.items()} == {key: set(values) for key, values in sent.items()}
    assert sum(counts(copied).values()) > sum(counts(sent).values()), "no kill doubled anything: this run shows nothing"


def test_exactly_once_copies_row_for_row(tmp_path):
    copied, sent, kills = campaign(tmp_path, "exactly_once", messages=MESSAGES, kills=KILLS, seed=3)
    assert sum(kills.values()) == 2 * KILLS
    assert copied == sent
