"""Client quotas: which of them holds for a client, and the buckets that requests are charged to."""
