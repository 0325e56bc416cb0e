"""Runs the coordinators of `core`, each on a partition of an internal topic that this node leads."""
