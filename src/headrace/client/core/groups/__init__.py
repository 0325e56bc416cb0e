"""Group membership: assigned partitions, committed offsets and heartbeats.

Decisions only, as everywhere in the core. `classic` and `epochs` are the two protocols, with the same few methods;
`group` connects one of them with the consumer core and the commits.
"""
