"""Listeners, connections, the loop that drives them, and the order in which responses are sent."""
