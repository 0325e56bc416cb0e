"""The simulator: virtual clock, network, disk and helper threads on which a whole node runs in one thread, repeatable
by seed.

`World` bundles them. Nothing here reads a real clock, opens a file or socket, or starts a thread, and every choice is
drawn from the seed, so a run is identified by its seed and two runs of one seed have the same trace hash.
"""
