"""The seams to the world as Protocols: Clock, Disk, Network, Entropy, Spawner.

Everything below the composition root reaches time, files, sockets, randomness and helpers through these five, so
the same node runs on a real machine (`headrace.ports.real`) and in the simulator (`headrace.sim`).
"""
