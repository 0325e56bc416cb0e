"""Short texts of Raft messages and outcomes, for traces and scenario scripts."""

from headrace.core.raft.effects import Committed, Outcome, ReadAllowed, RequestRefused
from headrace.core.raft.entries import EntryKind, LogEntry
from headrace.core.raft.ids import Voters
from headrace.core.raft.messages import (
    AppendRequest,
    AppendResponse,
    ElectionRequest,
    JoinRequest,
    JoinResponse,
    Message,
    SnapshotRequest,
    SnapshotResponse,
    VoteRequest,
    VoteResponse,
)


def voters_text(voters: Voters) -> str:
    return ",".join(map(str, voters)) or "none"


def entry_text(entry: LogEntry) -> str:
    content = voters_text(entry.voters) if entry.kind is EntryKind.VOTERS else entry.payload.decode()
    return f"{entry.index}@{entry.term}:{content}"


def message_text(message: Message) -> str:
    return f"{message.source} -> {message.to} {_content(message)}"


def _content(message: Message) -> str:
    match message:
        case VoteRequest():
            kind = "pre-vote?" if message.pre_vote else "vote!" if message.forced else "vote?"
            return f"{kind} term {message.term} log {message.last_index}@{message.last_term}"
        case VoteResponse():
            kind = "pre-vote" if message.pre_vote else "vote"
            return f"{kind} {'granted' if message.granted else 'refused'} term {message.term}"
        case AppendRequest():
            entries = " ".join(map(entry_text, message.entries)) or "heartbeat"
            after = f"{message.previous_index}@{message.previous_term}"
            return f"append term {message.term} after {after} commit {message.commit_index} {entries}"
        case AppendResponse():
            hint = "" if message.accepted else f"@{message.hint_term}"
            return f"{'accepted' if message.accepted else 'rejected'} term {message.term} at {message.index}{hint}"
        case SnapshotRequest():
            end = " end" if message.is_last else ""
            size = f"{message.position}+{len(message.chunk)}"
            return f"snapshot term {message.term} {message.snapshot.index}@{message.snapshot.term} bytes {size}{end}"
        case SnapshotResponse():
            return f"snapshot {message.snapshot_index} needs bytes from {message.position} term {message.term}"
        case ElectionRequest():
            return f"start an election term {message.term}"
        case JoinRequest():
            return "join"
        case JoinResponse():
            return f"leader is {'not known' if message.leader is None else message.leader}"


def outcome_text(outcome: Outcome) -> str:
    match outcome:
        case Committed():
            return f"{outcome.ticket} committed at {outcome.index}"
        case ReadAllowed():
            return f"{outcome.ticket} reads at {outcome.index}"
        case RequestRefused():
            leader = "" if outcome.leader is None else f" (leader {outcome.leader})"
            return f"{outcome.ticket} refused: {outcome.reason}{leader}"
        case _:
            return f"{outcome.ticket} transferred"
