"""Listeners, connections, the loop that drives them, and the order in which answers leave."""
