"""Clients of a simulated node: producers, consumers, an administrator, a canary and hostile peers.

They speak Kafka's protocol over virtual connections, one `step` a turn, and note in the histories what they are told.
"""
