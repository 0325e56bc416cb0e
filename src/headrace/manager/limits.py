"""Limits of the manager's HTTP API that no option sets. Units last."""

REQUEST_BODY_BYTES_MAX = 8 << 20
"""Bytes of the body of one request; a larger body is refused with 413."""

COMPRESSED_BYTES_MIN = 1_024
"""Bytes of a response from which on it is compressed, if its client accepts that."""

COMPRESSED_BYTES_MAX = 2 << 20
"""Bytes of the largest response that is compressed."""

DISCARDED_BODY_BYTES_MAX = 32 << 20
"""Bytes of the body of a refused request that are read and discarded, so that the client gets the response."""

DISCARD_SECONDS_MAX = 5
"""Time for that; afterwards the connection is closed."""

BODY_SECONDS_MAX = 30
"""Time in which the body of a request must arrive; a slower client gets 408."""

STALLED_CLIENT_MS_MAX = 60_000
"""Time for which a client may take no byte of its response; then its connection ends."""

REQUESTS_AT_ONCE_MAX = 2_500
"""Requests and open streams of one manager at the same time; more are refused with 503."""

ADMIN_CALLS_AT_ONCE_MAX = 8
"""Calls to the cluster about topics, groups and the like that one manager makes at the same time; others wait."""

ADMIN_CALLS_WAITING_MAX = 200
"""Requests that wait for such a call; more are refused with 503."""

ADMIN_TIMEOUT_MS = 10_000
"""Time limit of one call to the cluster."""

PAGE_ITEMS_MAX = 10_000
"""Items of one page of a list."""

RECORDS_PER_REQUEST_MAX = 10_000
"""Records that one request produces or gets."""

PRODUCE_TIMEOUT_MS = 30_000
"""Time in which produced records must be stored; the response then says which records were not."""

IDEMPOTENCY_KEY_LENGTH_MAX = 255
"""Characters of an Idempotency-Key."""

IDEMPOTENCY_SECONDS = 3_600
"""Time for which an Idempotency-Key is remembered."""

IDEMPOTENCY_PARTITIONS = 4
"""Partitions of `__headrace_idempotency` when a manager creates it, and so transactions at the same time."""

IDEMPOTENCY_KEYS_MAX = 500_000
"""Keys that one manager remembers; while there are more, requests with new keys are refused with 503."""

IDEMPOTENT_REQUESTS_WAITING_MAX = 1_000
"""Requests with keys that wait for a transaction, by partition of the topic; more are refused with 503."""

IDEMPOTENT_REQUESTS_PER_COMMIT_MAX = 200
"""Requests with keys that one transaction commits."""

IDEMPOTENT_SECONDS_MAX = 30
"""Time in which a request with a key must be committed; then it is answered with 503 and may be repeated."""

IDEMPOTENT_TAKEOVER_WAIT_MS_MAX = 400
"""The longest pause of a manager whose transaction another one has fenced; the pause is random."""

READERS_MAX = 64
"""Requests that read records at the same time; others wait, at most READER_WAIT_SECONDS_MAX."""

READER_WAIT_SECONDS_MAX = 5
"""Time that a request waits for its turn to read; then it is refused with 503."""

STREAMS_MAX = 2_000
"""Open streams of one manager; more are refused with 503."""

STREAM_PARTITIONS_MAX = 64
"""Partitions of a topic that is streamed as a whole: the id of each event has the position of every one."""

STREAM_BUFFER_RECORDS_MAX = 500
"""Records that wait for the client of one stream; a slower one continues later from where it is."""

STREAM_BUFFER_BYTES_MAX = 1 << 20
"""Bytes of such records, but at least one record."""

STREAM_HEARTBEAT_SECONDS = 15
"""Interval of the comments on a stream without records, by which proxies and clients see that it is alive."""

FEEDS_MAX = 100
"""Topics that one manager streams at the same time."""

FEED_IDLE_SECONDS_MAX = 10
"""Time for which a manager reads a topic after its last stream has ended."""

SUBSCRIPTIONS_PER_SOCKET_MAX = 32
"""Subscriptions of one WebSocket."""

SUBSCRIPTION_ID_LENGTH_MAX = 64
"""Characters of the id that a client gives a subscription."""

CREDIT_MAX = 10_000
"""Records that one subscription may send without more credit."""

SUBSCRIPTION_FRAME_BYTES_MAX = 256 << 10
"""Bytes of keys and values after which a frame is sent, and the next records go into another one."""

SUBSCRIPTION_FRAME_RECORDS_MAX = 200
"""Records of one frame."""

SOCKET_FRAME_BYTES_MAX = 64 << 10
"""Bytes of a frame from a client; a longer one ends its connection."""

SOCKET_PING_SECONDS = 20
"""Interval of the pings to the client of a WebSocket, and the time in which it has to answer one."""

POSITIONS_LENGTH_MAX = 10_000
"""Characters of the positions of a topic."""

CHANGE_EVENTS_KEPT_MAX = 1_000
"""Changes of the cluster that a manager remembers for streams that connect again, and that wait for one client."""

CHANGE_WAIT_MS = 5_000
"""Time for which a broker holds a request about changes of the metadata."""

GROUP_LIST_SECONDS = 0.5
"""Interval at which the states of groups are listed while a stream wants their changes."""

EVENT_TOPICS_MAX = 100
"""Topics in the filter of a stream of changes."""

READ_WAIT_MS_MAX = 30_000
"""The longest `wait_ms` of a request that reads records."""

READ_FETCH_BYTES_MAX = 4 << 20
"""Bytes that one reader fetches at a time."""

READ_RESPONSE_BYTES_MAX = 16 << 20
"""Bytes of keys, values and headers in one response; the request then ends with fewer records than `max`."""

BATCH_DETAILS_BYTES_MAX = 32 << 20
"""Bytes that a request with `batches` fetches again for the headers; the records beyond have no `batch`."""

READ_SLICE_RECORDS = 200
"""Records that are filtered and encoded before other requests get their turn."""

FILTERED_RECORDS_MAX = 100_000
"""Records that a request with a filter looks at; the response then says where to continue."""

FILTERED_SECONDS_MAX = 5
"""Time that a request with a filter searches, beyond its `wait_ms`."""

FILTER_LENGTH_MAX = 2_000
"""Characters of a filter."""

FILTER_TERMS_MAX = 200
"""Names, constants and operators of a filter."""

FILTER_DEPTH_MAX = 32
"""Depth of parentheses and `not` in a filter."""

FILTERED_VALUE_BYTES_MAX = 1 << 20
"""Bytes of a key or value that a filter reads as JSON; the fields of a longer one count as missing."""

CATALOG_CALLS_AT_ONCE_MAX = 5
"""Connections of one manager to the catalog database; other calls wait."""

CATALOG_CALLS_WAITING_MAX = 500
"""Requests that wait for such a connection; more are refused with 503."""

CATALOG_CONNECT_SECONDS_MAX = 3
"""Time limit of a connection to the catalog database."""

CATALOG_STATEMENT_MS_MAX = 5_000
"""Time limit of one statement of the catalog, and of its wait for locks."""

CATALOG_IDLE_TRANSACTION_MS_MAX = 3_000
"""Time after which PostgreSQL ends the transaction of a manager that is stopped inside it."""

MIGRATION_SECONDS_MAX = 120
"""Time for creating or changing the tables of the catalog when a manager starts."""

LEASE_MS = 3_000
"""Time after the last heartbeat of the lease's holder at which another manager may take it over."""

HEARTBEAT_MS = 750
"""Interval of the heartbeats of a manager in the catalog."""

MANAGER_FORGOTTEN_MS = 60_000
"""Time without a heartbeat after which a manager leaves the list of managers."""

ACCESS_RULES_PER_REQUEST_MAX = 1_000
"""Access rules that one request adds."""

USERS_MAX = 1_000
"""Users of the manager in the catalog."""

TOKENS_PER_USER_MAX = 50
"""Tokens of one user."""

SESSIONS_PER_USER_MAX = 20
"""Sessions of one user; a further login ends the one that was not used for the longest time."""

SESSION_SECONDS_MAX = 43_200
"""Time after which a session ends."""

SESSION_IDLE_SECONDS_MAX = 7_200
"""Time without a request after which a session ends."""

SESSION_USE_SECONDS = 60
"""Interval at which a manager records the use of a session."""

CALLER_KNOWN_SECONDS = 0.5
"""Time for which a manager believes what it knows of a session, a token or a role; then it looks in the catalog."""

CALLERS_KNOWN_MAX = 10_000
"""Sessions and tokens that a manager remembers for that time."""

USERS_MARK_SECONDS = 30
"""Interval at which a manager without users looks in the cluster whether there were any."""

LOGINS_AT_ONCE_MAX = 2
"""Passwords that one manager checks at the same time, each of which takes 16 MiB; others wait."""

LOGINS_WAITING_MAX = 50
"""Logins that wait for it; more are refused with 503."""

LOGIN_FAILURES_BY_PAIR_MAX = 5
"""Failed logins of one user from one address without a pause; each further one doubles the pause."""

LOGIN_FAILURES_BY_ADDRESS_MAX = 50
"""Failed logins from one address, of all users, without a pause."""

LOGIN_FAILURES_BY_USER_MAX = 100
"""Failed logins of one user, from all addresses, without a pause."""

LOGIN_WAIT_SECONDS_MAX = 60
"""The longest pause after failed logins."""

LOGIN_FAILURES_FORGOTTEN_SECONDS = 900
"""Time without a failed login after which the failures are forgotten."""

IDENTITY_SECONDS_MAX = 10
"""Time limit of a request to the identity provider."""

IDENTITY_RESPONSE_BYTES_MAX = 1 << 20
"""Bytes of a response of the identity provider."""

IDENTITY_DESCRIPTION_SECONDS = 3_600
"""Time for which a manager remembers the addresses of the identity provider."""

IDENTITY_CLOCK_SECONDS_MAX = 60
"""Difference between the clocks of the manager and the identity provider that is tolerated."""

IDENTITY_LOGIN_SECONDS_MAX = 600
"""Time in which a login at the identity provider must end."""

IDENTITY_LOGINS_MAX = 10_000
"""Such logins that have begun and not ended, of all managers; more are refused with 503."""

MASKS_MAX = 500
"""Rules that mask fields of records."""

TAKEOVER_SECONDS_MAX = 5
"""Time that a change of the catalog waits for a manager that holds the lease."""

FORWARD_SECONDS_MAX = 15
"""Time in which the lease's holder must answer a request that another manager forwards."""

FORWARDED_BODY_BYTES_MAX = 1 << 20
"""Bytes of the body of a request that changes the catalog."""

AUDITED_BODY_BYTES_MAX = 4_096
"""Bytes of the body of a request that its audit record keeps."""

AUDIT_DAYS = 90
"""Days for which audit records are kept."""

HISTORY_DAYS = 7
"""Days for which rates of topics and lag of groups are kept by minute."""

HISTORY_ROWS_PER_MINUTE_MAX = 500
"""Topics, and pairs of group and topic, whose minute is kept: those with the most records."""

REVOCATION_CHECK_SECONDS = 0.4
"""Interval at which the rights of open streams are checked."""

CONNECTION_RATE_SECONDS = 1
"""Time over which the rates of the clients of brokers are measured; a first request waits for it."""

CONNECTION_RATE_SECONDS_MAX = 60
"""Age of the previous sample above which the rates are measured again."""

CLIENTS_PER_USER_MAX = 1_000
"""Registered producers and consumers of one user."""

CLIENT_SILENCE_SECONDS_MAX = 600
"""Time without a request of a registered client, or a heartbeat, after which it is removed."""

CLIENT_SEEN_SECONDS = 10
"""Interval at which a manager records that a registered client has sent a request."""

CLIENT_SWEEP_SECONDS = 30
"""Interval at which registered clients that are silent are removed."""

CLIENT_TURN_SECONDS = 60
"""Time after which another request may read for a consumer of at-most-once, because the one before has not ended."""

CLIENT_COMMIT_SECONDS = 45
"""Time in which such a request must be about to commit its position; afterwards it fails without doing so."""

OVERVIEW_SAMPLE_SECONDS = 2
"""Interval at which an open overview page is brought up to date; all pages of one manager share a sample."""

OVERVIEW_SAMPLE_SECONDS_MAX = 30
"""Age of the previous sample above which the overview shows no rates yet."""

OVERVIEW_RATES_KEPT = 90
"""Rates in the diagram of the overview."""

OVERVIEW_ROWS_MAX = 50
"""Topics, and groups, that the overview shows: the busiest, and those with the largest lag."""
