"""Clients of a simulated node: producers, consumers, an administrator, a canary and hostile peers.

They speak Kafka's protocol over virtual connections, one `step` per turn, and note the responses in the histories.
"""
