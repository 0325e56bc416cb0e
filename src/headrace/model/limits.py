"""Limits of queues, buffers and waits of the broker that no config sets. Units last."""

RECEIVE_ARENA_BYTES = 1 << 20
"""Size of the shared arena into which the small frames of one turn are received."""

RECEIVE_ONCE_BYTES = 256 << 10
"""Most bytes read from one connection in one turn, so that a fast sender does not starve the rest."""

LARGE_FRAME_BYTES = 128 << 10
"""A larger frame gets its own pooled buffer instead of the arena."""

LARGE_FRAME_ONCE_BYTES = 64 << 10
"""Most bytes read of a large frame in one turn, unless it is a Produce request or comes from another node:
those are read as they arrive.
"""

LARGE_FRAME_BEGUN_BYTES = 16 << 10
"""Bytes of a large frame that must have arrived before it gets a buffer: a declared length alone gets none."""

LARGE_FRAME_FIRST_BYTES = 64 << 10
"""The smallest buffer of a large frame: buffers grow with the bytes received."""

FRAME_STALLED_MS = 1_000
"""A large frame that has not grown for this time loses its buffer when other connections need one."""

FRAME_PROGRESS_PARTS = 128
"""A large frame counts as growing when a part of its buffer arrives within FRAME_STALLED_MS; this is the number of
parts of a buffer.
"""

FRAME_PROGRESS_BYTES_MIN = 16 << 10
"""The smallest such part."""

WAITING_FRAMES_PER_TURN = 8
"""Connections that wait for a buffer and retry in one turn."""

POOLED_BUFFERS_BYTES_MAX = 64 << 20
"""Freed large buffers kept for reuse; beyond this they are returned to the system, and so are those that were not used
for POOLED_BUFFERS_UNUSED_MS. Together with those in use they stay below headrace.total.inflight.bytes.max.
"""

POOLED_BUFFERS_UNUSED_MS = 3_000
"""Interval at which the pool returns unused buffers to the system."""

REQUESTS_IN_FLIGHT_MAX = 32
"""Unanswered requests of one connection; above it the connection is not read until some are answered."""

TLS_RECEIVED_BYTES_MAX = 128 << 10
"""Encrypted bytes that are received from one connection at a time."""

TLS_SENT_BYTES_MAX = 128 << 10
"""Bytes of a response that are encrypted at a time; the rest waits until the network has accepted them."""

TLS_CONTROL_BYTES_MAX = 64 << 10
"""Bytes of answers of TLS itself that wait for a client that does not read; more close the connection."""

TLS_HANDSHAKE_BYTES_MAX = 256 << 10
"""Bytes that a client may send in a TLS handshake."""

TLS_HANDSHAKE_MS_MAX = 10_000
"""Time from the beginning of a connection to the end of its TLS handshake; then it is closed."""

TLS_HANDSHAKES_MAX = 1_000
"""Connections in their TLS handshake; a further one replaces the oldest."""

TLS_HANDSHAKES_TURN_MS_MAX = 2.0
"""Time that a turn spends on TLS handshakes; the others continue in the next one."""

TLS_RELOAD_INTERVAL_MS = 5_000
"""Interval at which the broker looks whether the files with keys and certificates have changed."""

ACCESS_DECISIONS_MAX = 100_000
"""Decisions about access that are kept, by principal, host, operation and resource."""

QUOTA_CLIENTS_MAX = 10_000
"""Pairs of user and client id whose buckets are remembered; those of more are looked up again."""

QUOTA_DEBT_MS_MAX = 600_000
"""The longest time in which the debt of a quota is paid: one huge request does not block a client for longer."""

QUOTA_ADDRESSES_MAX = 10_000
"""Addresses whose rate of new connections is remembered; one more makes the broker forget the first of them."""

QUOTA_BUCKETS_MAX = 50_000
"""Buckets of quotas; beyond it those go first that are full, then the oldest."""

LATE_CLOSES_MAX = 1_000
"""Connections of addresses beyond their rate that are closed with a delay; one more ends the delay of the oldest."""

THROTTLE_MS_MIN = 1.0
"""The shortest time for which a client waits because of a quota; smaller debts add up."""

SASL_MS_MAX = 10_000
"""Time from the beginning of a connection until its client has authenticated; then it is closed."""

LOGIN_FAILURES_FREE = 5
"""Failed logins of one user from one address before its logins are delayed."""

LOGIN_INTERVAL_MS_MIN = 200
"""Time between two logins of such a user; it doubles with every further failure."""

LOGIN_INTERVAL_MS_MAX = 5_000
"""The longest such time."""

LOGIN_WAIT_MS_MAX = 6_000
"""Longest wait of a login; it is refused if those before it take longer."""

LOGIN_FAILURES_FORGOTTEN_MS = 60_000
"""Time without a login after which the failures of a user and address no longer count."""

LOGIN_FAILURES_KEPT_MAX = 10_000
"""Pairs of user and address whose failures are remembered."""

TOKEN_BYTES_MAX = 64 << 10
"""Bytes of a token of an identity provider."""

TOKEN_HEADER_BYTES_MAX = 8 << 10
"""Bytes of its header."""

TOKEN_KEYS_MAX = 100
"""Keys of an identity provider."""

TOKEN_KEYS_BYTES_MAX = 1 << 20
"""Bytes of the document with these keys."""

TOKEN_KEYS_MS_MAX = 5_000
"""Time limit of its fetch, and of the wait of a login for it."""

TOKEN_KEYS_FILE_INTERVAL_MS = 5_000
"""Interval at which the broker reads these keys again, if they are in a file."""

TOKEN_KEYS_UNKNOWN_INTERVAL_MS = 10_000
"""Shortest time between two fetches that begin because a token names an unknown key."""

TOKEN_LOGINS_WAITING_MAX = 1_000
"""Logins that wait for a fetch of keys; others are refused."""

REQUEST_BYTES_MAX = 16 << 20
"""Bytes of a request that is read in full. A larger one is refused once 16 KiB of it have arrived: the broker answers
INVALID_REQUEST in the format of the API and skips the rest, or closes the connection where the response of that version
has no error field. Both are logged. Produce, JoinGroup and SyncGroup, which carry mostly opaque bytes, are limited by
socket.request.max.bytes alone.
"""

REQUEST_BYTES_AT_ONCE_MAX = 128 << 10
"""A longer request is read in slices, some elements per turn."""

REQUEST_ELEMENTS_PER_STEP = 50
"""Elements of a long request that are read in one turn."""

REQUEST_ELEMENTS_MAX = 100_000
"""Elements of all arrays of one request that is read in slices. OffsetCommit and TxnOffsetCommit, which are executed in
slices too, may have as many as fit into REQUEST_BYTES_MAX.
"""

OFFSETS_PER_SLICE = 3
"""Partitions of a long OffsetCommit or TxnOffsetCommit that are committed in one turn."""

OFFSETS_SLICE_BYTES_MAX = 2 << 10
"""Bytes of a long OffsetCommit or TxnOffsetCommit that are committed in one turn, but at least one partition."""

SLICES_ALONE = 20
"""Slices that a long request executes in one turn while the broker receives nothing else."""

LARGE_REQUESTS_AT_ONCE = 4
"""Requests that are read or executed in slices at the same time; others, and their connections, wait."""

CONNECTIONS_ACCEPTED_PER_TURN_MAX = 16
"""New connections that one turn accepts; the others wait in the backlog of the listener."""


TURN_WORK_MS_MAX = 2.0
"""Time that a turn spends on ready connections, on the pipelined requests of one connection and on continued work; the
rest waits for the next turn, where it comes first. At least one of each is always done.
"""

EVENTS_BETWEEN_LOOKS = 4
"""Ready connections that are served before the loop checks how long its turn has taken."""

CONNECTION_TOPICS_MAX = 20
"""Topics that DescribeConnections names for one connection, of those that it writes and of those that it reads."""

CLIENT_ID_KEPT_BYTES_MAX = 255
"""Bytes of a client id that DescribeConnections returns, and by which quotas tell clients apart."""

CONNECTIONS_DESCRIBED_MAX = 100
"""Connections in one response to DescribeConnections, about two milliseconds; the client asks for the rest."""

METADATA_CHANGES_KEPT_MAX = 2_000
"""Recent changes of the metadata that a broker keeps for ListMetadataChanges; a client that missed more reads all."""

METADATA_CHANGES_UNASKED_MS_MAX = 120_000
"""Time for which a broker keeps them without a request."""

METADATA_CHANGE_WAIT_MS_MAX = 60_000
"""Time for which ListMetadataChanges waits for a change."""

METADATA_CHANGE_WAITS_MAX = 1_000
"""Requests that wait for a change of the metadata; more are refused."""

FETCH_PARTITIONS_PER_SLICE = 100
"""Partitions of one Fetch that are read in one turn, about half a millisecond; the rest follow in later turns."""

FETCH_BYTES_AT_ONCE_MAX = 8 << 10
"""A longer request is read, and its session updated, in slices too."""

FETCH_PARTITIONS_MAX = 100_000
"""Partitions of one Fetch request; a request with more closes the connection."""

METADATA_TOPICS_PER_SLICE = 100
"""Topics of one Metadata request that are described in one turn; the rest follow in later turns."""

METADATA_BYTES_AT_ONCE_MAX = 8 << 10
"""A longer request for topics is read in slices too."""

METADATA_TOPICS_MAX = 100_000
"""Topics that one Metadata request may name; a request with more closes the connection."""

COPIED_RANGE_BYTES_MAX = 16 << 10
"""Below this a fetched range of a file is read and sent with its header in one call, which is cheaper than sendfile."""

LARGE_RESPONSE_BYTES = 64 << 10
"""Responses with more than this from files are sent after all others of the turn."""

SENT_ALONE_BYTES_MAX = 16 << 20
"""Bytes of large responses in one turn to one connection, when no other is served; more than a socket accepts at
once.
"""

SENT_BESIDE_OTHERS_BYTES_MAX = 512 << 10
"""Bytes of large responses in one turn to all connections together, while others are served too."""

SENT_ONCE_BYTES_MIN = 64 << 10
"""Least bytes that each of them may be sent, however many there are."""

BESIDE_OTHERS_MS = 20
"""Time after a response to another connection within which the next one is expected."""

HOUSEKEEPING_INTERVAL_MS = 500
"""Interval of flushes, retention, idle connection checks and checkpoints."""

FETCH_WAIT_MS_MAX = 300_000
"""A longer long poll is answered, empty, after this time; the client repeats it."""

PRODUCE_WAIT_MS_MAX = 300_000
"""The longest wait for acknowledgements, whatever a request allows."""

LOOKUPS_PER_REQUEST_MAX = 10_000
"""Partitions of one ListOffsets request that are looked up by time; the client must request the others again."""

LOOKUPS_PER_CONNECTION_MAX = 10_000
"""Offsets by time that one connection may wait for; more are refused with a retriable error."""

LOOKUPS_MAX = 20_000
"""Offsets by time that all connections may wait for. Above it a connection is refused more than its share."""

LOOKUPS_SHARE_MIN = 16
"""The least share of a connection, however many there are."""

LOOKUPS_AT_ONCE_MAX = 4
"""Lookups given to helper threads; the others wait in a queue in which connections take turns."""

LOOKUPS_GIVEN_UP_PER_TURN_MAX = 100
"""Lookups that waited too long and are refused in one turn; the rest follow in later turns."""

LOOKUP_MS_MAX = 30_000
"""Time that a lookup may wait, and that it may take in a helper thread; then it is refused with a retriable error."""

LANE_STUCK_MS = 30_000
"""A helper thread that works on one operation for this time is stuck, or its disk is."""

PEER_HANDSHAKE_BYTES_MAX = 4 << 10
"""Bytes of a request or response between nodes before both have authenticated."""

PEER_HANDSHAKE_MS_MAX = 10_000
"""Time from the beginning of a connection between nodes until both have authenticated."""

PEERS_UNAUTHENTICATED_MAX = 64
"""Connections at the CONTROLLER listener that have not authenticated yet; a further one replaces the oldest."""

PEER_CONNECTIONS_PER_NODE_MAX = 4
"""Connections that one authenticated node may have here; a further one replaces the oldest."""

PEER_REQUESTS_MAX = 1_000
"""Unanswered requests to one node; more fail at once. A node that sends more is disconnected."""

PEER_UNSENT_BYTES_MAX = 64 << 20
"""Bytes that wait to be sent to one node; above it requests fail at once."""

PEER_RAFT_UNSENT_BYTES_MAX = 16 << 20
"""Bytes that wait to be sent to one node above which Raft messages are dropped, unless none waits; Raft sends what is
needed again.
"""

PEER_RESPONSE_BYTES_MAX = 64 << 20
"""Bytes of a response of another node; a larger one closes the connection."""

PEER_RECONNECT_MS_MIN = 50
"""Wait after a failed connection to a node; it doubles with every further failure."""

PEER_RECONNECT_MS_MAX = 1_000
"""The longest wait between two connections to a node."""

PEER_PING_MS = 1_000
"""A connection to a node on which nothing was received for this time is tested, if it is in use."""

PEER_SILENT_MS_MAX = 5_000
"""A connection to a node is closed when a test has had no response for this time."""

NAME_RESOLVED_MS = 30_000
"""Time for which the addresses of a host name are used without asking the resolver again."""

NAME_RESOLVING_MS_MAX = 10_000
"""Time after which a resolver that has not answered counts as failed."""

REPLICA_FETCH_PARTITIONS_MAX = 500
"""Partitions that one fetch of a follower names, and that one response has; further ones follow in turn."""

REPLICA_SESSION_PARTITIONS_MAX = 200_000
"""Partitions that one follower fetches from one leader."""

REPLICA_FETCH_BYTES_MAX = 4 << 20
"""Records of one response to a follower, whatever it asks for; the first batch is sent even if it is larger. More would
not be cheaper, and the follower does not keep larger buffers for reuse.
"""

REPLICA_FETCH_WAIT_MS_MAX = 500
"""Time for which a leader keeps a follower's fetch that finds nothing."""

NAMES_MAX = 1_000
"""Host names of other nodes whose addresses are kept."""

FORWARDS_MAX = 1_000
"""Requests of clients that this node has forwarded to the active controller and that have no response yet."""

FORWARD_RETRY_MS = 50
"""Wait before a forwarded request is sent again, because the controller was not known or did not answer."""

FORWARD_WAIT_MS = 5_000
"""Time within which the active controller must have answered a request that does not say how long it waits."""

FORWARD_WAIT_MS_MAX = 60_000
"""The longest such time, whatever a request says."""

INVITATIONS_MAX = 100
"""Invitations of one node that were not used yet."""

INVITATION_MS_MAX = 7 * 24 * 3_600_000
"""The longest time for which an invitation may be valid."""

AUDIT_COUNTED_MAX = 1_000
"""Different logins and refusals that the audit log counts at the same time; further ones are counted together."""

AUDIT_RESOURCES_MAX = 100
"""Resources in one line of the audit log; a change of more has several lines."""

AUDIT_TEXT_LENGTH_MAX = 1_000
"""Characters of a name in the audit log."""

AUDIT_LINES_MAX = 10_000
"""Lines of the audit log that wait to be written. Beyond that, other lines than changes are counted as lost, and
answers to changes wait."""

AUDIT_WRITE_LINES_MAX = 1_000
"""Lines of the audit log in one write."""

AUDIT_RETRY_MS = 1_000
"""Time from a failed write of the audit log to the next."""
