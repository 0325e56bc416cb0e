"""Runs the machines of `core`'s coordinators, each on a partition of an internal topic that this node leads."""
