"""Replicas of a partition on several brokers: the fetches of followers, at both ends, and changes of in-sync sets."""
