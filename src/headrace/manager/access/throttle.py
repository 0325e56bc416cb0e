"""The login throttle: failures are counted in the catalog, so that guessing at several managers does not help."""

from sqlalchemy import Connection, case, delete, insert, select, update

from headrace.manager.catalog.tables import login_failures
from headrace.manager.limits import (
    LOGIN_FAILURES_BY_ADDRESS_MAX,
    LOGIN_FAILURES_BY_PAIR_MAX,
    LOGIN_FAILURES_BY_USER_MAX,
    LOGIN_FAILURES_FORGOTTEN_SECONDS,
    LOGIN_WAIT_SECONDS_MAX,
)

WAIT_BITS_MAX = 10


def subjects(user: str, address: str) -> dict[str, int]:
    """Return the keys by which failures are counted, each with the number that is allowed without a pause."""
    return {
        f"pair {user} {address}": LOGIN_FAILURES_BY_PAIR_MAX,
        f"address {address}": LOGIN_FAILURES_BY_ADDRESS_MAX,
        f"user {user}": LOGIN_FAILURES_BY_USER_MAX,
    }


def begin_attempt(connection: Connection, user: str, address: str, *, now: int) -> int:
    """Count an attempt as failed until it succeeds; return the seconds to wait instead if there were too many."""
    oldest_ms = now - LOGIN_FAILURES_FORGOTTEN_SECONDS * 1_000
    connection.execute(delete(login_failures).where(login_failures.c.changed_ms < oldest_ms))
    counted = subjects(user, address)
    found = login_failures.c.subject.in_(counted)
    rows = {row.subject: row for row in connection.execute(select(login_failures).where(found).with_for_update())}
    waits = [_wait_ms(row._mapping["count"] - counted[name], row.changed_ms, now) for name, row in rows.items()]
    if max(waits, default=0) > 0:
        return -(-max(waits) // 1_000)
    for name in counted:
        if name in rows:
            raised = update(login_failures).where(login_failures.c.subject == name)
            connection.execute(raised.values(count=login_failures.c.count + 1, changed_ms=now))
        else:
            connection.execute(insert(login_failures).values(subject=name, count=1, changed_ms=now))
    return 0


def _wait_ms(excess: int, changed_ms: int, now: int) -> int:
    """Return the rest of the pause, which doubles with each failure above the allowed ones."""
    if excess < 0:
        return 0
    pause_ms = min(1 << min(excess, WAIT_BITS_MAX), LOGIN_WAIT_SECONDS_MAX) * 1_000
    return max(changed_ms + pause_ms - now, 0)


def succeed(connection: Connection, user: str, address: str) -> None:
    """Take the attempt back; the user's failures from this address are forgotten."""
    pair, *others = subjects(user, address)
    connection.execute(delete(login_failures).where(login_failures.c.subject == pair))
    fewer = case((login_failures.c.count > 0, login_failures.c.count - 1), else_=0)
    connection.execute(update(login_failures).where(login_failures.c.subject.in_(others)).values(count=fewer))
