"""Decide which records of a partition are committed, and which replicas are in sync."""
