"""Pure state machines on a virtual network: the fast level of the simulator, for protocols between nodes.

There are no bytes and no ports here: messages are objects, disks keep what was synced, and one heap orders all events.
"""
