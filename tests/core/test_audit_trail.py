"""The decisions of the audit log: every change has a line, and of equal logins and refusals the first and a count."""

from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.core.access.audit import OTHERS, AuditEvent, AuditKind, AuditOutcome, AuditTrail
from headrace.model.limits import AUDIT_COUNTED_MAX, AUDIT_RESOURCES_MAX

WINDOW_MS = 1_000


def event(kind=AuditKind.REFUSAL, *, principal="User:eve", wall_ms=0, resources=("topic t",), errors=("E",)):
    return AuditEvent(
        kind=kind, action="metadata", principal=principal, address="10.0.0.1", listener="PLAINTEXT",
        outcome=AuditOutcome.REFUSED, wall_ms=wall_ms, resources=resources, errors=errors,
    )  # fmt: skip


def test_the_first_refusal_has_a_line_and_equal_ones_are_counted():
    trail = AuditTrail(WINDOW_MS)
    assert trail.note(event(wall_ms=1), 1) == [event(wall_ms=1)]
    assert [trail.note(event(wall_ms=at), at) for at in (5, 10, 15)] == [[], [], []]
    assert trail.note(event(principal="User:mallory", wall_ms=20), 20) == [event(principal="User:mallory", wall_ms=20)]
    assert trail.due(WINDOW_MS) == []
    assert trail.due(WINDOW_MS + 1) == [event(wall_ms=15)._replace(times=3, since_ms=5)]
    assert trail.note(event(wall_ms=1_500), 1_500) == []  # the next window has begun
    assert trail.due(3 * WINDOW_MS) == [event(wall_ms=1_500)._replace(times=1, since_ms=1_500)]
    assert trail.due(5 * WINDOW_MS) == []
    assert trail.next_ms is None
    assert trail.note(event(wall_ms=9), 9_000) == [event(wall_ms=9)]


def test_changes_are_never_counted_together_and_large_ones_have_several_lines():
    trail = AuditTrail(WINDOW_MS)
    change = event(AuditKind.CHANGE)
    assert [trail.note(change, 0) for _ in range(3)] == [[change]] * 3
    names = tuple(map(str, range(2 * AUDIT_RESOURCES_MAX + 1)))
    lines = trail.note(change._replace(resources=names), 0)
    assert [len(line.resources) for line in lines] == [AUDIT_RESOURCES_MAX, AUDIT_RESOURCES_MAX, 1]
    assert tuple(name for line in lines for name in line.resources) == names


def test_many_different_refusals_share_a_line():
    """An attacker who makes up names does not fill the memory of the broker."""
    trail = AuditTrail(WINDOW_MS)
    told = [line for each in range(AUDIT_COUNTED_MAX + 500) for line in trail.note(event(principal=str(each)), each)]
    assert len(told) == AUDIT_COUNTED_MAX + 1
    assert told[-1].principal == OTHERS
    assert len(trail) == AUDIT_COUNTED_MAX + 1
    (counted,) = trail.rest()
    assert (counted.principal, counted.times) == (OTHERS, 499)


EVENTS = st.tuples(
    st.sampled_from(AuditKind), st.sampled_from("ab"), st.integers(0, 3 * WINDOW_MS), st.sampled_from("xy")
)


@settings(max_examples=100)
@given(st.lists(EVENTS, max_size=60))
def test_no_event_is_left_out_of_the_counts(steps):
    trail, now_ms, told = AuditTrail(WINDOW_MS), 0, []
    for kind, principal, passed_ms, resource in steps:
        now_ms += passed_ms
        told += trail.due(now_ms)
        told += trail.note(event(kind, principal=principal, wall_ms=now_ms, resources=(resource,)), now_ms)
    told += trail.rest()
    assert trail.next_ms is None

    def counts(kind):
        return sum(line.times for line in told if line.kind is kind)

    assert {kind: counts(kind) for kind in AuditKind} == {
        kind: sum(step[0] is kind for step in steps) for kind in AuditKind
    }
    assert all(line.times == 1 and line.since_ms is None for line in told if line.kind is AuditKind.CHANGE)
