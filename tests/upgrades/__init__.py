"""Data of an earlier release: what the present one reads, and what it refuses."""
