"""Being a member of a group: which partitions are ours, what was read is committed, and the group stays alive.

Decisions only, as all of the core. `classic` and `epochs` are the two protocols, behind the same few methods; `group`
joins one of them with the consumer core and the commits.
"""
