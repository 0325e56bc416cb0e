"""Offsets: who may commit what, how long it is kept, and the bytes of the records."""

import pytest

from headrace.core.coordination.machine import RecordRefused
from headrace.core.groups.records import CommittedOffset, GroupMetadata, GroupRecord, MemberMetadata, OffsetRecord
from headrace.core.groups.subscriptions import subscribed_topics
from headrace.model.errors import ErrorCode
from tests.core.manual_clock import WALL_START_MS
from tests.groups.harness import FORMAT, GROUP, Harness

NONE = ErrorCode.NONE
DAY_MS = 24 * 3_600_000
WEEK_MS = 7 * DAY_MS
SUBSCRIPTION = b"\x00\x01\x00\x00\x00\x01\x00\x01t\xff\xff\xff\xff\x00\x00\x00\x00"
"""Of the consumer protocol, version 1: the topic t."""


@pytest.fixture
def harness():
    return Harness(initial_rebalance_delay_ms=0, session_timeout_ms_max=10 * WEEK_MS)


def with_member(harness, **options):
    harness.join("a", required=False, protocols=(("range", SUBSCRIPTION),), **options)
    harness.sync("a", {"a": b"1"})


class TestCommitting:
    def test_consumers_without_membership(self, harness):
        harness.commit("", {("t", 0): 5, ("t", 1): 6})
        assert harness.last("commit") == [NONE, NONE]
        assert harness.fetch([("t", 1), ("t", 0), ("u", 0)]) == {("t", 1): 6, ("t", 0): 5, ("u", 0): None}
        assert harness.fetch() == {("t", 0): 5, ("t", 1): 6}

    def test_not_while_others_are_members(self, harness):
        with_member(harness)
        harness.commit("", {("t", 0): 5})
        assert harness.last("commit") == [ErrorCode.UNKNOWN_MEMBER_ID]
        assert harness.fetch() == {}

    @pytest.mark.parametrize(
        ("generation", "error"), [(0, ErrorCode.ILLEGAL_GENERATION), (2, ErrorCode.ILLEGAL_GENERATION), (1, NONE)]
    )
    def test_members_of_their_generation(self, harness, generation, error):
        with_member(harness)
        harness.commit("a", {("t", 0): 5}, generation=generation)
        assert harness.last("commit") == [error]
        assert harness.fetch() == ({("t", 0): 5} if error is NONE else {})

    def test_not_between_join_and_sync(self, harness):
        harness.join("a", required=False)
        harness.commit("a", {("t", 0): 5})
        assert harness.last("commit") == [ErrorCode.REBALANCE_IN_PROGRESS]

    def test_in_time_before_the_next_generation(self, harness):
        with_member(harness)
        harness.join("b", required=False)
        harness.commit("a", {("t", 0): 5})
        assert harness.last("commit") == [NONE]

    def test_members_of_groups_that_are_gone(self, harness):
        harness.commit("a", {("t", 0): 5}, generation=3)
        assert harness.last("commit") == [ErrorCode.ILLEGAL_GENERATION]
        assert harness.group is None

    def test_notes_have_a_largest_size(self, harness):
        harness.commit("", {("t", 0): 5}, metadata="x" * 4_097)
        assert harness.last("commit") == [ErrorCode.OFFSET_METADATA_TOO_LARGE]
        harness.commit("", {("t", 0): 5}, metadata="é" * 2_048)
        assert harness.last("commit") == [NONE]


class TestKeeping:
    def test_offsets_of_a_dead_group_expire_with_it(self, harness):
        with_member(harness)
        harness.commit("a", {("t", 0): 5})
        harness.leave("a")
        harness.wait(WEEK_MS - DAY_MS)
        assert harness.fetch() == {("t", 0): 5}
        harness.wait(DAY_MS + 600_000)
        assert harness.fetch() == {}
        assert harness.group is None

    def test_a_live_group_keeps_what_it_reads(self, harness):
        with_member(harness, session_ms=3 * WEEK_MS)
        harness.commit("a", {("t", 0): 5, ("old", 0): 7})
        harness.wait(2 * WEEK_MS)
        assert harness.fetch() == {("t", 0): 5}

    def test_without_membership_the_commit_counts(self, harness):
        harness.commit("", {("t", 0): 5})
        harness.wait(4 * DAY_MS)
        harness.commit("", {("t", 1): 5})
        harness.wait(4 * DAY_MS)
        assert harness.fetch() == {("t", 1): 5}

    def test_old_clients_choose_their_retention(self, harness):
        harness.commit("", {("t", 0): 5}, retention_ms=DAY_MS)
        harness.commit("", {("t", 1): 5})
        harness.restart()
        harness.wait(2 * DAY_MS)
        assert harness.fetch() == {("t", 1): 5}

    @pytest.mark.slow
    def test_many_groups_are_looked_at_some_at_a_time(self):
        harness = Harness(offset_check_interval_ms=1_000, offset_retention_ms=500)
        for number in range(250):
            harness.commit("", {("t", 0): 5}, group=f"group {number}")
        harness._pass(1_000)
        counts = []
        for _ in range(3):
            counts.append(len(harness.machine.expire(harness.now()).records))
            harness._pass(1)
        assert counts == [100, 100, 50]


class TestDeleting:
    def test_a_group_without_members(self, harness):
        harness.commit("", {("t", 0): 5})
        assert harness.delete_group() is NONE
        assert harness.fetch() == {}
        assert harness.delete_group() is ErrorCode.GROUP_ID_NOT_FOUND

    def test_not_one_with_members(self, harness):
        with_member(harness)
        assert harness.delete_group() is ErrorCode.NON_EMPTY_GROUP
        harness.leave("a")
        assert harness.delete_group() is NONE
        assert harness.group is None

    def test_offsets_of_topics_that_are_not_read(self, harness):
        with_member(harness)
        harness.commit("a", {("t", 0): 5, ("u", 0): 7})
        assert harness.delete_offsets(("t", 0), ("u", 0), ("u", 9)) == (
            NONE,
            (ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC, NONE, NONE),
        )
        assert harness.fetch() == {("t", 0): 5}

    def test_offsets_of_other_groups(self, harness):
        assert harness.delete_offsets(("t", 0)) == (ErrorCode.GROUP_ID_NOT_FOUND, ())
        harness.join("w", required=False, protocol_type="connect")
        assert harness.delete_offsets(("t", 0)) == (ErrorCode.NON_EMPTY_GROUP, ())

    def test_a_deleted_topic_takes_its_offsets_along(self, harness):
        harness.commit("", {("t", 0): 5, ("u", 0): 7})
        harness.forget_topics(["t"], [GROUP, "other"])
        assert harness.fetch() == {("u", 0): 7}


class TestRecords:
    OFFSET = CommittedOffset(7, 3, "note", WALL_START_MS)
    MEMBER = MemberMetadata("m", "i", "client", "/host", 5, 6, b"subscription", b"assignment")

    def test_keys_and_values_are_kafkas(self):
        key, value = FORMAT.encode(OffsetRecord("g", "t", 2, self.OFFSET))
        assert key == b"\x00\x01\x00\x01g\x00\x01t\x00\x00\x00\x02"
        assert value == b"\x00\x03" + (7).to_bytes(8) + (3).to_bytes(4) + b"\x00\x04note" + WALL_START_MS.to_bytes(8)
        key, value = FORMAT.encode(GroupRecord("g", GroupMetadata("consumer", 4, "range", "m", 9, ())))
        assert key == b"\x00\x02\x00\x01g"
        assert value == (
            b"\x00\x03\x00\x08consumer" + (4).to_bytes(4) + b"\x00\x05range\x00\x01m" + (9).to_bytes(8) + bytes(4)
        )
        assert FORMAT.encode(GroupRecord("g", None)) == (b"\x00\x02\x00\x01g", None)

    @pytest.mark.parametrize(
        ("value", "expected"),
        [
            (b"\x00\x00" + bytes(7) + b"\x05\x00\x01n" + bytes(7) + b"\x09", CommittedOffset(5, -1, "n", 9)),
            (
                b"\x00\x01" + bytes(7) + b"\x05\x00\x01n" + bytes(7) + b"\x09" + bytes(7) + b"\x0a",
                CommittedOffset(5, -1, "n", 9, 10),
            ),
            (b"\x00\x02" + bytes(7) + b"\x05\x00\x01n" + bytes(7) + b"\x09", CommittedOffset(5, -1, "n", 9)),
            (
                b"\x00\x04" + bytes(7) + b"\x05" + bytes(4) + b"\x02n" + bytes(7) + b"\x09\x00",
                CommittedOffset(5, 0, "n", 9),
            ),
        ],
    )
    def test_every_version_of_an_offset_is_read(self, value, expected):
        key, _ = FORMAT.encode(OffsetRecord("g", "t", 2, None))
        assert FORMAT.decode(key, value) == OffsetRecord("g", "t", 2, expected)

    def test_groups_with_members_come_back(self):
        record = GroupRecord("g", GroupMetadata("consumer", 4, "range", "m", 9, (self.MEMBER,)))
        assert FORMAT.decode(*FORMAT.encode(record)) == record

    @pytest.mark.parametrize("key", [b"", b"\x00", b"\x00\x01", b"\x00\x02\x00\x09g", b"\x00\x01\x00\x01g\x00\x01t"])
    def test_keys_that_make_no_sense(self, key):
        with pytest.raises(RecordRefused):
            FORMAT.decode(key, None)

    @pytest.mark.parametrize("value", [b"", b"\x00\x09", b"\x00\x03", b"\x00\x03\x7f\xff", b"\xff\xff"])
    def test_values_that_make_no_sense(self, value):
        for record in (OffsetRecord("g", "t", 2, None), GroupRecord("g", None)):
            key, _ = FORMAT.encode(record)
            with pytest.raises(RecordRefused):
                FORMAT.decode(key, value)

    def test_kinds_of_later_releases_are_passed_over(self):
        assert FORMAT.decode(b"\x00\x63\x00\x01g", b"anything") is None


@pytest.mark.parametrize(
    "subscription", [b"", b"\x00", b"\x00\x01", b"\x00\x01\x7f\xff\xff\xff", b"\xff\xff\x00\x00\x00\x00"]
)
def test_subscriptions_that_are_none(subscription):
    assert subscribed_topics(subscription) is None


def test_the_topics_of_a_subscription():
    assert subscribed_topics(SUBSCRIPTION) == ("t",)
