"""The numbers that bound every queue, buffer and wait of the broker that no configuration key sets. Units last."""

RECEIVE_ARENA_BYTES = 1 << 20
"""Small frames of one turn are received into one shared arena of this size."""

RECEIVE_ONCE_BYTES = 256 << 10
"""The most taken from one connection in one turn, so that a fast sender does not starve the rest."""

LARGE_FRAME_BYTES = 128 << 10
"""A frame above this gets a pooled buffer of its own instead of the arena."""

LARGE_FRAME_ONCE_BYTES = 64 << 10
"""The most taken of a large frame in one turn, unless it is a Produce request: those are taken as they come."""

LARGE_FRAME_BEGUN_BYTES = 16 << 10
"""So much of a large frame is there before it gets a buffer: what only declares its length holds none."""

LARGE_FRAME_FIRST_BYTES = 64 << 10
"""The least buffer of a large frame: buffers grow with the bytes received."""

FRAME_STALLED_MS = 1_000
"""A large frame that has not grown for so long gives its buffer up when other connections need one."""

FRAME_PROGRESS_PARTS = 128
"""A large frame counts as growing when a part of its buffer arrives within FRAME_STALLED_MS; this is how many parts a
buffer has."""

FRAME_PROGRESS_BYTES_MIN = 16 << 10
"""The smallest such part."""

WAITING_FRAMES_PER_TURN = 8
"""Connections that wait for a buffer and try again in one turn."""

POOLED_BUFFERS_BYTES_MAX = 64 << 20
"""Freed large buffers kept for reuse; beyond this they go back to the system, and so do those that were not used for
POOLED_BUFFERS_UNUSED_MS. Together with those in use they stay below headrace.total.inflight.bytes.max."""

POOLED_BUFFERS_UNUSED_MS = 3_000
"""How often the pool returns buffers to the system that were not used since the last time."""

REQUESTS_IN_FLIGHT_MAX = 32
"""Unanswered requests of one connection; above it the connection is not read until some are answered. It also bounds
how long a pipeline of requests can hold up one turn."""

REQUEST_BYTES_MAX = 16 << 20
"""Of requests that are read in full. A larger one is answered with INVALID_REQUEST and read past. Produce, JoinGroup
and SyncGroup, which carry mostly opaque bytes, are bounded by socket.request.max.bytes alone."""

REQUEST_BYTES_AT_ONCE_MAX = 128 << 10
"""A longer one is read in slices, some elements a turn."""

REQUEST_ELEMENTS_PER_STEP = 50
"""Elements of a long request that are read in one turn."""

REQUEST_ELEMENTS_MAX = 100_000
"""Elements of all arrays of one request that is read in slices. OffsetCommit and TxnOffsetCommit, which are carried out
in slices too, may have as many as fit into REQUEST_BYTES_MAX."""

OFFSETS_PER_SLICE = 3
"""Partitions of a long OffsetCommit or TxnOffsetCommit that are committed in one turn."""

OFFSETS_SLICE_BYTES_MAX = 2 << 10
"""Bytes of a long OffsetCommit or TxnOffsetCommit that are committed in one turn; one partition always is."""

SLICES_ALONE = 20
"""How many slices a long request takes together in one turn while the broker receives nothing else."""

LARGE_REQUESTS_AT_ONCE = 4
"""Requests that are read or carried out in slices at the same time; others, and their connections, wait."""

CONNECTIONS_ACCEPTED_PER_TURN_MAX = 16

TURN_WORK_MS_MAX = 2.0
"""How long a turn goes on with ready connections, and with work that goes on from turn to turn; the rest waits for the
next turn, where it comes first. One of each is always done."""

EVENTS_BETWEEN_LOOKS = 4
"""Ready connections that are served before the loop looks how long its turn has taken."""

FETCH_PARTITIONS_PER_SLICE = 100
"""Partitions of one Fetch that are read in one turn, about half a millisecond; the rest follow in later turns."""

FETCH_BYTES_AT_ONCE_MAX = 8 << 10
"""A longer request is read, and its session brought up to date, in slices too."""

FETCH_PARTITIONS_MAX = 100_000
METADATA_TOPICS_PER_SLICE = 100
METADATA_BYTES_AT_ONCE_MAX = 8 << 10
"""A longer request for topics is read in slices too."""

METADATA_TOPICS_MAX = 100_000
COPIED_SLICE_BYTES_MAX = 16 << 10
"""Below this a fetched slice is read and sent with its header in one call, which is cheaper than sendfile."""

LARGE_ANSWER_BYTES = 64 << 10
"""Answers with more than this from files are sent behind all others of the turn."""

SENT_ALONE_BYTES_MAX = 16 << 20
"""Of large answers in one turn, to one connection, when nobody else is served; more than a socket takes at once."""

SENT_BESIDE_OTHERS_BYTES_MAX = 512 << 10
"""Of large answers in one turn, to all connections together, while others are served too."""

SENT_ONCE_BYTES_MIN = 64 << 10
"""What each of them may be sent, however many they are."""

BESIDE_OTHERS_MS = 20
"""How long after somebody else's answer the next one is expected."""

HOUSEKEEPING_INTERVAL_MS = 500
"""How often flushes, retention, idle connections and checkpoints are looked at."""

FETCH_WAIT_MS_MAX = 300_000
"""A longer long poll is answered, empty, after this time; the client asks again."""

PRODUCE_WAIT_MS_MAX = 300_000
"""The longest wait for acknowledgements, whatever a request allows."""

LOOKUPS_PER_REQUEST_MAX = 10_000
"""Partitions of one ListOffsets request that are looked up by time; the others are to be asked for again."""

LOOKUPS_PER_CONNECTION_MAX = 10_000
"""Offsets by time that one connection may wait for; more are refused for now."""

LOOKUPS_MAX = 20_000
"""Offsets by time that all connections may wait for. Above it a connection is refused more than its share."""

LOOKUPS_SHARE_MIN = 16
"""The share of a connection, however many they are."""

LOOKUPS_AT_ONCE_MAX = 4
"""Handed to the helpers; the other lookups wait where connections take turns."""

LOOKUPS_GIVEN_UP_PER_TURN_MAX = 100
"""Lookups that waited too long and are refused in one turn; the rest follow in later turns."""

LOOKUP_MS_MAX = 30_000
"""How long a lookup may wait, and how long it may take once a helper has it; then it is refused for now."""

LANE_STUCK_MS = 30_000
"""A helper that works on one operation for so long is stuck, or its disk is."""
