"""The ports to the outside world as Protocols: Clock, Disk, Network, Entropy, Spawner.

Everything below the composition root uses time, files, sockets, randomness and helper threads through these five, so
the same node runs on a real machine (`headrace.ports.real`) and in the simulator (`headrace.sim`).
"""
