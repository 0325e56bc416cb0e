"""Decides how far a partition is replicated: what is committed, and which replicas count as in sync."""
