"""Scenarios of a run: the settings, topics and clients that a seed may draw, and additional checks."""
