"""Raft for the metadata quorum: decisions only, so that the broker and the simulator run the same code.

`RaftMachine.step(event, now_ms)` takes one event and returns the effects for its host, which owns the disk, the network
and the clock. `effects.py` states the order in which the host executes them.
"""
