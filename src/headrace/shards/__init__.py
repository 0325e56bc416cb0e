"""Shards: several brokers on one machine under one parent process, so that a machine uses all of its cores.

A broker runs in one thread. Each shard is a broker of its own, with its own node id, ports and data folder, and clients
find it in the metadata like any other broker. The parent starts the shards, starts one again that has died, passes
signals on, and serves one metrics page.
"""
