"""Timeouts that an operator may choose for the metadata quorum, and limits that are fixed."""

from dataclasses import dataclass

VOTERS_MAX = 9
"""Voters of a quorum; every change is synced by more than half of them."""

OBSERVERS_MAX = 1_000
"""Observers that one leader replicates to."""

PROPOSAL_BYTES_MAX = 8 * 1024 * 1024
"""Payload of one proposal."""

PROPOSAL_ENTRIES_MAX = 10_000
"""Entries of one proposal."""

UNCOMMITTED_ENTRIES_MAX = 20_000
"""Entries of a leader's log above its commit index; proposals above it are refused until some are committed."""

UNCOMMITTED_BYTES_MAX = 64 * 1024 * 1024
"""Payload of those entries."""

READS_PENDING_MAX = 10_000
"""Reads that wait for a round of heartbeats."""

APPEND_ENTRIES_MAX = 1_000
"""Entries of one append request."""

APPEND_BYTES_MAX = 1024 * 1024
"""Payload of one append request; a larger entry is sent alone."""

APPENDS_IN_FLIGHT_MAX = 16
"""Append requests with entries that a leader sends to one follower without a response."""

WRITES_PENDING_MAX = 64
"""Writes that wait for their sync; above it a replica drops requests of other replicas, as a slow network would."""

COMMITTED_PER_STEP_MAX = 1_000
"""Committed entries returned in one step; the next step, which is due at once, returns more."""

ENTRIES_KEPT_MAX = 10_000
"""Entries below the newest snapshot that stay in memory, so that a slow follower needs no snapshot."""

ENTRIES_KEPT_BYTES_MAX = 4 * 1024 * 1024
"""Payload of those entries."""

SNAPSHOT_CHUNK_BYTES = 256 * 1024
"""Size of the chunks in which a snapshot is sent."""

SNAPSHOT_CHUNK_BYTES_MAX = 4 * SNAPSHOT_CHUNK_BYTES
"""Largest chunk that a follower accepts."""

PROMOTION_LAG_ENTRIES_MAX = 100
"""Entries that an observer may lack when it is promoted to a voter."""

OBSERVER_SILENCE_TIMEOUTS = 10
"""Election timeouts without a response after which a leader forgets an observer."""

JOINS_PER_ELECTION_TIMEOUT = 10
"""The most requests for the leader that an observer sends in an election timeout."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RaftSettings:
    election_timeout_ms: int = 1_000
    """A follower that hears nothing for this time, plus a random part of up to the same length, requests an
    election.
    """
    heartbeat_ms: int = 200
    append_entries_max: int = APPEND_ENTRIES_MAX
    entries_kept_max: int = ENTRIES_KEPT_MAX

    def __post_init__(self) -> None:
        if not 0 < self.heartbeat_ms * 2 <= self.election_timeout_ms:
            raise ValueError(
                f"the election timeout ({self.election_timeout_ms} ms) must be at least twice the heartbeat interval "
                f"({self.heartbeat_ms} ms)"
            )

    @property
    def join_wait_ms(self) -> int:
        return self.election_timeout_ms // JOINS_PER_ELECTION_TIMEOUT

    @property
    def observer_silence_ms(self) -> int:
        return OBSERVER_SILENCE_TIMEOUTS * self.election_timeout_ms
