"""Client quotas: which of them applies to a client, and the buckets that requests are charged to."""
