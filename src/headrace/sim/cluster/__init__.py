"""Runs of several brokers: whole nodes that form a cluster, and applications that use it by the shipped client."""
