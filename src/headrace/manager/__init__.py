"""The manager: an HTTP API in front of a cluster, for programs without a Kafka client.

It keeps no state of its own: records, positions and results of requests are in the brokers, which it reaches as a Kafka
client. So any number of managers serve the same cluster.
"""
