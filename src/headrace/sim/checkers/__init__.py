"""Checks of a run: invariants after every turn, and histories of what clients sent and received."""
